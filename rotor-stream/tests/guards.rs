//! Guards against a protocol, or its peer, that loops forever or takes more than its share.

mod probe;

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use probe::{Event, Log, Probe, echo_lines, probe, probe_with, seed};
use rotor_core::Scope;
use rotor_stream::testing::{Peer, Scripted, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Intent, Stream, StreamConfig, Transport};
use rotor_test_kit::Directory;

fn assert_no_progress(failures: &[String], waits_for: &str) {
    assert_eq!(failures.len(), 1, "{failures:?}");
    let expected = format!("Probe makes no progress: it waits for {waits_for} again");
    assert!(failures[0].contains(&expected), "{failures:?}");
}

#[test]
fn waiting_again_for_available_input_ends_the_stream() {
    let mut driver = probe(|me, _, _, _| Intent::of(me).bytes(1).no_deadline());
    driver.send(b"x");
    assert_no_progress(&driver.failures(), "bytes");
    assert_eq!(*driver.context(), ["create", "read \"x\""]);

    let mut driver = probe(|me, _, _, _| Intent::of(me).delimiter(b"\n", 9).no_deadline());
    driver.send(b"line\n");
    assert_no_progress(&driver.failures(), "a delimiter");
}

#[test]
fn writing_does_not_count_as_progress_on_the_same_input() {
    let mut driver = probe(|me, _, transport, _| {
        transport.output.write_all(b"again").expect("open");
        Intent::of(me).bytes(1).no_deadline()
    });
    driver.send(b"x");
    assert_no_progress(&driver.failures(), "bytes");
    assert!(driver.failures()[0].ends_with("and has consumed nothing"), "{:?}", driver.failures());
}

#[test]
fn consuming_counts_as_progress_on_the_same_flush() {
    let mut driver = probe(|me, event, transport, _| match event {
        Event::Create => Intent::of(me).bytes(9).no_deadline(),
        Event::Flushed if transport.input.is_empty() => Intent::of(me).sleep().no_deadline(),
        _ => {
            transport.input.consume(1);
            Intent::of(me).flush(0).no_deadline()
        }
    });
    driver.send(b"abc");
    driver.wakeup();
    assert!(driver.is_alive() && driver.failures().is_empty(), "{:?}", driver.failures());
    assert_eq!(driver.context().iter().filter(|call| *call == "flushed to 0").count(), 3);
}

#[test]
fn waiting_again_for_input_after_the_end_ends_the_stream() {
    let mut driver = probe(|me, _, _, _| Intent::of(me).bytes(1).no_deadline());
    driver.end();
    assert_no_progress(&driver.failures(), "bytes");
}

#[test]
fn waiting_again_for_flushed_output_ends_the_stream() {
    let driver = probe(|me, _, _, _| Intent::of(me).flush(10).no_deadline());
    assert_no_progress(&driver.failures(), "room to write");
    assert_eq!(*driver.context(), ["create", "flushed to 0"]);
}

#[test]
fn cycling_between_expectations_ends_the_stream() {
    let mut driver = probe(|me, event, _, _| match event {
        Event::Read(matched) => Intent::of(me).bytes(3 - matched.len()).no_deadline(),
        _ => Intent::of(me).bytes(1).no_deadline(),
    });
    driver.send(b"xyz");
    assert_no_progress(&driver.failures(), "bytes");
    assert!(driver.context().len() < 100);
}

