//! Connections that end with a reset: because the protocol requests it, or because not all of its
//! output was accepted. And connections that are lost while their protocol holds its input.

mod probe;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use probe::{Event, Probe, echo_lines, probe_with};
use rotor_stream::testing::Driver;
use rotor_stream::{Intent, StreamConfig};
use rotor_test_kit::Directory;

/// Writes this many bytes when it is created, and ends with `end` when input comes.
fn probe_that_ends(bytes: usize, end: fn() -> Intent<Probe>) -> Driver<Probe> {
    probe_with(
        StreamConfig::new(),
        |peer| peer.limit_room(10),
        move |me, event, transport, _| match event {
            Event::Create => {
                transport.output.write_all(&vec![b'x'; bytes]).expect("open");
                Intent::of(me).bytes(1).no_deadline()
            }
            Event::Read(_) => end(),
            _ => Intent::of(me).keep().keep_deadline(),
        },
    )
}

#[test]
fn a_reset_by_the_protocol_discards_output_and_is_not_logged() {
    for (written, received) in [(0, 0), (10, 10), (1_000, 10)] {
        let mut driver = probe_that_ends(written, Intent::reset);
        driver.send(b"y");
        assert!(driver.is_dropped() && !driver.is_alive());
        let operations = driver.operations();
        assert_eq!((operations.resets, operations.shutdowns), (1, 0));
        assert_eq!(driver.take_received().len(), received);
        assert!(driver.failures().is_empty());
    }
}

#[test]
fn a_reset_can_be_the_first_answer() {
    let driver =
        probe_with::<false>(StreamConfig::new(), |_| {}, |_, _, _, _| Intent::<Probe>::reset());
    assert!(driver.is_dropped());
    assert_eq!((driver.operations().resets, driver.operations().shutdowns), (1, 0));
}

#[test]
fn a_failed_protocol_resets_its_connection_only_if_output_is_lost() {
    for (written, resets) in [(0, 0), (10, 0), (11, 1)] {
        let mut driver = probe_that_ends(written, || Intent::error("as asked"));
        driver.send(b"y");
        assert!(driver.is_dropped());
        assert_eq!(driver.operations().resets, resets, "{written} bytes written");
        assert_eq!(driver.failures().len(), 1);
    }
}

#[test]
fn a_peer_that_does_not_read_the_output_gets_a_reset_and_no_end() {
    // Both while the protocol runs and after it is done.
    for end in [None, Some(Intent::done as fn() -> Intent<Probe>)] {
        let mut driver = probe_that_ends(1_000, end.unwrap_or(Intent::done));
        if end.is_some() {
            driver.send(b"y");
        }
        assert!(!driver.is_dropped());
        driver.advance(Duration::from_secs(31));
        assert!(driver.is_dropped());
        assert_eq!((driver.operations().resets, driver.operations().shutdowns), (1, 0));
    }
}

#[test]
fn a_peer_that_read_all_and_does_not_end_its_side_is_not_reset() {
    let mut driver = probe_that_ends(10, Intent::done);
    driver.send(b"y");
    driver.advance(Duration::from_secs(31));
    assert!(driver.is_dropped());
    assert_eq!((driver.operations().resets, driver.operations().shutdowns), (0, 1));
}

#[test]
fn a_file_that_has_shrunk_resets_the_connection() {
    for is_done in [false, true] {
        let directory = Directory::create();
        let file =
            Arc::new(File::open(directory.file("content", [b'f'; 10])).expect("it is there"));
        let driver = probe_with::<false>(
            StreamConfig::new(),
            |_| {},
            move |me, _, transport, _| {
                transport.output.push_file(file.clone(), 0, 11).expect("open");
                if is_done { Intent::done() } else { Intent::of(me).sleep().no_deadline() }
            },
        );
        assert!(driver.is_dropped());
        assert_eq!((driver.operations().resets, driver.operations().shutdowns), (1, 0));
        assert_eq!(driver.take_received().len(), 10);
    }
}

#[test]
fn neither_bytes_nor_an_end_follow_lost_output() {
    for fails in [false, true] {
        check_end_after_lost_output(fails);
    }
}

