//! What a protocol gets to read: expectations, limits, EOF, resets.

mod probe;

use std::io::{ErrorKind, Write};
use std::time::Duration;

use probe::{Event, Log, Probe, echo_lines, probe, probe_with};
use rotor_core::Scope;
use rotor_stream::buf::BLOCK_BYTES;
use rotor_stream::testing::{Driver, Peer};
use rotor_stream::{Expectation, Intent, StreamConfig, Transport};

#[test]
fn bytes_are_awaited_until_enough_have_arrived() {
    for (sent, is_read) in [(4, false), (5, true), (6, true)] {
        let mut driver = probe(|me, event, transport, _| match event {
            Event::Read(matched) => {
                assert_eq!((matched.len(), matched.content_len()), (5, 5));
                matched.consume(transport.input);
                Intent::of(me).sleep().no_deadline()
            }
            _ => Intent::of(me).bytes(5).no_deadline(),
        });
        driver.send(&b"123456"[..sent]);
        assert_eq!(driver.context().len(), if is_read { 2 } else { 1 }, "{sent} bytes");
    }
}

#[test]
fn waiting_for_zero_bytes_is_satisfied_at_once() {
    let driver = probe(|me, event, _, _| match event {
        Event::Create => Intent::of(me).bytes(0).no_deadline(),
        _ => Intent::of(me).sleep().no_deadline(),
    });
    assert_eq!(*driver.context(), ["create", "read \"\""]);
}

/// Waits for a byte, and polls its input when it is woken.
fn polls_when_woken<const D: bool>() -> Driver<Probe, D> {
    probe_with::<D>(
        StreamConfig::new(),
        |_| {},
        |me, event, transport, _| match event {
            Event::Wakeup => Intent::of(me).poll().no_deadline(),
            Event::Exception(_) => Intent::done(),
            _ => {
                transport.input.clear();
                Intent::of(me).bytes(1).no_deadline()
            }
        },
    )
}

#[test]
fn a_poll_finds_input_that_no_event_has_reported_yet() {
    type PeerAction = fn(&Peer);
    fn finds<const D: bool>(action: PeerAction, expected: &[&str]) {
        let mut driver = polls_when_woken::<D>();
        let reads = driver.operations().reads;
        driver.before_read(action);
        driver.wakeup();
        assert_eq!(
            driver.context()[1..],
            ["wakeup"].iter().chain(expected).copied().collect::<Vec<_>>()
        );
        assert!(driver.operations().reads > reads);
    }
    let all: [(PeerAction, &[&str]); 4] = [
        (|_| {}, &["read \"\""]),
        (|peer| peer.send(b"abc"), &["read \"\""]),
        (|peer| peer.end(), &["exception: the peer has ended the stream"]),
        (|peer| peer.reset(), &["fatal: the connection broke: connection reset"]),
    ];
    for (action, expected) in all {
        finds::<false>(action, expected);
        finds::<true>(action, expected);
    }
}

#[test]
fn a_poll_shows_the_bytes_that_it_has_found() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Wakeup => Intent::of(me).poll().no_deadline(),
        _ => {
            scope.push(String::from_utf8_lossy(transport.input).into_owned());
            transport.input.clear();
            Intent::of(me).bytes(1).no_deadline()
        }
    });
    driver.before_read(|peer| peer.send(b"abc"));
    driver.wakeup();
    assert_eq!(driver.context()[2..], ["wakeup", "read \"\"", "abc"]);
}

#[test]
fn a_poll_reads_once_unless_this_event_has_emptied_the_socket() {
    // A probe that reads a message, then polls before it continues.
    fn reads<const D: bool>() -> usize {
        let mut driver = probe_with::<D>(
            StreamConfig::new(),
            |_| {},
            |me, event, transport, _| match event {
                Event::Read(matched) if matched.len() > 0 => {
                    matched.consume(transport.input);
                    Intent::of(me).poll().no_deadline()
                }
                _ => Intent::of(me).bytes(3).no_deadline(),
            },
        );
        let before = driver.operations().reads;
        driver.send(b"abc");
        assert_eq!(*driver.context(), ["create", "read \"abc\"", "read \"\""]);
        driver.operations().reads - before
    }
    assert_eq!(reads::<true>(), 1, "a short read has emptied it");
    assert_eq!(reads::<false>(), 2, "the second finds nothing, and is made in any case");
    let mut driver = polls_when_woken::<true>();
    let before = driver.operations().reads;
    driver.wakeup();
    assert_eq!(driver.operations().reads, before + 1);
}

