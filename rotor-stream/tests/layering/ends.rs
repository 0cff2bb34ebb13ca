//! Ends and losses in each state of a layered protocol: the same follows as on a socket.

use std::io::Write;
use std::time::Duration;

use rotor_core::Scope;
use rotor_stream::{Intent, StreamConfig, Transport};

use crate::frames::{frame, layered, received};
use crate::probe::{Event, Log, Probe, echo_lines, probe_with, seed};

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

/// Ends its output after the first byte, and reads on; sleeps after the end of its input.
fn half_close(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Create => Intent::of(me).bytes(1).no_deadline(),
        Event::Read(_) => {
            transport.input.consume(1);
            transport.output.write_all(b"bye").unwrap_or_else(|error| {
                scope.push(format!("write: {error}"));
            });
            transport.shutdown_write();
            Intent::of(me).bytes(1).no_deadline()
        }
        _ => Intent::of(me).sleep().no_deadline(),
    }
}

/// What a layered protocol is told, and a protocol on a socket in the same order.
#[test]
fn a_layered_protocol_in_any_state_ends_as_on_a_socket() {
    type Handler = fn(Probe, &Event, &mut Transport<'_>, &mut Scope<'_, Log>) -> Intent<Probe>;
    let handlers: [(&str, Handler); 5] = [
        ("echo", echo_lines),
        ("half close", half_close),
        ("hold", hold_first),
        ("hold or flush", hold_or_flush),
        ("sleep", sleep),
    ];
    // D: input. E, T: the end of the input. R: reset. W: wake-up. L: drain. F: time for the output.
    let courses =
        ["DER", "ER", "TR", "DTR", "EDR", "DRWL", "DWR", "EWR", "DFWR", "FDWR", "DLR", "FEW"];
    for (name, handler) in handlers {
        for course in courses {
            let config = || StreamConfig::new().flush_timeout(Duration::from_secs(3));
            let mut direct = probe_with::<false>(config(), |peer| peer.limit_room(0), handler);
            let mut driver = layered(seed(config(), handler), 0);
            let mut has_ended = false;
            for step in course.bytes() {
                match step {
                    b'D' if !has_ended => {
                        direct.send(b"ab\n");
                        driver.send(&frame(b'D', b"ab\n"));
                    }
                    b'D' => {}
                    b'E' => {
                        direct.end();
                        driver.send(&frame(b'E', b""));
                        has_ended = true;
                    }
                    b'T' => {
                        direct.peer().fail_read(std::io::ErrorKind::UnexpectedEof);
                        direct.settle();
                        driver.send(&frame(b'T', b""));
                        has_ended = true;
                    }
                    b'R' => {
                        direct.reset();
                        driver.send(&frame(b'R', b""));
                    }
                    b'W' => {
                        direct.wakeup();
                        driver.wakeup();
                    }
                    b'L' => {
                        direct.drain(Duration::from_secs(100));
                        driver.drain(Duration::from_secs(100));
                    }
                    _ => {
                        direct.advance(Duration::from_secs(4));
                        driver.advance(Duration::from_secs(4));
                    }
                }
            }
            let log = events(driver.context());
            assert_eq!(events(direct.context()), log, "{name}, {course}");
            assert_eq!(
                (direct.failures(), driver.failures()),
                (vec![], vec![]),
                "{name}, {course}"
            );
        }
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
fn no_orderly_end_follows_discarded_output_of_a_layered_protocol() {
    // It ends its output before the peer is late, or afterwards.
    for is_before in [true, false] {
        let handler = move |me: Probe,
                            event: &Event,
                            transport: &mut Transport<'_>,
                            scope: &mut Scope<'_, Log>| {
            match event {
                Event::Create => {
                    let intent = hold_first(me, event, transport, scope);
                    if is_before {
                        transport.shutdown_write();
                    }
                    intent
                }
                Event::Wakeup => {
                    transport.shutdown_write();
                    Intent::of(me).hold().keep_deadline()
                }
                _ => Intent::done(),
            }
        };
        let config = StreamConfig::new()
            .flush_timeout(Duration::from_secs(2))
            .close_timeout(Duration::from_secs(2));
        let mut driver = layered(seed(config, handler), 0);
        driver.advance(Duration::from_secs(3));
        driver.wakeup();
        assert_eq!(received(&driver), (String::new(), String::new()), "{is_before}");
        driver.advance(Duration::from_secs(3));
        assert_eq!(received(&driver), (String::new(), "R".into()), "{is_before}");
    }
}

/// Fills its output whenever there is room, without end, and holds its input.
fn produce(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    _: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    if let Event::Create | Event::Flushed = event {
        transport.output.write_all(&[b'x'; 1000]).expect("open");
    }
    Intent::of(me).hold().or_flush(10).no_deadline()
}

#[test]
fn a_producer_that_holds_its_input_ends_soon_after_a_loss() {
    for budget in [1, 1024] {
        for is_reset in [true, false] {
            let config =
                || StreamConfig::new().flush_timeout(Duration::from_secs(3)).calls_budget(budget);
            let mut direct = probe_with::<false>(config(), |peer| peer.limit_room(0), produce);
            let mut driver = layered(seed(config(), produce), 0);
            direct.send(b"ab");
            driver.send(&frame(b'D', b"ab"));
            if is_reset {
                direct.reset();
                driver.send(&frame(b'R', b""));
            } else {
                direct.advance(Duration::from_secs(4));
                driver.advance(Duration::from_secs(4));
            }
            let log = events(direct.context());
            // It may want its input only after these.
            let flushes = log.iter().filter(|event| event.starts_with("flushed")).count();
            assert_eq!(flushes, 1024);
            assert!(log.last().expect("it was made").starts_with("fatal"));
            assert_eq!(log, events(driver.context()));
            assert!(!direct.is_alive());
        }
    }
}
