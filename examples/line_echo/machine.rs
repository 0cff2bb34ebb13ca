//! An echo of lines: the smallest line protocol with limits.

use std::io::Write;
use std::marker::PhantomData;
use std::time::Duration;

use rotor::stream::{Exception, Intent, Matched, Protocol, Transport};
use rotor::{Scope, Time};

/// The longest line, in bytes including its end. A longer one ends the connection.
pub(crate) const LINE_BYTES_MAX: usize = 1_024;

/// How long a line may take from its first byte to its end, however slowly it arrives.
pub(crate) const LINE_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a client may send no line at all.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(600);

/// ```text
///           a byte                   its end
///   (idle) ────────▶ (within a line) ────────▶ (idle)
/// ```
///
/// The current state is given by what the stream waits for; nothing else needs to be stored.
pub(crate) struct LineEcho<C>(PhantomData<fn(C)>);

impl<C> LineEcho<C> {
    /// Waits for a line; during a drain only for the grace, because a line may be on its way.
    fn idle(self, scope: &Scope<'_, C>) -> Intent<Self> {
        let until = scope.grace_until().unwrap_or(scope.now() + IDLE_TIME_MAX);
        Intent::of(self).bytes(1).deadline(until)
    }
}

impl<C> Protocol for LineEcho<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        LineEcho(PhantomData).idle(scope)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let line = &transport.input[..matched.len()];
        if !line.ends_with(b"\n") {
            // The first byte of a line: the time limit begins now.
            return Intent::of(self)
                .delimiter(b"\n", LINE_BYTES_MAX)
                .deadline(scope.now() + LINE_TIME_MAX);
        }
        if let Err(error) = transport.output.write_all(line) {
            return Intent::error(error);
        }
        matched.consume(transport.input);
        if scope.draining_until().is_some() && transport.input.is_empty() {
            return Intent::done();
        }
        self.idle(scope)
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }

    /// Lines that have arrived are still sent back: they wait in the input while the peer does not
    /// read. So is a line that arrives within the grace, because its sender does not know about the
    /// drain.
    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        if transport.input.is_empty() {
            return self.idle(scope);
        }
        Intent::of(self).keep().keep_deadline()
    }
}
