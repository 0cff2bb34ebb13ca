//! The warnings of listeners and streams. They run in a process of their own, since a process has
//! one log.

mod probe;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use log::{LevelFilter, Log as Logger, Metadata, Record};
use probe::{Event, Log, probe_with, seed};
use rotor_stream::testing::{ScriptedListener, ScriptedSocket, Target, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, Intent, Persistent, PersistentSeed, Stream, StreamConfig, StreamError,
};
use rotor_test_kit::Directory;

/// No descriptor is left.
const EMFILE: i32 = 24;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl Logger for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        if record.level() <= log::Level::Warn {
            WARNINGS.lock().expect("nobody panics with it").push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

fn start_log() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        log::set_logger(&Warnings).expect("the first logger");
        log::set_max_level(LevelFilter::Trace);
    });
}

/// Removes and returns the warnings that contain these words.
fn take_warnings(words: &str) -> Vec<String> {
    let mut warnings = WARNINGS.lock().expect("nobody panics with it");
    warnings.extract_if(.., |warning| warning.contains(words)).collect()
}

#[test]
fn a_listener_without_descriptors_warns_once_a_second_at_most() {
    start_log();
    // Accepting fails, or what is accepted cannot be served.
    for can_accept in [false, true] {
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
        let warnings = take_warnings("accepting rests for 100ms: ");
        assert!((5..=6).contains(&warnings.len()), "{can_accept}: {warnings:?}");
    }
}

#[test]
fn a_failure_is_logged_with_all_its_causes() {
    start_log();
    let fail = || StreamError::Socket(io::Error::other("the cause"));
    let address = ([10, 0, 0, 1], 6379).into();
    let mut test = TestLoop::<Persistent<probe::Probe, ScriptedSocket>>::new(Log::new());
    test.world().target(address, Target::Accepts);
    let seed = seed(StreamConfig::new(), move |_, _, _, _| Intent::error(fail()));
    let persistent = PersistentSeed::new(address, seed.clone());
    test.add(|scope| Persistent::new(persistent, scope));
    let [warning] = &take_warnings("is made again: a socket cannot be used: the cause")[..] else {
        panic!("it was not logged, or not with its cause")
    };
    assert!(warning.contains("Probe"), "{warning}");

    let panics = probe::seed(StreamConfig::new(), |_, _, _, _| panic!("a bug"));
    for (seed, expected) in [
        (seed, "the machine could not be made: a socket cannot be used: the cause"),
        (panics, "making the machine panicked: a bug"),
    ] {
        let mut test =
            TestLoop::<Accept<Stream<probe::Probe, ScriptedSocket>, ScriptedListener>>::new(
                Log::new(),
            );
        let (listener, door) = listener(test.world());
        test.add(|scope| Accept::listen(listener, seed, AcceptConfig::new(), scope));
        let _peer = door.connect();
        test.settle();
        let warnings = take_warnings(&format!("a connection was closed at once: {expected}"));
        assert!(warnings.len() == 1 && warnings[0].ends_with(expected), "{warnings:?}");
    }
}

/// Sends the first 11 bytes of a file, `after` the beginning of its loop. Returns the warnings.
fn warnings_of_a_file(len: usize, after: Duration, write_error: Option<ErrorKind>) -> Vec<String> {
    let directory = Directory::create();
    let path = directory.file("content", vec![b'f'; len]);
    let file = Arc::new(File::open(path).expect("it is there"));
    for ends in [false, true] {
        let file = file.clone();
        let mut driver = probe_with::<false>(
            StreamConfig::new(),
            |_| {},
            move |me, event, transport, _| {
                let Event::Read(_) = event else { return Intent::of(me).bytes(1).no_deadline() };
                transport.input.consume(1);
                transport.output.push_file(file.clone(), 0, 11).expect("open");
                if ends { Intent::done() } else { Intent::of(me).sleep().no_deadline() }
            },
        );
        driver.advance(after);
        if let Some(kind) = write_error {
            driver.peer().fail_writes(kind);
        }
        driver.send(b"y");
        assert_eq!(driver.is_dropped(), len < 11 || write_error.is_some());
    }
    take_warnings("a file cannot be sent whole")
}

#[test]
fn a_file_that_cannot_be_sent_whole_is_logged_but_not_each_time() {
    start_log();
    let none = Vec::<String>::new();
    assert_eq!(warnings_of_a_file(11, Duration::ZERO, None), none);
    assert_eq!(warnings_of_a_file(11, Duration::ZERO, Some(ErrorKind::BrokenPipe)), none);
    let second = Duration::from_secs(1);
    // The second one in the same time, which comes behind the end of its protocol, is counted.
    for (after, others) in [(second, 0), (second * 20, 1), (second * 40, 1)] {
        let warnings = warnings_of_a_file(10, after, None);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        let text = "a connection was reset because a file cannot be sent whole: a file became \
                    shorter while it was sent: File {";
        assert!(warning.starts_with(text), "{warning}");
        assert!(warning.ends_with(&format!("(before, {others} more could not)")), "{warning}");
    }
}
