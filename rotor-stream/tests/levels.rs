//! Levels of log messages: a peer that comes and goes as it likes must not fill the log. Runs in its
//! own process, since a process has one log.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::Scope;
use rotor_stream::testing::{Driver, Peer, ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

struct MemoryLogger;

impl Log for MemoryLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = (record.level(), record.args().to_string());
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn flush(&self) {}
}

fn take_logged(level: Level) -> Vec<String> {
    let lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
    lines.into_iter().filter(|(of, _)| *of <= level).map(|(_, line)| line).collect()
}

/// A server that has only what it must have: the defaults say what happens to a peer that leaves.
struct Plain;

impl Plain {
    fn next(self, scope: &Scope<'_, ()>) -> Intent<Plain> {
        Intent::of(self).delimiter(b"\n", 10).deadline(scope.now() + Duration::from_secs(1))
    }
}

impl Protocol for Plain {
    type Context = ();
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
        Plain.next(scope)
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        match &transport.input[..line.len()] {
            b"a bug\n" => return Intent::of(self).keep().keep_deadline(),
            b"refuse\n" => return Intent::error("a failure of the protocol"),
            _ => {}
        }
        line.consume(transport.input);
        match transport.output.write_all(b"ok\n") {
            Ok(()) => self.next(scope),
            Err(error) => Intent::error(error),
        }
    }
}

type Server = Accept<Stream<Plain, ScriptedSocket>, ScriptedListener>;

/// Runs a connection that is accepted. Returns what is logged at this level, and the failures that
/// the loop reports.
fn accepted(level: Level, act: impl FnOnce(&Peer, &mut TestLoop<Server>)) -> (Vec<String>, usize) {
    let mut test = TestLoop::<Server>::new(());
    let (listener, door) = listener(test.world());
    test.add(|scope| Accept::listen(listener, (), AcceptConfig::new(), scope));
    let peer = door.connect();
    test.settle();
    take_logged(Level::Trace);
    act(&peer, &mut test);
    test.settle();
    assert_eq!(test.machines(), 1, "the connection has ended");
    (take_logged(level), test.failures().len())
}

fn ends(peer: &Peer, _: &mut TestLoop<Server>) {
    peer.send(b"half a ");
    peer.end();
}

fn is_reset(peer: &Peer, _: &mut TestLoop<Server>) {
    peer.reset();
}

fn is_silent(_: &Peer, test: &mut TestLoop<Server>) {
    test.advance(Duration::from_secs(2));
}

fn sends_too_much(peer: &Peer, _: &mut TestLoop<Server>) {
    peer.send(b"eleven bytes and more");
}

#[test]
fn ends_that_peers_cause_are_logged_at_debug_level_and_own_failures_as_errors() {
    log::set_logger(&MemoryLogger).expect("the first logger");
    log::set_max_level(LevelFilter::Trace);

    // Of an accepted connection, whose peer is anybody.
    for act in [ends, is_reset, is_silent, sends_too_much] {
        let (lines, failures) = accepted(Level::Info, act);
        assert_eq!((lines, failures), (vec![], 0));
    }
    let (lines, _) = accepted(Level::Debug, ends);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with(
        "(levels::Plain) ended: input ended unexpectedly: the peer has ended the stream"
    ));
    for own_fault in [&b"a bug\n"[..], b"refuse\n"] {
        let (lines, failures) = accepted(Level::Error, |peer, _| peer.send(own_fault));
        assert_eq!((lines.len(), failures), (1, 1), "{lines:?}");
    }

    // Of a connection that was not accepted, whose peer the operator has chosen.
    let mut driver = Driver::<Plain>::new((), ());
    take_logged(Level::Trace);
    driver.end();
    assert_eq!((take_logged(Level::Error).len(), driver.failures().len()), (1, 1));
}
