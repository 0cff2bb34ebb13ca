//! Each receive mode with each kind of body, however it is split; held memory, refused and skipped
//! bytes.

use std::sync::Arc;
use std::time::Duration;

use rotor_stream::BytesHeld;

use super::*;

fn second(number: u64) -> Time {
    Time::ZERO + Duration::from_secs(number)
}

fn total() -> Arc<BytesHeld> {
    BytesHeld::new(1 << 20)
}

fn requested(body: Body, mode: RecvMode, limits: &Limits) -> BodyReceiver {
    let mut receiver = BodyReceiver::announced(body);
    assert_eq!(receiver.start_or_resume(mode, Time::ZERO, limits), Ok(true), "it begins");
    receiver
}

/// What a handler gets of a body that arrives in these parts: "W:" whole, "P:" a piece, "B:" a
/// block, "E" the end. The last element is the error that ended the body, or the rest of the input.
fn deliveries(body: Body, mode: RecvMode, parts: &[&[u8]], closes: bool) -> Vec<String> {
    let (limits, total) = (Limits::new(), total());
    let mut receiver = requested(body, mode, &limits);
    let (mut input, mut seen) = (Buf::new(), Vec::new());
    let mut needed = 0;
    for part in parts {
        input.extend(part);
        while input.len() >= needed {
            match receiver.next(&mut input, &limits, &total) {
                Ok(ReceiveOutcome::Again) => {}
                Ok(ReceiveOutcome::Wait(Some(bytes))) => {
                    assert!(bytes > input.len(), "it would be called in vain");
                    needed = bytes;
                }
                Ok(ReceiveOutcome::Wait(None)) => needed = usize::MAX,
                Ok(received) => record(&mut receiver, received, &mut input, &mut seen),
                Err(error) => {
                    seen.push(format!("{error:?}"));
                    return seen;
                }
            }
        }
    }
    if closes {
        match receiver.finish() {
            Ok(ReceiveOutcome::Wait(None)) => {}
            Ok(received) => record(&mut receiver, received, &mut input, &mut seen),
            Err(error) => seen.push(format!("{error:?}")),
        }
    }
    if !receiver.is_receiving() {
        assert_eq!(total.bytes(), 0, "what has ended holds nothing");
    }
    seen.push(format!("left {}", input.escape_ascii()));
    seen
}

fn record(
    receiver: &mut BodyReceiver,
    received: ReceiveOutcome,
    input: &mut Buf,
    seen: &mut Vec<String>,
) {
    let (kind, part, trailers) = match received {
        ReceiveOutcome::Whole(part) => ("W", part, None),
        ReceiveOutcome::Piece(part, trailers) => ("P", part, trailers),
        ReceiveOutcome::Block(block, trailers) => {
            seen.push(format!("B:{}", block.escape_ascii()));
            ("B", Part::Nothing, trailers)
        }
        #[cfg(feature = "body")]
        ReceiveOutcome::Blocks(blocks, trailers) => {
            seen.extend(blocks.iter().map(|block| format!("B:{}", block.escape_ascii())));
            ("B", Part::Nothing, trailers)
        }
        other => panic!("{other:?}"),
    };
    let octets = receiver.part_bytes(&part, input).escape_ascii().to_string();
    if kind == "W" || part != Part::Nothing {
        seen.push(format!("{kind}:{octets}"));
    }
    receiver.discard_part(part, input);
    if trailers.is_some() {
        assert!(!receiver.is_receiving());
        seen.push("E".to_owned());
    }
}

