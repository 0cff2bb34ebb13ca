//! Protocols that run inside another one: they get the same calls as on a socket.
#![forbid(unsafe_code)]

mod probe;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use probe::{Event, Log, Probe, Seed, echo_lines, probe_with, seed};
use rotor_core::{Scope, Time};
use rotor_stream::testing::Driver;
use rotor_stream::{
    Buf, BytesHeld, Fatal, Intent, Layered, LayeredResult, Matched, Output, Protocol, StreamConfig,
    Transport,
};

/// Runs a probe inside frames of kind, length and payload. Output is sent as far as the window
/// allows; the peer opens the window.
struct Frames {
    probe: Layered<Probe>,
    window: usize,
}

/// The maximum payload of a frame, in bytes.
const FRAME_MAX: usize = 100;

impl Frames {
    /// Sends what the window allows. Returns whether there was anything to send.
    fn send(&mut self, transport: &mut Transport<'_>) -> bool {
        let before = self.window;
        while self.window > 0 && !self.probe.output().is_empty() {
            let mut frame = Output::new();
            let count = self.window.min(FRAME_MAX);
            let moved = self.probe.output().move_to(&mut frame, count).expect("open");
            transport.output.write_all(&[b'D', moved as u8]).expect("open");
            frame.move_to(transport.output, moved).expect("open");
            self.window -= moved;
        }
        before != self.window
    }

    fn follow(
        mut self,
        mut ran: LayeredResult,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        while self.send(transport) || matches!(ran, LayeredResult::Again) {
            if !matches!(ran, LayeredResult::Failed(_)) {
                ran = self.probe.pass(scope);
            }
        }
        if matches!(ran, LayeredResult::Failed(_)) {
            assert!(
                matches!(self.probe.pass(scope), LayeredResult::Failed(None)),
                "it did not end well"
            );
        }
        let end = match ran {
            LayeredResult::Failed(_) => b"R\0",
            LayeredResult::Done if self.probe.output().is_empty() => b"E\0",
            LayeredResult::Waits | LayeredResult::Again | LayeredResult::Done => {
                let until = self.probe.deadline();
                return Intent::of(self).bytes(2).deadline(until);
            }
        };
        transport.output.write_all(end).expect("open");
        Intent::done()
    }
}

impl Protocol for Frames {
    type Context = Log;
    /// The probe's seed, the window, and the outer configuration.
    type Seed = (Seed, usize, Arc<StreamConfig>);

    fn create(
        (seed, window, within): Self::Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let (probe, ran) = Layered::begin(seed, Buf::new(), true, &within, scope);
        Frames { probe, window }.follow(ran, transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let (kind, len) = (transport.input[0], usize::from(transport.input[1]));
        if transport.input.len() < 2 + len {
            return Intent::of(self).bytes(2 + len).keep_deadline();
        }
        let payload = &transport.input[2..2 + len];
        let ran = match kind {
            b'D' => {
                self.probe.input().extend(payload);
                self.probe.pass(scope)
            }
            b'W' => {
                self.window += payload.iter().map(|more| usize::from(*more)).sum::<usize>();
                LayeredResult::Waits
            }
            // For this many seconds others go first.
            b'X' => {
                self.probe.excuse(scope.now() + Duration::from_secs(payload[0].into()));
                LayeredResult::Waits
            }
            // Sends what the window now allows, and calls nothing.
            b'w' => {
                self.window += payload.iter().map(|more| usize::from(*more)).sum::<usize>();
                transport.input.consume(2 + len);
                self.send(transport);
                return Intent::of(self).bytes(2).keep_deadline();
            }
            b'R' => self.probe.reset(scope),
            _ => self.probe.input_ended(kind == b'T', scope),
        };
        transport.input.consume(2 + len);
        self.follow(ran, transport, scope)
    }

    fn wakeup(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        let ran = self.probe.wakeup(scope);
        self.follow(ran, transport, scope)
    }

    fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let ran = self.probe.timeout(scope);
        self.follow(ran, transport, scope)
    }

    fn draining(
        mut self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let ran = self.probe.draining(until, scope);
        self.follow(ran, transport, scope)
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        self.probe.lost(error, scope);
    }
}

fn layered(seed: Seed, window: usize) -> Driver<Frames> {
    Driver::new((seed, window, StreamConfig::standard()), Log::new())
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8], payload].concat()
}

/// The payload of the data frames, and the kinds of the other frames.
fn received(driver: &Driver<Frames>) -> (String, String) {
    let encoded = driver.take_received();
    let (mut left, mut data, mut others) = (&encoded[..], Vec::new(), String::new());
    while let [kind, len, rest @ ..] = left {
        let (payload, rest) = rest.split_at(usize::from(*len));
        match kind {
            b'D' => data.extend_from_slice(payload),
            kind => others.push(char::from(*kind)),
        }
        left = rest;
    }
    (String::from_utf8_lossy(&data).into_owned(), others)
}

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