#[test]
fn a_poll_sees_already_read_input_first() {
    let mut driver = probe(|me, event, transport, _| match event {
        Event::Create => Intent::of(me).bytes(1).no_deadline(),
        Event::Read(matched) if matched.len() > 0 => {
            matched.consume(transport.input);
            Intent::of(me).poll().no_deadline()
        }
        _ => {
            assert_eq!(&transport.input[..], b"bc");
            Intent::of(me).sleep().no_deadline()
        }
    });
    driver.send(b"abc");
    assert_eq!(*driver.context(), ["create", "read \"a\"", "read \"\""]);
}

#[test]
fn an_endless_sequence_of_polls_is_an_error() {
    let mut driver = probe(|me, _, _, _| Intent::of(me).poll().no_deadline());
    assert!(!driver.is_alive());
    assert!(driver.failures()[0].contains("waits for bytes"), "{:?}", driver.failures());
}

#[test]
fn a_delimiter_is_found_up_to_its_limit_and_not_beyond() {
    for (max, expected) in [
        (6, "exception: the expected input is longer than 6 bytes"),
        (7, "read \"12345\""),
        (8, "read \"12345\""),
    ] {
        let mut driver = probe(move |me, event, transport, _| match event {
            Event::Create => Intent::of(me).delimiter(b"\r\n", max).no_deadline(),
            Event::Read(matched) => {
                assert_eq!((matched.len(), matched.content_len()), (7, 5));
                matched.consume(transport.input);
                assert_eq!(&transport.input[..], b"rest");
                Intent::of(me).sleep().no_deadline()
            }
            _ => Intent::done(),
        });
        driver.send(b"12345\r\nrest");
        assert_eq!(driver.context()[1], expected, "max {max}");
    }
}

#[test]
fn a_delimiter_is_searched_from_the_offset() {
    for (offset, content) in [(0, ""), (1, "\nab"), (4, "\nab\n"), (5, "exception")] {
        let mut driver = probe(move |me, event, _, _| match event {
            Event::Create => Intent::of(me)
                .expect(Expectation::Delimiter { offset, bytes: b"\n", max: 6 })
                .no_deadline(),
            _ => Intent::done(),
        });
        driver.send(b"\nab\n\nx");
        let expected = if content == "exception" {
            "exception: the expected input is longer than 6 bytes".to_string()
        } else {
            format!("read {content:?}")
        };
        assert_eq!(driver.context()[1], expected, "offset {offset}");
    }
}

#[test]
fn the_configured_limit_also_bounds_the_expected_input() {
    let config = || StreamConfig::new().input_max(4);
    for (bytes, has_limit) in [(4, false), (5, true)] {
        let driver = probe_with::<false>(
            config(),
            |_| {},
            move |me, event, _, _| match event {
                Event::Create => Intent::of(me).bytes(bytes).no_deadline(),
                _ => Intent::done(),
            },
        );
        assert_eq!(driver.context().len(), if has_limit { 2 } else { 1 }, "{bytes} bytes");
    }
    let mut driver = probe_with::<false>(config(), |_| {}, echo_lines);
    driver.send(b"abcd");
    assert_eq!(driver.context()[1], "exception: the expected input is longer than 4 bytes");
}