#[test]
fn a_few_states_on_the_same_bytes_are_allowed() {
    let mut driver = probe(|me, event, transport, _| match event {
        Event::Read(matched) if matched.len() < 10 => {
            Intent::of(me).bytes(matched.len() + 1).no_deadline()
        }
        Event::Read(matched) => {
            matched.consume(transport.input);
            Intent::of(me).bytes(1).no_deadline()
        }
        _ => Intent::of(me).bytes(1).no_deadline(),
    });
    driver.send(b"0123456789");
    assert!(driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn a_protocol_that_waits_for_more_bytes_makes_progress_with_each_read() {
    let mut driver = probe(|me, _, transport, _| {
        let len = transport.input.len();
        if len < 200 { Intent::of(me).bytes(len + 1).no_deadline() } else { Intent::done() }
    });
    driver.peer().limit_reads(1);
    driver.send(&[b'x'; 200]);
    assert_eq!(driver.failures(), [""; 0]);
    assert_eq!(driver.context().len(), 201);
}

/// The behaviour of two echo protocols in one loop, whose log shows the order of their calls.
type Behaviour = fn(Probe, &Event, &mut Transport<'_>, &mut Scope<'_, Log>) -> Intent<Probe>;

fn two_in_one_loop(
    config: &StreamConfig,
    behave: Behaviour,
) -> (TestLoop<Stream<Probe, ScriptedSocket>>, Peer, Peer) {
    let mut test = TestLoop::new(Log::new());
    let mut add = || {
        let (socket, peer) = pair::<false>(test.world());
        let seed = seed(config.clone(), behave);
        test.add(|scope| Stream::connected(socket, seed, scope));
        peer
    };
    let peers = (add(), add());
    test.context_mut().clear();
    (test, peers.0, peers.1)
}

#[test]
fn a_peer_that_sends_forever_does_not_starve_the_others() {
    /// Counts as five calls.
    fn five_in_one(
        me: Probe,
        event: &Event,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Probe> {
        transport.count_calls(4);
        echo_lines(me, event, transport, scope)
    }
    let cases: [(StreamConfig, Behaviour); 3] = [
        (StreamConfig::new().read_budget(10), echo_lines),
        (StreamConfig::new().calls_budget(5), echo_lines),
        // The last call may exceed the budget, as its length was not known in advance.
        (StreamConfig::new().calls_budget(22), five_in_one),
    ];
    for (config, behave) in cases {
        let (mut test, busy, other) = two_in_one_loop(&config, behave);
        busy.limit_reads(2);
        for _ in 0..50 {
            busy.send(b"x\n");
        }
        other.send(b"me too\n");
        test.turn();
        test.turn();
        let log = test.context();
        let turn_of_other =
            log.iter().position(|call| call == "read \"me too\"").expect("it had its turn");
        assert!((4..=6).contains(&turn_of_other), "{log:?}");
        test.settle();
        assert_eq!(busy.take_received().len(), 100);
    }
}

#[test]
fn a_large_message_is_read_a_budget_at_a_time() {
    const LEN: usize = 100_000;
    let config = StreamConfig::new().input_max(LEN).read_budget(1_000);
    let mut driver = probe_with::<false>(
        config,
        |peer| peer.limit_reads(300),
        |me, event, _, _| match event {
            Event::Create => Intent::of(me).bytes(LEN).no_deadline(),
            _ => Intent::done(),
        },
    );
    driver.peer().send(&[b'x'; LEN]);
    for turn in 1..10 {
        driver.test().turn();
        assert_eq!(driver.unread_len(), LEN - turn * 1_200, "the budget is passed by one read");
    }
    driver.settle();
    assert_eq!(driver.context().len(), 2, "it comes as one");
}

#[test]
fn a_collected_message_has_its_own_read_budget_and_the_next_has_not() {
    const LEN: usize = 5_000;
    for (collect_budget, each) in [(1_000, 1_000), (50, 100)] {
        let config = StreamConfig::new().read_budget(100).collect_budget(collect_budget);
        let mut driver = probe_with::<false>(
            config,
            |peer| peer.limit_reads(100),
            |me, event, transport, _| {
                transport.set_collecting(matches!(event, Event::Create));
                if let Event::Read(matched) = event {
                    matched.consume(transport.input);
                }
                Intent::of(me).bytes(LEN).no_deadline()
            },
        );
        driver.peer().send(&[b'x'; 2 * LEN]);
        let mut turn = || {
            driver.test().turn();
            driver.unread_len()
        };
        for read in (each..=LEN).step_by(each) {
            assert_eq!(turn(), 2 * LEN - read, "of the first");
        }
        assert_eq!([turn(), turn(), turn()], [LEN - 100, LEN - 200, LEN - 300], "of the second");
    }
}

#[test]
fn input_held_back_by_a_budget_or_mark_is_handled_without_an_edge() {
    let config = StreamConfig::new;
    for config in [config().read_budget(1), config().calls_budget(1), config().output_high_water(2)]
    {
        let mut test = TestLoop::<Stream<Probe, Scripted<true>>>::new(Log::default());
        // Its one read is short: nothing is left in the socket, only in the buffer.
        let (socket, peer) = pair::<true>(test.world());
        let seed = seed(config, echo_lines);
        test.add(|scope| Stream::connected(socket, seed, scope));
        peer.send(b"one\ntwo\nthree\n");
        test.settle();
        assert_eq!(peer.take_received(), b"one\ntwo\nthree\n");
    }
}

#[test]
fn a_peer_that_reads_forever_does_not_starve_the_others() {
    let config = StreamConfig::new().write_budget(100).output_high_water(1 << 20);
    for write_max in [10, 70, usize::MAX] {
        let (mut test, greedy, _other) = two_in_one_loop(&config, echo_lines);
        greedy.limit_writes(write_max);
        let lines = b"0123456789\n".repeat(100);
        greedy.send(&lines);
        test.turn();
        assert_eq!(greedy.received_len(), 100);
        test.turn();
        assert_eq!(greedy.received_len(), 200);
        test.settle();
        assert_eq!(greedy.take_received(), lines);
    }
}

#[test]
fn the_write_budget_applies_to_every_kind_of_output_even_after_the_end() {
    let file = File::open(Directory::create().file("content", [b'f'; 1_000]));
    let file = Arc::new(file.expect("the same file"));
    for (kind, is_done) in
        ["bytes", "block", "file"].into_iter().flat_map(|kind| [(kind, false), (kind, true)])
    {
        let mut test: TestLoop<Stream<Probe, ScriptedSocket>> = TestLoop::new(Log::new());
        let file = file.clone();
        let (socket, peer) = pair::<false>(test.world());
        let seed =
            seed(StreamConfig::new().write_budget(100), move |me: Probe, event, transport, _| {
                let output = &mut *transport.output;
                match event {
                    Event::Read(_) if kind == "bytes" => {
                        output.write_all(&[b'b'; 1_000]).expect("open")
                    }
                    Event::Read(_) if kind == "block" => {
                        output.push_block(vec![b'k'; 1_000]).expect("open")
                    }
                    Event::Read(_) => output.push_file(file.clone(), 0, 1_000).expect("open"),
                    _ => return Intent::of(me).bytes(1).no_deadline(),
                }
                if is_done { Intent::done() } else { Intent::of(me).sleep().no_deadline() }
            });
        test.add(|scope| Stream::connected(socket, seed, scope));
        peer.send(b"!");
        for turn in 1..=10 {
            test.turn();
            assert_eq!(peer.received_len(), turn * 100, "{kind}, done: {is_done}");
        }
    }
}

#[test]
fn sockets_without_system_buffers_ignore_buffer_sizes() {
    let config =
        StreamConfig::new().send_buffer(Some(1)).receive_buffer(Some(1)).unsent_max(Some(1));
    let mut driver = probe_with::<false>(config, |_| {}, echo_lines);
    driver.send(b"a line\n");
    assert_eq!(driver.take_received(), b"a line\n");
}

#[test]
fn output_above_its_mark_stops_the_input_until_half_is_written() {
    let config = StreamConfig::new().output_high_water(100);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_lines);
    let line = [&[b'x'; 59][..], b"\n"].concat();
    for _ in 0..5 {
        driver.send(&line);
    }
    // The second line exceeds the high-water mark; the others stay in the input.
    assert_eq!(driver.context().len(), 3);
    driver.make_room(69);
    assert_eq!(driver.context().len(), 3, "51 bytes wait, which is more than half the mark");
    driver.make_room(1);
    assert_eq!(driver.context().len(), 4, "one more line, and the mark is passed again");
    driver.make_room(1000);
    assert_eq!(driver.take_received(), line.repeat(5));
}

/// A complete line is pending, and the peer reads slowly. The deadline passes, but the peer's input
/// is not late.
#[test]
fn a_deadline_runs_while_input_is_held_and_the_transport_reports_it() {
    let config = StreamConfig::new().output_high_water(100).flush_step(1);
    let minute = Duration::from_secs(60);
    let mut driver = probe_with::<false>(
        config,
        |peer| peer.limit_room(0),
        move |me, event, transport, scope| match event {
            Event::Timeout if transport.is_input_held() => {
                scope.push("held".into());
                Intent::of(me).keep().deadline(scope.now() + minute)
            }
            Event::Timeout => Intent::done(),
            Event::Create => Intent::of(me).delimiter(b"\n", 1024).deadline(scope.now() + minute),
            event => {
                let intent = echo_lines(me, event, transport, scope);
                assert!(!transport.is_input_held(), "not while it is handed out");
                intent
            }
        },
    );
    let line = [&[b'x'; 59][..], b"\n"].concat();
    for _ in 0..4 {
        driver.send(&line);
    }
    assert_eq!(driver.context().len(), 3, "two of four lines are here and answered");
    for _ in 0..3 {
        driver.advance(Duration::from_secs(21));
        driver.make_room(1);
    }
    assert_eq!(driver.context()[3..], ["timeout", "held"]);
    driver.make_room(1000);
    assert_eq!(driver.take_received(), line.repeat(4));
    driver.advance(minute);
    assert_eq!(driver.context().last().expect("calls"), "timeout");
    assert!(driver.peer().is_ended(), "now it is late");
}

#[test]
fn input_is_held_only_while_the_output_is_above_the_mark() {
    let config = StreamConfig::new().output_high_water(100);
    let mut driver = probe_with::<false>(
        config,
        |peer| peer.limit_room(0),
        |me, event, transport, scope| match event {
            Event::Create => {
                transport.output.write_all(&[b'x'; 200]).expect("open");
                Intent::of(me).bytes(1).no_deadline()
            }
            _ => {
                scope.push(format!("held: {}", transport.is_input_held()));
                Intent::of(me).sleep().no_deadline()
            }
        },
    );
    driver.wakeup();
    driver.make_room(200);
    driver.wakeup();
    assert_eq!(*driver.context(), ["create", "wakeup", "held: true", "wakeup", "held: false"]);
}

#[test]
fn the_mark_counts_shared_blocks_and_files() {
    let config = StreamConfig::new().output_high_water(5_000);
    let path = std::env::current_exe().expect("this test is a file");
    let file = std::sync::Arc::new(std::fs::File::open(path).expect("it can be read"));
    for kind in 0..2 {
        let file = file.clone();
        let config = config.clone();
        let mut driver = probe_with::<false>(
            config,
            |peer| peer.limit_room(0),
            move |me, event, transport, _| {
                if let Event::Read(matched) = event {
                    matched.consume(transport.input);
                    match kind {
                        0 => transport.output.push_block(vec![b'x'; 4_000]).expect("open"),
                        _ => transport.output.push_file(file.clone(), 0, 4_000).expect("open"),
                    }
                }
                Intent::of(me).bytes(1).no_deadline()
            },
        );
        driver.send(b"xxxxx");
        assert_eq!(driver.context().len(), 3, "two of five bytes were answered");
        driver.make_room(1_000_000);
        assert_eq!(driver.received_len(), 20_000);
    }
}

#[test]
fn a_peer_that_never_reads_is_dropped_at_the_flush_timeout() {
    let config = StreamConfig::new().output_high_water(100);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(50), echo_lines);
    let begun = driver.now();
    driver.send(&b"0123456789\n".repeat(100));
    let fired = driver.advance_to_deadline().expect("a deadline");
    assert!(fired - begun >= Duration::from_secs(30) && fired - begun < Duration::from_secs(31));
    assert_eq!(
        driver.context().last().expect("calls"),
        "fatal: the peer does not read what is sent to it"
    );
    assert!(!driver.is_alive());
}

#[test]
fn a_peer_that_reads_in_drips_does_not_extend_the_flush_timeout() {
    let config = StreamConfig::new().flush_step(20).output_high_water(1_000);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_lines);
    driver.send(&b"0123456789\n".repeat(50));
    for _ in 0..19 {
        driver.advance(Duration::from_secs(1));
        driver.make_room(1);
    }
    driver.advance(Duration::from_secs(12));
    assert!(!driver.is_alive(), "19 bytes in 31 seconds are too few");

    let config = StreamConfig::new().flush_step(20).output_high_water(1_000);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_lines);
    driver.send(&b"0123456789\n".repeat(50));
    for _ in 0..20 {
        driver.advance(Duration::from_secs(1));
        driver.make_room(1);
    }
    driver.advance(Duration::from_secs(29));
    assert!(driver.is_alive(), "20 bytes in 20 seconds are another 30 seconds");
    driver.advance(Duration::from_secs(2));
    assert!(!driver.is_alive());
}

