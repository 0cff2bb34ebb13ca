//! Protocols that run inside another one: they get the same calls as on a socket.
#![forbid(unsafe_code)]

mod ends;
mod frames;
#[path = "../probe/mod.rs"]
mod probe;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frames::{Frames, frame, layered, received};
use probe::{Event, Log, Probe, echo_lines, probe_with, seed};
use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{BytesHeld, Intent, StreamConfig, Transport};

#[test]
fn a_layered_protocol_gets_the_same_events_as_on_a_socket() {
    let text = b"one\ntwo, which is longer\n\nthree\nrest";
    for cut in [1, 2, 3, 7, text.len()] {
        let mut direct = probe_with::<false>(StreamConfig::new(), |_| (), echo_lines);
        let mut driver = layered(seed(StreamConfig::new(), echo_lines), usize::MAX);
        for piece in text.chunks(cut) {
            direct.send(piece);
            driver.send(&frame(b'D', piece));
        }
        assert_eq!(direct.context(), driver.context(), "before the end, {cut}");
        direct.end();
        driver.send(&frame(b'E', b""));
        assert_eq!(direct.context(), driver.context(), "{cut}");
        let echoed = String::from_utf8(direct.take_received()).expect("text");
        assert_eq!(received(&driver), (echoed, "E".into()), "{cut}");
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn aborts_drains_and_losses_are_reported_to_a_layered_protocol() {
    let mut driver = layered(seed(StreamConfig::new(), echo_lines), usize::MAX);
    driver.send(&frame(b'T', b""));
    let cut = "exception: the connection was aborted before the peer ended the stream";
    assert_eq!(*driver.context(), ["create", cut]);

    let mut driver = layered(seed(StreamConfig::new(), echo_lines), usize::MAX);
    driver.drain(Duration::from_secs(9));
    driver.reset();
    assert_eq!(
        *driver.context(),
        ["create", "draining", "fatal: the connection broke: connection reset"]
    );
}

#[test]
fn a_wakeup_of_the_layer_can_be_passed_on() {
    let handler =
        |me: Probe, event: &Event, transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>| {
            assert!(transport.is_secure() && transport.peer_address().is_none());
            match event {
                Event::Create => {
                    scope.wake_self();
                    Intent::of(me).bytes(1).no_deadline()
                }
                _ => Intent::done(),
            }
        };
    let driver = layered(seed(StreamConfig::new(), handler), usize::MAX);
    assert_eq!(*driver.context(), ["create", "wakeup"]);
    assert_eq!(received(&driver).1, "E");
}

#[test]
fn a_deadline_of_a_layered_protocol_fires_once() {
    let handler = |me: Probe, event: &Event, _: &mut Transport<'_>, scope: &mut Scope<'_, Log>| {
        let until = scope.now() + Duration::from_secs(5);
        match event {
            Event::Create => Intent::of(me).bytes(1).deadline(until),
            _ => Intent::of(me).keep().keep_deadline(),
        }
    };
    let mut driver = layered(seed(StreamConfig::new(), handler), usize::MAX);
    driver.advance(Duration::from_millis(4_900));
    assert_eq!(*driver.context(), ["create"]);
    driver.advance(Duration::from_secs(60));
    assert_eq!(*driver.context(), ["create", "timeout"]);
}

/// A probe whose output must be taken at ten bytes a second, through a window that is closed at
/// first.
fn with_closed_window() -> Driver<Frames> {
    let config = StreamConfig::new()
        .output_high_water(20)
        .flush_step(100)
        .flush_timeout(Duration::from_secs(10))
        .close_timeout(Duration::from_secs(10));
    layered(seed(config, echo_lines), 0)
}

#[test]
fn a_closed_window_holds_input_back_until_it_opens() {
    let mut driver = with_closed_window();
    driver.send(&frame(b'D', b"a line of some thirty characters\nand another\n"));
    assert_eq!(driver.context().len(), 2, "above the mark the second line waits");
    assert_eq!(received(&driver), (String::new(), String::new()));
    driver.send(&frame(b'W', &[30]));
    assert_eq!(received(&driver).0, "a line of some thirty characte");
    assert_eq!(driver.context().len(), 3);
    driver.send(&frame(b'E', b""));
    driver.send(&frame(b'W', &[30]));
    assert_eq!(received(&driver), ("rs\nand another\n".into(), "E".into()));
}

#[test]
fn a_peer_that_does_not_open_its_window_counts_as_a_slow_reader() {
    let slow = "fatal: the peer does not read what is sent to it";
    let line = [&[b'l'; 199][..], b"\n"].concat();
    let mut driver = with_closed_window();
    driver.send(&frame(b'D', &line));
    // As fast as required.
    driver.advance(Duration::from_secs(9));
    driver.send(&frame(b'W', &[100]));
    driver.advance(Duration::from_secs(9));
    driver.send(&frame(b'W', &[50]));
    assert!(!driver.context().contains(&slow.into()));
    driver.advance(Duration::from_secs(12));
    assert_eq!(driver.context().last().map(String::as_str), Some(slow));
    assert_eq!(received(&driver).1, "R");
    // The same once it is done.
    let mut driver = with_closed_window();
    driver.send(&frame(b'D', &line));
    driver.send(&frame(b'W', &[190]));
    driver.send(&frame(b'E', b""));
    driver.advance(Duration::from_secs(11));
    assert_eq!(received(&driver).1, "R");
}

#[test]
fn unset_options_of_a_layered_protocol_come_from_its_layer() {
    let held = BytesHeld::new(1 << 20);
    let aborted = Arc::new(AtomicU32::new(0));
    let counter = aborted.clone();
    let within = StreamConfig::new()
        .input_max(300)
        .held(Some(held.clone()))
        .close_timeout(Duration::from_secs(10))
        .on_abort(move |_| {
            counter.fetch_add(1, Relaxed);
        })
        .share();
    let own = StreamConfig::new().close_timeout(Duration::from_secs(10)).share();
    for config in [own, StreamConfig::standard()] {
        let mut seed = seed(StreamConfig::new(), echo_lines);
        seed.config = config;
        let mut driver = Driver::<Frames>::new((seed, 0, within.clone()), Log::new());
        driver.send(&frame(b'D', b"a line\n"));
        assert!(held.bytes() > 0, "it waits for the window");
        driver.send(&frame(b'E', b""));
        let before = aborted.load(Relaxed);
        driver.advance(Duration::from_secs(11));
        assert_eq!(received(&driver).1, "R");
        assert_eq!(aborted.load(Relaxed), before + 1);
        drop(driver);
        assert_eq!(held.bytes(), 0);
    }
}

#[test]
fn output_taken_since_the_last_call_counts_when_the_deadline_passes() {
    let line = [&[b'l'; 199][..], b"\n"].concat();
    let mut driver = with_closed_window();
    driver.send(&frame(b'D', &line));
    driver.advance(Duration::from_secs(9));
    // As fast as required, and then all of it.
    driver.send(&frame(b'w', &[100]));
    driver.advance(Duration::from_secs(9));
    driver.send(&frame(b'w', &[100]));
    driver.advance(Duration::from_secs(100));
    assert_eq!(received(&driver), (String::from_utf8(line).expect("text"), String::new()));
}

#[test]
fn a_peer_is_not_late_while_the_layer_serves_others_first() {
    let slow = "fatal: the peer does not read what is sent to it";
    let is_late =
        |driver: &Driver<Frames>| driver.context().last().is_some_and(|last| last == slow);
    let mut driver = with_closed_window();
    // While nothing is pending, nobody is late.
    driver.send(&frame(b'X', &[1]));
    driver.send(&frame(b'D', &[&[b'l'; 199][..], b"\n"].concat()));
    driver.advance(Duration::from_secs(9));
    driver.send(&frame(b'X', &[20]));
    driver.advance(Duration::from_secs(1));
    // A shorter excuse changes nothing, as the peer already has longer.
    driver.send(&frame(b'X', &[2]));
    driver.advance(Duration::from_secs(18));
    assert!(!is_late(&driver));
    driver.advance(Duration::from_secs(1));
    assert!(is_late(&driver));
    assert_eq!(received(&driver).1, "R");
}