#[test]
fn input_before_the_end_is_delivered_before_the_end() {
    let mut driver = probe_with::<true>(
        StreamConfig::new(),
        |peer| {
            peer.send(b"one\ntwo\nhalf");
            peer.end();
        },
        echo_lines,
    );
    let exception = "exception: the peer has ended the stream";
    assert_eq!(*driver.context(), ["create", "read \"one\"", "read \"two\"", exception]);
    assert_eq!(driver.take_received(), b"one\ntwo\n");
    assert!(!driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn data_and_the_end_in_one_edge_are_both_seen_where_short_reads_drain() {
    let mut driver = probe_with::<true>(StreamConfig::new(), |_| {}, echo_lines);
    driver.peer().send(b"line\n");
    driver.peer().end();
    driver.settle();
    assert_eq!(driver.take_received(), b"line\n");
    assert!(!driver.is_alive());
}

#[test]
fn an_urgent_byte_keeps_its_place_and_does_not_block_later_input() {
    for narrow_edges in [false, true] {
        let mut driver = probe_with::<true>(StreamConfig::new(), |_| {}, echo_lines);
        if narrow_edges {
            driver.test().world().narrow_edges();
        }
        // All in one edge: the first read stops before the urgent byte, which does not mean that
        // the socket is empty.
        driver.peer().send(b"ab");
        driver.peer().send_urgent(b'!');
        driver.peer().send(b"cd\n");
        driver.settle();
        assert_eq!(driver.take_received(), b"ab!cd\n");
        assert_eq!(driver.unread_len(), 0);
        // Urgent bytes at the beginning, at the end, and alone.
        for piece in [&b"line"[..], b"", b"\n"] {
            driver.peer().send_urgent(b'*');
            driver.send(piece);
        }
        assert_eq!(driver.take_received(), b"*line**\n");
        driver.end();
        assert!(!driver.is_alive() && driver.failures().is_empty());
    }
}

#[test]
fn a_protocol_may_ask_for_less_at_the_end_of_the_stream() {
    let mut driver = probe(|me, event, transport, _| match event {
        Event::Exception(_) if !transport.input.is_empty() => {
            Intent::of(me).bytes(transport.input.len()).no_deadline()
        }
        Event::Exception(_) => Intent::done(),
        Event::Read(matched) => {
            matched.consume(transport.input);
            Intent::of(me).bytes(10).no_deadline()
        }
        _ => Intent::of(me).bytes(10).no_deadline(),
    });
    driver.send(b"short");
    driver.end();
    let end = "exception: the peer has ended the stream";
    assert_eq!(*driver.context(), ["create", end, "read \"short\"", end]);
    assert!(!driver.is_alive());
}

#[test]
fn input_before_a_reset_is_delivered_before_the_reset() {
    let mut driver = probe_with::<true>(StreamConfig::new(), |_| {}, echo_lines);
    driver.peer().send(b"last words\n");
    driver.reset();
    assert_eq!(driver.context()[1], "read \"last words\"");
    assert!(driver.context()[2].starts_with("fatal: "), "{:?}", driver.context());
    assert_eq!(driver.context().len(), 3);
    assert!(!driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn input_before_a_failed_write_is_delivered_before_the_failure() {
    let mut driver = probe_with::<true>(StreamConfig::new(), |_| {}, echo_lines);
    // The first read is short, so it seems to have emptied the socket. The second line came after
    // it, and its edge has not been delivered when writing fails.
    driver.limit_reads(6);
    driver.fail_writes(ErrorKind::BrokenPipe);
    driver.send(b"hello\nquit\n");
    assert_eq!(driver.context()[1..3], ["read \"hello\"", "read \"quit\""]);
    assert_eq!(driver.context()[3], "fatal: writing has failed: broken pipe");
    assert!(!driver.is_alive());
}

#[test]
fn a_failed_read_is_an_exception_and_output_is_still_sent() {
    let mut driver = probe(|me, event, transport, scope| {
        if let Event::Exception(_) = event {
            transport.output.write_all(b"bad record").expect("open");
        }
        echo_lines(me, event, transport, scope)
    });
    driver.peer().fail_read(ErrorKind::InvalidData);
    driver.settle();
    assert_eq!(driver.context()[1], "exception: reading has failed: invalid data");
    assert_eq!(driver.take_received(), b"bad record");
}

#[test]
fn a_protocol_that_neither_reads_nor_writes_is_notified_of_a_reset() {
    let mut driver = probe(|me, _, _, _| Intent::of(me).sleep().no_deadline());
    driver.send(b"unread");
    assert_eq!(driver.unread_len(), 6);
    driver.reset();
    assert_eq!(*driver.context(), ["create", "fatal: the connection broke: connection reset"]);
    assert!(!driver.is_alive());
}

#[test]
fn a_sleeping_protocol_reads_nothing_and_finds_the_input_later() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Create => Intent::of(me).sleep().no_deadline(),
        Event::Wakeup => Intent::of(me).delimiter(b"\n", 1024).no_deadline(),
        _ => echo_lines(me, event, transport, scope),
    });
    driver.send(b"one\n");
    driver.end();
    assert_eq!(driver.operations().reads, 0);
    driver.wakeup();
    assert_eq!(driver.take_received(), b"one\n");
    assert!(!driver.is_alive());
}

#[test]
fn a_search_restarts_when_input_was_consumed_in_between() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Wakeup => {
            transport.input.clear();
            Intent::of(me).keep().keep_deadline()
        }
        _ => echo_lines(me, event, transport, scope),
    });
    driver.send(b"no end of it");
    driver.wakeup();
    driver.send(b"x\n");
    assert_eq!(driver.take_received(), b"x\n");
}

