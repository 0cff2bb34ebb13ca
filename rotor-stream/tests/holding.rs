//! The bytes held by all streams of one configuration: what counts, which streams find no room, and
//! that every end returns the bytes.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{Scope, Time};
use rotor_stream::testing::Driver;
use rotor_stream::{
    AbortReason, BytesHeld, Exception, Fatal, Intent, Matched, Output, Protocol, StreamConfig,
    Transport,
};

const BLOCK: usize = 16 * 1024;

/// A line requests a number of bytes, written as bytes, as a block or from a file; or it replaces
/// the output with another one of that many bytes, or an empty one. It may also request the end, or
/// a panic.
struct Talker;

/// The errors that ended streams.
type Fatals = Vec<String>;

impl Protocol for Talker {
    type Context = Fatals;
    type Seed = Arc<StreamConfig>;

    fn config(seed: &Arc<StreamConfig>) -> Arc<StreamConfig> {
        seed.clone()
    }

    fn create(_: Self::Seed, _: &mut Transport<'_>, _: &mut Scope<'_, Fatals>) -> Intent<Self> {
        Intent::of(Talker).delimiter(b"\n", 60_000).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Fatals>,
    ) -> Intent<Self> {
        let words = String::from_utf8(line.content(transport.input).to_vec()).expect("text");
        line.consume(transport.input);
        let mut words = words.split(' ');
        let (what, count) =
            (words.next().expect("a word"), words.next().unwrap_or("0").parse().expect("a number"));
        match what {
            "bytes" => transport.output.write_all(&vec![b'x'; count]).expect("open"),
            "block" => transport.output.push_block(vec![b'x'; count]).expect("open"),
            "file" => {
                let file = File::open("/dev/zero").expect("it is there");
                transport.output.push_file(Arc::new(file), 0, count).expect("open");
            }
            "panic" => panic!("as asked"),
            "take" => drop(std::mem::take(transport.output)),
            "swap" => {
                let mut other = Output::new();
                other.write_all(&vec![b'y'; count]).expect("open");
                *transport.output = other;
            }
            _ => {}
        }
        if words.next() == Some("done") {
            Intent::done()
        } else {
            Intent::of(self).keep().keep_deadline()
        }
    }

    fn wakeup(self, _: &mut Transport<'_>, _: &mut Scope<'_, Fatals>) -> Intent<Self> {
        panic!("as asked")
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Fatals>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Fatals>) {
        scope.push(format!("{error:?}"));
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, Fatals>) -> Intent<Self> {
        Intent::of(self).keep().keep_deadline()
    }
}

/// The reasons why streams were aborted.
type Aborts = Arc<Mutex<Vec<AbortReason>>>;

/// Streams of one configuration whose peers read nothing.
fn streams(max: usize) -> (impl Fn() -> Driver<Talker>, Arc<BytesHeld>, Aborts) {
    let (held, aborts) = (BytesHeld::new(max), Arc::new(Mutex::new(Vec::new())));
    let abort_log = aborts.clone();
    let config = StreamConfig::new().held(Some(held.clone()));
    let config =
        config.on_abort(move |reason| abort_log.lock().expect("no panic").push(reason)).share();
    (move || Driver::with(config.clone(), Fatals::new(), |peer| peer.limit_room(0)), held, aborts)
}

#[test]
fn waiting_bytes_are_counted_by_their_memory_until_processed() {
    let steps: [(&str, usize); 9] = [
        ("a", 64),
        (&"b".repeat(99), 128),
        (&"c".repeat(BLOCK / 8), BLOCK),
        ("\n", 0),
        ("bytes 10\n", BLOCK),
        ("bytes 20000\nd", 2 * BLOCK + 64),
        ("\nblock 30016\n", 2 * BLOCK + 30_016),
        ("file 20\n", 2 * BLOCK + 30_016),
        ("e", 2 * BLOCK + 30_016 + 64),
    ];
    let (connect, held, _) = streams(1 << 20);
    let mut driver = connect();
    for (sent, expected) in steps {
        driver.send(sent.as_bytes());
        assert_eq!(
            held.bytes(),
            expected,
            "after {} bytes: {:.20}",
            sent.len(),
            sent.escape_debug()
        );
    }
    driver.make_room(usize::MAX);
    assert_eq!(driver.take_received().len(), 10 + 20_000 + 30_016 + 20);
    assert_eq!(held.bytes(), 64);
    driver.send(b"\nbytes 50000\n");
    assert_eq!((driver.received_len(), held.bytes()), (50_000, 0));
}