/// Writes more than the peer takes, and holds its input, until it is woken, told of a drain or late.
fn hold_first(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Create => {
            transport.output.write_all(&[b'x'; 1000]).expect("open");
            Intent::of(me).hold().deadline(scope.now() + Duration::from_secs(5))
        }
        Event::Exception(_) => Intent::done(),
        _ => {
            if let Event::Read(_) = event {
                transport.input.consume(1);
                transport.output.write_all(b"y").expect("open");
            }
            Intent::of(me).bytes(1).no_deadline()
        }
    }
}

/// The same, but waits for room to write, too.
fn hold_or_flush(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Create => {
            transport.output.write_all(&[b'x'; 1000]).expect("open");
            Intent::of(me).hold().or_flush(10).no_deadline()
        }
        _ => hold_first(me, event, transport, scope),
    }
}

#[test]
fn a_holding_protocol_gets_what_had_arrived_though_its_output_is_not_taken() {
    let slow = "fatal: the peer does not read what is sent to it";
    let config = || StreamConfig::new().flush_timeout(Duration::from_secs(2));
    let expected = ["create", "timeout", "read \"a\"", "read \"b\"", slow];
    let mut direct = probe_with::<false>(config(), |peer| peer.limit_room(0), hold_first);
    let mut driver = layered(seed(config(), hold_first), 0);
    direct.send(b"a");
    driver.send(&frame(b'D', b"a"));
    for seconds in [3, 1] {
        direct.advance(Duration::from_secs(seconds));
        driver.advance(Duration::from_secs(seconds));
        assert_eq!((direct.context().len(), driver.context().len()), (1, 1), "it holds");
        // This much later it can still arrive.
        if seconds == 3 {
            direct.send(b"b");
            driver.send(&frame(b'D', b"b"));
        }
    }
    direct.make_room(10_000);
    driver.send(&frame(b'W', &[255]));
    direct.advance(Duration::from_secs(1));
    driver.advance(Duration::from_secs(1));
    assert_eq!(*direct.context(), expected);
    assert_eq!(*driver.context(), expected);
    assert!(!direct.is_alive() && direct.take_received().is_empty());
    assert_eq!(received(&driver), (String::new(), "R".into()));
    // A protocol that ends itself: no ordinary end may follow the lost output.
    let ends =
        |me: Probe, event: &Event, transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>| {
            match event {
                Event::Timeout => Intent::done(),
                _ => hold_first(me, event, transport, scope),
            }
        };
    let mut driver = layered(seed(config(), ends), 0);
    driver.advance(Duration::from_secs(3));
    driver.send(&frame(b'W', &[255]));
    driver.advance(Duration::from_secs(3));
    assert_eq!(received(&driver), (String::new(), "R".into()));
}

/// Waits for nothing.
fn sleep(me: Probe, _: &Event, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Probe> {
    Intent::of(me).sleep().no_deadline()
}

/// The events; without the system's error, which on a socket depends on the call that failed.
fn events(log: &Log) -> Vec<&str> {
    let without_kind = |event| {
        [": connection reset", ": broken pipe"]
            .iter()
            .fold(event, |event: &str, kind| event.strip_suffix(kind).unwrap_or(event))
    };
    log.iter().map(|event| without_kind(event)).collect()
}

#[test]
fn a_layered_protocol_gets_the_same_events_after_a_reset_as_on_a_socket() {
    type Handler = fn(Probe, &Event, &mut Transport<'_>, &mut Scope<'_, Log>) -> Intent<Probe>;
    let handlers: [(&str, Handler, bool); 4] = [
        ("echo", echo_lines, false),
        ("hold", hold_first, true),
        ("hold or flush", hold_or_flush, false),
        ("sleep", sleep, false),
    ];
    for (name, handler, goes_on) in handlers {
        for later in ["wakeup", "drain", "timeout"] {
            let mut direct =
                probe_with::<false>(StreamConfig::new(), |peer| peer.limit_room(0), handler);
            let mut driver = layered(seed(StreamConfig::new(), handler), 0);
            direct.peer().send(b"a\nb");
            direct.reset();
            driver.send(&[frame(b'D', b"a\nb"), frame(b'R', b"")].concat());
            assert_eq!(events(direct.context()), events(driver.context()), "{name}, at the reset");
            assert_eq!(direct.is_alive(), goes_on, "{name}");
            if !goes_on {
                assert_eq!(received(&driver), (String::new(), "R".into()), "{name}");
                continue;
            }
            direct.make_room(10_000);
            match later {
                "wakeup" => {
                    direct.wakeup();
                    driver.wakeup();
                }
                "drain" => {
                    direct.drain(Duration::from_secs(3));
                    driver.drain(Duration::from_secs(3));
                }
                _ => {
                    direct.advance(Duration::from_secs(6));
                    driver.advance(Duration::from_secs(6));
                }
            }
            let log = events(driver.context());
            assert_eq!(events(direct.context()), log, "{name}, {later}");
            assert_eq!(log.iter().filter(|event| event.starts_with("read")).count(), 3);
            assert!(!direct.is_alive());
            assert_eq!(received(&driver), (String::new(), "R".into()), "{name}, {later}");
        }
    }
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