/// A body, its receive mode, the parts in which it arrives, and what the handler gets.
type Row<'a> = (Body, RecvMode, &'a [&'a [u8]], &'a [&'a str]);

#[test]
fn a_body_is_handed_over_in_the_requested_mode() {
    let (whole, pieces) = (RecvMode::Buffered(100), RecvMode::Progressive);
    let rows: [Row<'_>; 17] = [
        (Body::Empty, whole, &[b"next"], &["W:", "left next"]),
        (Body::Empty, pieces(1), &[b"next"], &["E", "left next"]),
        (Body::Empty, RecvMode::Blocks, &[b""], &["E", "left "]),
        (Body::Length(3), whole, &[b"abcnext"], &["W:abc", "left next"]),
        (Body::Length(3), whole, &[b"a", b"b", b"c"], &["W:abc", "left "]),
        (Body::Length(3), whole, &[b"ab"], &["left ab"]),
        (Body::Length(4), pieces(1), &[b"ab", b"cdnext"], &["P:ab", "P:cd", "E", "left next"]),
        (Body::Length(4), pieces(3), &[b"ab", b"cdnext"], &["P:abcd", "E", "left next"]),
        (Body::Length(4), pieces(2), &[b"a", b"bc", b"d"], &["P:abc", "P:d", "E", "left "]),
        (
            Body::Length(4),
            RecvMode::Blocks,
            &[b"ab", b"cdnext"],
            &["B:ab", "B:cd", "E", "left next"],
        ),
        (
            Body::Chunked,
            whole,
            &[b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\nnext"],
            &["W:abc", "left next"],
        ),
        (
            Body::Chunked,
            pieces(3),
            &[b"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"],
            &["P:abcd", "E", "left "],
        ),
        (Body::Chunked, RecvMode::Blocks, &[b"2\r\nab\r\n0\r\n\r\nx"], &["B:ab", "E", "left x"]),
        (Body::Chunked, pieces(1), &[b"0\r\n\r\nnext"], &["E", "left next"]),
        (Body::Chunked, whole, &[b"1\r\nab"], &["LineEnd"]),
        (Body::UntilClose, whole, &[b"ab", b"cd"], &["left "]),
        (Body::UntilClose, pieces(3), &[b"ab", b"cd", b"e"], &["P:abcd", "left "]),
    ];
    for (body, mode, parts, expected) in rows {
        assert_eq!(deliveries(body, mode, parts, false), expected, "{body:?} {mode:?}");
    }
}

#[cfg(feature = "body")]
const STORED: RecvMode = RecvMode::Stored { ram_max: 100, max: 100 };

#[test]
#[cfg(feature = "body")]
fn large_chunks_of_a_stored_body_are_shared_and_small_ones_copied() {
    let limits = Limits::new();
    let of_chunks = |size: usize, count: usize| {
        let chunk = format!("{size:x}\r\n{}\r\n", "x".repeat(size));
        (chunk.repeat(count) + "0\r\n\r\nnext").into_bytes()
    };
    // Chunks of blocks of 16 KiB share those blocks if little of them is framing. Small chunks are
    // copied into one block.
    for (size, count, blocks) in [(5_000, 3, 3), (40, 300, 1), (60, 200, 200), (1, 2_000, 1)] {
        let mut receiver = requested(Body::Chunked, STORED, &limits);
        let mut input = Buf::new();
        input.extend(&of_chunks(size, count));
        match receiver.next(&mut input, &limits, &total()) {
            Ok(ReceiveOutcome::Blocks(taken, Some(_))) => {
                assert_eq!(taken.len(), blocks, "{size}");
                assert_eq!(taken.iter().map(|block| block.len()).sum::<usize>(), size * count);
                assert!(taken.iter().all(|block| block.iter().all(|octet| *octet == b'x')));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(&input[..], b"next");
    }
}

#[test]
#[cfg(feature = "body")]
fn data_before_a_framing_error_is_handed_over_first() {
    let rows: [(&[u8], &[&str]); 3] = [
        (b"3\r\nabc\r\n2\r\ndeX", &["B:abc", "B:de", "LineEnd"]),
        (b"3\r\nabc\r\nx", &["B:abc", "ChunkSize"]),
        (b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", &["B:ab", "B:c", "E", "left "]),
    ];
    for (input, expected) in rows {
        let seen = deliveries(Body::Chunked, STORED, &[input], false);
        let joined = |lines: &[&str]| lines.concat().replace("B:", "");
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert_eq!(joined(&seen), joined(expected), "{seen:?}");
    }
}

#[test]
fn the_handler_gets_the_same_bytes_however_a_body_is_split() {
    let modes = [
        RecvMode::Buffered(100),
        RecvMode::Progressive(1),
        RecvMode::Progressive(4),
        RecvMode::Blocks,
        #[cfg(feature = "body")]
        STORED,
    ];
    let bodies: [(Body, &[u8]); 3] = [
        (Body::Length(7), b"abcdefg"),
        (Body::Chunked, b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nA: b\r\n\r\n"),
        (Body::UntilClose, b"abcdefg"),
    ];
    let joined = |seen: &[String]| -> String {
        seen.iter().filter_map(|line| line.split_once(':')).map(|(_, octets)| octets).collect()
    };
    for (body, octets) in bodies {
        for mode in modes {
            for cut in 0..=octets.len() {
                let (one, two) = octets.split_at(cut);
                let seen = deliveries(body, mode, &[one, two], true);
                assert_eq!(joined(&seen), "abcdefg", "{body:?} {mode:?} cut at {cut}: {seen:?}");
                assert_eq!(seen.last().map(String::as_str), Some("left "), "{seen:?}");
            }
            let single: Vec<&[u8]> = octets.chunks(1).collect();
            assert_eq!(
                joined(&deliveries(body, mode, &single, true)),
                "abcdefg",
                "{body:?} {mode:?}"
            );
        }
    }
}

#[test]
fn the_end_of_the_connection_completes_only_a_body_until_close() {
    let (whole, pieces) = (RecvMode::Buffered(100), RecvMode::Progressive(3));
    let rows: [Row<'_>; 8] = [
        (Body::UntilClose, whole, &[b"ab", b"cd"], &["W:abcd", "left "]),
        (Body::UntilClose, whole, &[], &["W:", "left "]),
        (Body::UntilClose, pieces, &[b"ab"], &["P:ab", "E", "left "]),
        (Body::UntilClose, RecvMode::Blocks, &[b"ab"], &["B:ab", "E", "left "]),
        (Body::Length(3), whole, &[b"ab"], &["Truncated", "left ab"]),
        (Body::Length(3), pieces, &[b"ab"], &["Truncated", "left "]),
        (Body::Length(2), pieces, &[b"ab"], &["P:ab", "E", "left "]),
        (Body::Chunked, whole, &[b"2\r\nab\r\n0\r\n"], &["Truncated", "left "]),
    ];
    for (body, mode, parts, expected) in rows {
        assert_eq!(deliveries(body, mode, parts, true), expected, "{body:?} {mode:?}");
    }
}

#[test]
fn no_input_is_wanted_before_the_body_is_requested_or_while_it_is_held() {
    let (limits, total) = (Limits::new(), total());
    let mut input = Buf::new();
    input.extend(b"abc");
    let mut next = |receiver: &mut BodyReceiver| {
        let received = receiver.next(&mut input, &limits, &total).expect("it is a body");
        (format!("{received:?}"), input.len())
    };
    let mut receiver = BodyReceiver::expected();
    assert_eq!(
        receiver.start_or_resume(RecvMode::Progressive(1), Time::ZERO, &limits),
        Ok(false),
        "too early"
    );
    assert_eq!(next(&mut receiver), ("Wait(None)".to_owned(), 3));
    receiver.announce(Body::Length(5));
    assert_eq!(next(&mut receiver), ("Wait(None)".to_owned(), 3));
    assert!(receiver.is_unrequested() && !receiver.is_receiving());
    receiver.hold();
    assert_eq!(receiver.start_or_resume(RecvMode::Progressive(1), Time::ZERO, &limits), Ok(true));
    receiver.hold();
    assert_eq!(next(&mut receiver), ("Wait(None)".to_owned(), 3));
    assert!(!receiver.is_unrequested() && !receiver.is_receiving());
    assert_eq!(
        receiver.start_or_resume(RecvMode::Blocks, Time::ZERO, &limits),
        Ok(false),
        "it had begun"
    );
    assert!(receiver.is_receiving());
    assert_eq!(
        next(&mut receiver).0,
        "Piece(Input(0..3), None)",
        "in the mode that was said first"
    );
}

#[test]
fn an_announced_length_above_the_limits_is_refused() {
    let limits = Limits::new().buffered_body_bytes_max(10);
    for (length, mode, is_taken) in [
        (9, RecvMode::Buffered(9), true),
        (10, RecvMode::Buffered(9), false),
        (10, RecvMode::Buffered(99), true),
        (11, RecvMode::Buffered(99), false),
        (1 << 40, RecvMode::Progressive(1), true),
        (1 << 40, RecvMode::Blocks, true),
    ] {
        let mut receiver = BodyReceiver::announced(Body::Length(length));
        let requested = receiver.start_or_resume(mode, Time::ZERO, &limits);
        assert_eq!(requested.is_ok(), is_taken, "{length} {mode:?}");
    }
}

#[test]
fn waiting_and_collected_bytes_count_towards_the_total() {
    let limits = Limits::new();
    let in_input = INPUT_BYTES_MAX;
    for (body, mode, holds) in [
        (Body::Length(in_input as u64), RecvMode::Buffered(1 << 20), true),
        (Body::Length(in_input as u64 + 1), RecvMode::Buffered(1 << 20), true),
        (Body::Chunked, RecvMode::Buffered(1 << 20), true),
        (Body::Length(1 << 30), RecvMode::Progressive(10_000), true),
        (Body::Length(1 << 30), RecvMode::Progressive(1), false),
        (Body::Length(1 << 30), RecvMode::Blocks, false),
    ] {
        for max in [1 << 20, 1_000] {
            let total = BytesHeld::new(max);
            let mut receiver = requested(body, mode, &limits);
            let mut input = Buf::new();
            if body == Body::Chunked {
                input.extend(b"ffff\r\n");
            }
            input.extend(&[b'x'; 5_000]);
            let received = receiver.next(&mut input, &limits, &total);
            let refused = matches!(received, Err(BodyError::NoRoom));
            assert_eq!(refused, holds && max < 5_000, "{body:?} {mode:?} {max}");
            assert_eq!(total.bytes() >= 5_000, holds && !refused, "{body:?} {mode:?} {max}");
            drop(receiver);
            assert_eq!(total.bytes(), 0, "{body:?} {mode:?} {max}");
        }
    }
}

#[test]
fn the_rest_of_a_body_is_skipped_only_if_it_has_all_arrived() {
    let limits = Limits::new();
    let rows: [(Body, &[u8], bool, &[u8]); 8] = [
        (Body::Empty, b"", true, b""),
        (Body::Empty, b"x", true, b"x"),
        (Body::Length(3), b"abcx", true, b"x"),
        (Body::Length(3), b"ab", false, b""),
        (Body::Chunked, b"1\r\na\r\n0\r\n\r\n", true, b""),
        (Body::Chunked, b"1\r\na\r\n0\r\n", false, b""),
        (Body::Chunked, b"zz\r\n", false, b""),
        (Body::UntilClose, b"abc", false, b""),
    ];
    for (body, octets, is_whole, left) in rows {
        for mode in [None, Some(RecvMode::Progressive(1)), Some(RecvMode::Buffered(100))] {
            let mut input = Buf::new();
            input.extend(octets);
            let mut receiver = BodyReceiver::announced(body);
            if let Some(mode) = mode {
                let _ =
                    receiver.start_or_resume(mode, Time::ZERO, &limits).expect("within the limits");
            }
            assert_eq!(receiver.skip_rest(&mut input, &limits), is_whole, "{body:?} {mode:?}");
            if is_whole {
                assert_eq!(&input[..], left, "{body:?} {mode:?}");
            }
        }
    }
    let mut input = Buf::new();
    assert!(!BodyReceiver::expected().skip_rest(&mut input, &limits), "no head has come");
}

#[test]
fn the_rest_is_known_before_and_after_the_body_is_requested() {
    let (limits, total) = (Limits::new(), total());
    for (body, mode, left) in [
        (Body::Empty, None, None),
        (Body::Length(9), None, Some(9)),
        (Body::Length(9), Some(RecvMode::Buffered(9)), Some(9)),
        (Body::Length(9), Some(RecvMode::Progressive(1)), Some(5)),
        (Body::Length(4), Some(RecvMode::Progressive(1)), None),
        (Body::UntilClose, Some(RecvMode::Progressive(1)), Some(0)),
    ] {
        let mut receiver = BodyReceiver::announced(body);
        let mut input = Buf::new();
        input.extend(b"abcd");
        if let Some(mode) = mode {
            let _ = receiver.start_or_resume(mode, Time::ZERO, &limits).expect("within the limits");
            let _ = receiver.next(&mut input, &limits, &total).expect("it is a body");
        }
        let rest = receiver.take_rest(&limits);
        assert_eq!(rest.map(|decoder| decoder.left()), left, "{body:?} {mode:?}");
        assert!(receiver.take_rest(&limits).is_none(), "it is said once");
    }
}

#[test]
fn time_without_reading_does_not_count_against_the_peer() {
    let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(1);
    let mut receiver = requested(Body::Length(100), RecvMode::Progressive(1), &limits);
    let mut input = Buf::new();
    assert_eq!(receiver.deadline(0, false, &limits, second(0)), second(5));
    input.extend(b"abc");
    let _ = receiver.next(&mut input, &limits, &total()).expect("it is a body");
    assert_eq!(
        receiver.deadline(0, false, &limits, second(4)),
        second(8),
        "a second for each octet"
    );
    receiver.hold();
    assert_eq!(receiver.deadline(0, false, &limits, second(6)), Time::NEVER);
    assert_eq!(receiver.start_or_resume(RecvMode::Progressive(1), second(16), &limits), Ok(false));
    assert_eq!(receiver.deadline(0, false, &limits, second(16)), second(18));
    assert_eq!(receiver.deadline(0, true, &limits, second(17)), Time::NEVER, "the output waits");
    assert_eq!(receiver.deadline(0, false, &limits, second(100)), second(101));
}

#[test]
fn a_buffered_body_in_the_input_is_timed_by_its_unread_bytes() {
    let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(1);
    let mut receiver = requested(Body::Length(100), RecvMode::Buffered(100), &limits);
    assert_eq!(receiver.deadline(0, false, &limits, second(0)), second(5));
    assert_eq!(receiver.deadline(3, false, &limits, second(4)), second(8));
    let mut input = Buf::new();
    input.extend(b"abc");
    let (step, _) = limits.body_step();
    let received = receiver.next(&mut input, &limits, &total()).expect("it is a body");
    let ReceiveOutcome::Wait(Some(needed)) = received else { panic!("{received:?}") };
    assert_eq!(needed, 3 + step as usize, "to be told of each step");
}