#[test]
fn a_stream_releases_its_held_bytes_however_it_ends() {
    type End = fn(Driver<Talker>);
    let ends: [(&str, End); 8] = [
        ("it is done and its peer takes all", |mut driver| {
            driver.send(b"\nbytes 1 done\n");
            driver.make_room(usize::MAX);
        }),
        ("it is done and its peer takes nothing", |mut driver| {
            driver.send(b"\nbytes 1 done\n");
            driver.advance(Duration::from_secs(100));
        }),
        ("its peer takes nothing", |mut driver| driver.advance(Duration::from_secs(100))),
        ("its peer ends and takes nothing", |mut driver| {
            driver.end();
            driver.advance(Duration::from_secs(100));
        }),
        ("it is reset", |mut driver| driver.reset()),
        ("it panics", |mut driver| driver.send(b"\npanic\n")),
        ("it panics elsewhere", |mut driver| driver.wakeup()),
        ("its loop is dropped", drop),
    ];
    for (name, end) in ends {
        let (connect, held, _) = streams(1 << 20);
        let mut driver = connect();
        driver.send(b"bytes 1000\nblock 2001\nabc");
        assert_eq!(held.bytes(), BLOCK + 2_048 + 64, "{name}");
        end(driver);
        assert_eq!(held.bytes(), 0, "{name}");
    }
}

#[test]
fn a_replaced_output_takes_nothing_of_the_total_with_it() {
    let (connect, held, _) = streams(1 << 20);
    for sent in ["bytes 1000\ntake\n", "bytes 1000\nswap 0\n"] {
        let mut driver = connect();
        for line in sent.split_inclusive('\n') {
            driver.send(line.as_bytes());
        }
        assert_eq!(held.bytes(), 0, "{sent:?}");
        driver.send(b"block 5056\n");
        assert_eq!(held.bytes(), 5_056, "{sent:?}");
        driver.send(b"swap 10\n");
        assert_eq!(held.bytes(), BLOCK, "{sent:?}");
        drop(driver);
        assert_eq!(held.bytes(), 0, "{sent:?}");
    }
}

#[test]
fn a_stream_without_room_ends_and_the_others_continue() {
    for (sent, each) in [("half a line", 64), ("bytes 10000\n", BLOCK), ("block 5000\n", 5_056)] {
        let (connect, held, aborts) = streams(3 * each);
        let mut three: Vec<_> = (0..3).map(|_| connect()).collect();
        for driver in &mut three {
            driver.send(sent.as_bytes());
        }
        assert_eq!(held.bytes(), 3 * each, "{sent:?}");
        let mut fourth = connect();
        fourth.send(sent.as_bytes());
        assert!(!fourth.is_alive(), "{sent:?}");
        assert_eq!(*fourth.context(), ["NoRoom"]);
        let mut fifth = connect();
        fifth.make_room(usize::MAX);
        fifth.send(b"bytes 100000\n");
        assert_eq!(fifth.take_received().len(), 100_000, "what does not wait needs no room");
        // A stream that is done gets no more calls, but the hook that counts aborts does.
        let mut sixth = connect();
        sixth.send(b"bytes 20000 done\n");
        assert!(!sixth.is_alive() && sixth.context().is_empty(), "{sent:?}");
        assert_eq!(*aborts.lock().expect("no panic"), [AbortReason::NoRoom]);
        assert!(three.iter_mut().all(Driver::is_alive));
        drop(three);
        assert_eq!(held.bytes(), 0, "{sent:?}");
    }
}

#[test]
fn streams_without_a_total_have_only_their_own_limits() {
    let config = StreamConfig::new().share();
    let mut driver = Driver::<Talker>::with(config, Fatals::new(), |peer| peer.limit_room(0));
    driver.send(b"block 1000000\n");
    assert!(driver.is_alive());
}