#[test]
fn a_large_read_gives_a_peer_no_more_time_for_the_rest() {
    let config = StreamConfig::new().flush_step(20).output_high_water(1_000);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_lines);
    driver.send(&b"0123456789\n".repeat(90));
    driver.make_room(500);
    for _ in 0..29 {
        driver.advance(Duration::from_secs(1));
        driver.make_room(usize::from(driver.now().as_nanos().is_multiple_of(2_000_000_000)));
        assert!(driver.is_alive());
    }
    driver.advance(Duration::from_secs(1));
    assert!(!driver.is_alive(), "500 bytes at once are no more than a step");
}

#[test]
fn a_peer_has_unlimited_time_without_a_flush_step() {
    let config = StreamConfig::new().flush_step(0).output_high_water(1_000);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_lines);
    driver.send(&b"0123456789\n".repeat(90));
    driver.advance(Duration::from_secs(1_000_000));
    driver.make_room(10);
    driver.advance(Duration::from_secs(1_000_000));
    driver.make_room(1_000_000);
    assert_eq!(driver.received_len(), 990);
}

#[test]
fn the_close_timeout_applies_even_without_a_flush_step() {
    const CLOSE: Duration = Duration::from_secs(5);
    let config = StreamConfig::new().flush_step(0).close_timeout(CLOSE);
    for has_ended in [true, false] {
        let mut driver = probe_with::<false>(
            config.clone(),
            |peer| peer.limit_room(10),
            move |me, event, transport, _| {
                if !matches!(event, Event::Create) {
                    return Intent::of(me).keep().keep_deadline();
                }
                transport.output.write_all(&[b'x'; 100]).expect("open");
                if has_ended {
                    return Intent::done();
                }
                transport.shutdown_write();
                Intent::of(me).bytes(1).no_deadline()
            },
        );
        for _ in 0..9 {
            driver.advance(CLOSE - Duration::from_millis(1));
            driver.make_room(1);
        }
        assert!(!driver.is_dropped(), "a byte now and then is enough");
        driver.advance(CLOSE);
        assert!(driver.is_dropped(), "none is too few, done: {has_ended}");
    }
}