#[test]
fn a_search_restarts_when_input_was_changed_in_place() {
    let unmask =
        |transport: &mut Transport<'_>| transport.input.iter_mut().for_each(|byte| *byte ^= 0x20);
    // The input is unmasked on a wake-up, on a deadline, and when the output was flushed.
    let handler = move |me,
                        event: &Event,
                        transport: &mut Transport<'_>,
                        scope: &mut Scope<'_, Log>| match event {
        Event::Create => {
            Intent::of(me).delimiter(b"\n", 100).deadline(scope.now() + Duration::from_secs(1))
        }
        Event::Wakeup | Event::Timeout => {
            unmask(transport);
            Intent::of(me).keep().no_deadline()
        }
        Event::Flushed => {
            unmask(transport);
            Intent::of(me).delimiter(b"\n", 100).no_deadline()
        }
        Event::Draining(_) => {
            transport.output.write_all(b"bye").expect("open");
            Intent::of(me).delimiter(b"\n", 100).or_flush(0).no_deadline()
        }
        Event::Read(line) => {
            line.consume(transport.input);
            Intent::of(me).keep().keep_deadline()
        }
        Event::Exception(_) => Intent::done(),
    };
    let changes: [fn(&mut Driver<Probe>); 3] = [
        Driver::wakeup,
        |driver| driver.advance(Duration::from_secs(2)),
        |driver| driver.drain(Duration::from_secs(9)),
    ];
    for change in changes {
        let mut driver = probe(handler);
        driver.send(b"AB*CD");
        change(&mut driver);
        assert!(
            driver.context().iter().any(|call| call == "read \"ab\""),
            "{:?}",
            driver.context()
        );
    }
}

#[test]
fn one_read_and_one_write_serve_a_request_where_short_reads_drain() {
    let mut driver = probe_with::<true>(StreamConfig::new(), |_| {}, echo_lines);
    driver.send(b"warm\n");
    let before = driver.operations();
    for _ in 0..10 {
        driver.send(b"one\ntwo\nthree\n");
    }
    let after = driver.operations();
    assert_eq!((after.reads - before.reads, after.writes - before.writes), (10, 10));
    assert_eq!(after.registrations, 1);
}

#[test]
fn large_input_of_a_wrapper_is_read_in_blocks() {
    let mut driver = probe_with::<true>(
        StreamConfig::new(),
        |_| {},
        |me, event, transport, _| {
            if let Event::Read(_) = event {
                transport.input.clear();
            }
            Intent::of(me).bytes(1).no_deadline()
        },
    );
    driver.send(&[b'x'; 100]);
    let before = driver.operations().reads;
    // Larger reads happen only on kernel sockets, and are tested there.
    driver.send(&vec![b'x'; 9 * BLOCK_BYTES + 100]);
    assert_eq!(driver.operations().reads - before, 10);
}

#[test]
fn reading_continues_until_empty_where_short_reads_do_not_drain() {
    let mut driver = probe(echo_lines);
    driver.limit_reads(3);
    driver.send(b"more than three bytes\n");
    assert_eq!(driver.take_received(), b"more than three bytes\n");
    assert_eq!(driver.operations().reads, 9);
}

#[test]
fn spurious_and_false_edges_change_nothing() {
    let mut driver = probe(echo_lines);
    driver.peer().report_falsely();
    driver.settle();
    driver.peer().report_spuriously();
    driver.settle();
    driver.send(b"x\n");
    assert_eq!(driver.take_received(), b"x\n");
    assert_eq!(*driver.context(), ["create", "read \"x\""]);
}

#[test]
fn a_deadline_for_a_whole_line_is_not_extended_by_drips() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Create => {
            Intent::of(me).delimiter(b"\n", 1024).deadline(scope.now() + Duration::from_secs(10))
        }
        Event::Timeout => Intent::done(),
        _ => echo_lines(me, event, transport, scope),
    });
    let begun = driver.now();
    for _ in 0..9 {
        driver.advance(Duration::from_secs(1));
        driver.send(b"x");
        assert!(driver.is_alive());
    }
    let fired = driver.advance_to_deadline().expect("a deadline");
    assert!(
        fired - begun >= Duration::from_secs(10) && fired - begun < Duration::from_millis(10_002)
    );
    assert_eq!(*driver.context(), ["create", "timeout"]);
}

#[test]
fn a_stream_with_a_partial_line_stores_the_line_and_no_whole_block() {
    let mut driver = probe(|me, event, transport, scope| {
        if let Event::Wakeup = event {
            scope.push(format!("{} in {}", transport.input.len(), transport.input.capacity()));
        }
        echo_lines(me, event, transport, scope)
    });
    driver.wakeup();
    driver.send(b"half a line");
    driver.wakeup();
    driver.send(&[b'x'; 50]);
    driver.wakeup();
    driver.send(b"\n");
    driver.wakeup();
    let sizes: Vec<&String> =
        driver.context().iter().filter(|text| text.contains(" in ")).collect();
    assert_eq!(sizes, ["0 in 0", "11 in 64", "61 in 64", "0 in 0"]);
}