fn check_end_after_lost_output(fails: bool) {
    let directory = Directory::create();
    let file = Arc::new(File::open(directory.file("content", [b'f'; 10])).expect("it is there"));
    let mut driver = probe_with::<false>(
        // Both messages have arrived by then, and the second is delivered after the file.
        StreamConfig::new().output_high_water(5),
        |_| {},
        move |me, event, transport, _| {
            let Event::Read(_) = event else { return Intent::of(me).bytes(1).no_deadline() };
            let is_last = transport.input.len() == 1;
            transport.input.consume(1);
            if is_last && fails {
                return Intent::error("as asked");
            }
            if is_last {
                transport.output.write_all(b"!").expect("open");
                return Intent::done();
            }
            transport.output.push_file(file.clone(), 0, 11).expect("open");
            Intent::of(me).bytes(1).no_deadline()
        },
    );
    driver.send(b"12");
    assert!(driver.is_dropped());
    assert_eq!((driver.operations().resets, driver.operations().shutdowns), (1, 0));
    assert_eq!(driver.take_received(), [b'f'; 10]);
}

#[test]
fn a_protocol_that_holds_its_input_gets_it_before_the_loss_of_its_connection() {
    type Loss = fn(&mut Driver<Probe>);
    let losses: [(&str, Loss, &str); 3] = [
        ("", |driver| driver.reset(), "fatal: the connection broke: connection reset"),
        ("output", |driver| driver.reset(), "fatal: writing has failed: broken pipe"),
        (
            "output",
            |driver| {
                driver.fail_writes(ErrorKind::BrokenPipe);
                driver.make_room(1);
            },
            "fatal: writing has failed: broken pipe",
        ),
    ];
    for (output, lose, error) in losses {
        let mut driver = probe_with(
            StreamConfig::new(),
            |peer| peer.limit_room(0),
            move |me, event, transport, scope| match event {
                Event::Create => {
                    transport.output.write_all(output.as_bytes()).expect("open");
                    Intent::of(me).hold().or_flush(0).no_deadline()
                }
                Event::Flushed => Intent::of(me).hold().no_deadline(),
                Event::Wakeup => Intent::of(me).delimiter(b"\n", 1024).no_deadline(),
                _ => echo_lines(me, event, transport, scope),
            },
        );
        driver.send(b"one\ntwo\n");
        lose(&mut driver);
        // The time in which the peer had to take output does not matter any more.
        driver.advance(Duration::from_secs(1_000));
        assert!(driver.is_alive() && driver.operations().reads == 0, "{:?}", driver.context());
        driver.wakeup();
        let is_told = |event: &&String| !event.starts_with("flushed") && *event != "wakeup";
        let seen: Vec<_> = driver.context().iter().filter(is_told).collect();
        assert_eq!(seen, ["create", "read \"one\"", "read \"two\"", error]);
        assert!(!driver.is_alive() && driver.failures().is_empty());
    }
}

#[test]
fn a_protocol_that_holds_its_input_until_a_flush_gets_it_after_a_failed_write() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |me, event, transport, scope| match event {
            Event::Create => {
                transport.output.write_all(b"output").expect("open");
                Intent::of(me).hold().or_flush(0).no_deadline()
            }
            Event::Flushed => Intent::of(me).delimiter(b"\n", 1024).no_deadline(),
            _ => echo_lines(me, event, transport, scope),
        },
    );
    driver.send(b"one\ntwo\n");
    driver.reset();
    let error = "fatal: writing has failed: broken pipe";
    let expected = ["create", "flushed to 0", "read \"one\"", "read \"two\"", error];
    assert_eq!(*driver.context(), expected);
    assert!(!driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn a_poll_after_a_failed_write_finds_the_input_from_before() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |me, event, transport, _| match event {
            Event::Create => {
                transport.output.write_all(b"output").expect("open");
                Intent::of(me).hold().no_deadline()
            }
            Event::Read(_) => {
                assert_eq!(&transport.input[..], b"abc");
                transport.input.clear();
                Intent::of(me).poll().no_deadline()
            }
            _ => Intent::of(me).poll().no_deadline(),
        },
    );
    driver.send(b"abc");
    driver.reset();
    driver.wakeup();
    let error = "fatal: writing has failed: broken pipe";
    assert_eq!(*driver.context(), ["create", "wakeup", "read \"\"", error]);
}

/// Output that is discarded costs no writing, so the budget of bytes does not limit it.
#[test]
fn a_protocol_that_writes_on_while_it_holds_its_input_is_called_once_in_an_event() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |me, event, transport, _| match event {
            Event::Wakeup => Intent::done(),
            _ => {
                transport.output.write_all(&[b'x'; 10_000]).expect("open");
                Intent::of(me).hold().or_flush(0).no_deadline()
            }
        },
    );
    driver.peer().reset();
    for turn in 1..=10 {
        driver.test().turn();
        let flushes = driver.context().iter().filter(|call| call.starts_with("flushed")).count();
        assert_eq!(flushes, turn);
    }
    driver.wakeup();
    assert!(!driver.is_alive());
}
