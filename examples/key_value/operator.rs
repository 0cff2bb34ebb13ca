//! The operators' protocol: `STATS` and `QUIT`, on a port of its own that clients cannot reach.

use std::io::{self, Write};
use std::time::Duration;

use rotor::stream::{Exception, Intent, Matched, Output, Protocol, Transport};
use rotor::{Scope, StatsHandle, Time};

use super::shared::Shared;

/// The longest line, in bytes including its end.
const LINE_BYTES_MAX: usize = 64;

/// How long an operator may take for a line.
const LINE_TIME_MAX: Duration = Duration::from_secs(60);

/// One operator.
pub(crate) struct Operator;

fn write_stats(output: &mut Output, shared: &Shared) -> io::Result<()> {
    let Shared { store, places, counts, stats } = shared;
    writeln!(output, "keys {}\nbytes {}\nexpired {}", store.len(), store.bytes(), store.expired())?;
    writeln!(
        output,
        "clients {}\nrefused {}\nlate {}",
        places.taken(),
        counts.refused,
        counts.late
    )?;
    writeln!(output, "commands {}\nerrors {}", counts.commands, counts.errors)?;
    if let Some(stats) = stats.as_ref().map(StatsHandle::read) {
        writeln!(
            output,
            "machines {}\nfailed {}\npanicked {}",
            stats.alive, stats.failed, stats.panicked
        )?;
        writeln!(output, "longest_turn_us {}", stats.longest_turn.as_micros())?;
    }
    writeln!(output, "END")
}

impl Protocol for Operator {
    type Context = Shared;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, Shared>) -> Intent<Operator> {
        Intent::of(Operator).delimiter(b"\n", LINE_BYTES_MAX).deadline(scope.now() + LINE_TIME_MAX)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Operator> {
        let written = match &matched.content(transport.input).trim_ascii().to_ascii_uppercase()[..]
        {
            b"STATS" => write_stats(transport.output, scope),
            b"QUIT" => return Intent::done(),
            _ => writeln!(transport.output, "ERR an unknown command"),
        };
        matched.consume(transport.input);
        match written {
            Err(error) => Intent::error(error),
            Ok(()) if scope.draining_until().is_some() && transport.input.is_empty() => {
                Intent::done()
            }
            Ok(()) => Intent::of(self).keep().deadline(scope.now() + LINE_TIME_MAX),
        }
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, Shared>) -> Intent<Operator> {
        Intent::done()
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Operator> {
        Intent::done()
    }

    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Intent<Operator> {
        if transport.input.is_empty() {
            return Intent::done();
        }
        Intent::of(self).keep().keep_deadline()
    }
}
