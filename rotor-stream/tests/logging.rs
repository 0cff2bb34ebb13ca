//! The log messages of a listener. Runs in its own process, since a process has one log.

mod probe;

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use log::{LevelFilter, Log as Logger, Metadata, Record};
use probe::{Log, seed};
use rotor_stream::testing::{ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig, Intent, Stream, StreamConfig, StreamError};

/// No descriptor is left.
const EMFILE: i32 = 24;

static WARNINGS: AtomicUsize = AtomicUsize::new(0);

struct Counter;

impl Logger for Counter {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        if record.level() == log::Level::Warn {
            assert!(
                record.args().to_string().contains("accepting rests for 100ms: "),
                "{}",
                record.args()
            );
            WARNINGS.fetch_add(1, SeqCst);
        }
    }
    fn flush(&self) {}
}

#[test]
fn a_listener_without_descriptors_warns_once_a_second_at_most() {
    log::set_logger(&Counter).expect("the first logger");
    log::set_max_level(LevelFilter::Trace);
    // Accepting fails, or what is accepted cannot be served.
    for can_accept in [false, true] {
        WARNINGS.store(0, SeqCst);
        let mut test =
            TestLoop::<Accept<Stream<probe::Probe, ScriptedSocket>, ScriptedListener>>::new(
                Log::new(),
            );
        let (listener, door) = listener(test.world());
        let seed = seed(StreamConfig::new(), |_, _, _, _| {
            Intent::error(StreamError::Socket(io::Error::from_raw_os_error(EMFILE)))
        });
        test.add(|scope| Accept::listen(listener, seed, AcceptConfig::new(), scope));
        let mut peers = Vec::new();
        for _ in 0..100 {
            match can_accept {
                true => peers.push(door.connect()),
                false => door.fail(io::Error::from_raw_os_error(EMFILE)),
            }
        }
        test.settle();
        test.advance(Duration::from_secs(5));
        assert!(door.accepts() > 40, "{}", door.accepts());
        assert!((5..=6).contains(&WARNINGS.load(SeqCst)), "{can_accept}: {WARNINGS:?}");
    }
}
