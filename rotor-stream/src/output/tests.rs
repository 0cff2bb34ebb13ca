//! Output of every kind is written in order, however little the socket accepts.

use std::io::IoSlice;

use rotor_test_kit::Directory;

use super::writing::{SLICES_MAX, check_write_count};
use super::*;
use crate::testing::{Peer, ScriptedSocket, World, pair};

fn file(name: &str, content: &[u8]) -> Arc<File> {
    Arc::new(File::open(Directory::create().file(name, content)).expect("the same file"))
}

fn socket() -> (ScriptedSocket, Peer) {
    pair(&World::new())
}

/// Adds a segment of one of four kinds. Returns its bytes.
fn add(output: &mut Output, kind: usize, number: usize, file: &Arc<File>) -> Vec<u8> {
    let letter = b'a' + (number % 26) as u8;
    match kind {
        0 => {
            output.write_all(&[letter; 5]).expect("open");
            vec![letter; 5]
        }
        1 => {
            output.push_block(vec![letter; 600]).expect("open");
            vec![letter; 600]
        }
        2 => {
            output.push_block(Block::from("static")).expect("open");
            b"static".to_vec()
        }
        _ => {
            output.push_file(file.clone(), number as u64, 700).expect("open");
            (number..number + 700).map(|at| (at % 251) as u8).collect()
        }
    }
}

#[test]
fn segments_of_all_kinds_are_written_in_order_by_partial_writes() {
    let content: Vec<u8> = (0..1_000).map(|at| (at % 251) as u8).collect();
    let file = file("order", &content);
    for pattern in 0..256 {
        for write_max in [1, 3, 599, 650, usize::MAX] {
            let mut output = Output::new();
            let (mut socket, peer) = socket();
            peer.limit_writes(write_max);
            let mut expected = Vec::new();
            for place in 0..4 {
                expected.extend(add(&mut output, pattern >> (2 * place) & 3, place, &file));
            }
            assert_eq!(output.len(), expected.len());
            while !output.is_empty() {
                let before = output.len();
                let count =
                    output.write_to(&mut socket, usize::MAX).expect("the socket takes something");
                assert_eq!(output.len() + count, before);
            }
            assert_eq!(
                peer.take_received(),
                expected,
                "pattern {pattern}, {write_max} bytes a write"
            );
            assert!(output.later.is_none() && output.bytes.capacity() == 0);
        }
    }
}

#[test]
fn a_write_is_limited_whatever_kind_of_segment_is_first() {
    let content: Vec<u8> = (0..1_000).map(|at| (at % 251) as u8).collect();
    let file = file("most", &content);
    for pattern in 0..256 {
        for most in [1, 5, 6, 600, 601, 1_300, usize::MAX] {
            let mut output = Output::new();
            let (mut socket, peer) = socket();
            let mut expected = Vec::new();
            for place in 0..4 {
                expected.extend(add(&mut output, pattern >> (2 * place) & 3, place, &file));
            }
            while !output.is_empty() {
                let count = output.write_to(&mut socket, most).expect("the socket takes all");
                assert!((1..=most).contains(&count), "{count} of {most}, pattern {pattern}");
            }
            assert_eq!(peer.take_received(), expected, "pattern {pattern}, {most} bytes a write");
        }
    }
}

#[test]
fn the_segment_list_is_dropped_once_only_bytes_remain() {
    let mut output = Output::new();
    let (mut socket, peer) = socket();
    output.push_block(vec![b'x'; 600]).expect("open");
    output.write_all(b"tail").expect("open");
    peer.limit_writes(600);
    output.write_to(&mut socket, usize::MAX).expect("taken");
    assert!(output.later.is_none());
    assert_eq!(&output.bytes[..], b"tail");
}

#[test]
fn many_blocks_are_written_in_few_calls() {
    let mut output = Output::new();
    let (mut socket, peer) = socket();
    for _ in 0..160 {
        output.push_block(vec![b'x'; 600]).expect("open");
    }
    while !output.is_empty() {
        output.write_to(&mut socket, usize::MAX).expect("taken");
    }
    assert_eq!((peer.operations().writes, peer.received_len()), (3, 96_000));
}

#[test]
fn a_file_that_became_shorter_is_an_error() {
    let mut output = Output::new();
    let (mut socket, peer) = socket();
    output.push_file(file("short", b"abc"), 1, 10).expect("open");
    assert_eq!(output.write_to(&mut socket, usize::MAX).expect("what there is"), 2);
    let error = output.write_to(&mut socket, usize::MAX).expect_err("no more");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!((peer.take_received(), output.len()), (b"bc".to_vec(), 8));
}

#[test]
fn a_write_count_of_zero_or_beyond_the_given_bytes_is_an_error() {
    assert_eq!(check_write_count(Ok(3), 3).expect("all"), 3);
    assert_eq!(check_write_count(Ok(0), 3).expect_err("nothing").kind(), io::ErrorKind::WriteZero);
    assert!(check_write_count(Ok(4), 3).is_err());
}

#[test]
fn a_file_range_beyond_isize_max_is_refused_and_adds_nothing() {
    let mut output = Output::new();
    let file = file("counted", b"abc");
    output.write_all(b"a").expect("open");
    for count in [isize::MAX as usize, usize::MAX] {
        let error = output.push_file(file.clone(), 0, count).expect_err("a byte too much, or more");
        assert_eq!((error.kind(), output.len()), (io::ErrorKind::InvalidInput, 1));
    }
    output.push_file(file, 0, isize::MAX as usize - 1).expect("just as much");
    assert_eq!(output.len(), isize::MAX as usize);
}

#[test]
fn a_file_offset_saturates_and_does_not_wrap() {
    let mut output = Output::new();
    output.push_file(file("beyond", b"abc"), u64::MAX - 1, 10).expect("open");
    let mut other = Output::new();
    assert_eq!(output.move_to(&mut other, 5).expect("open"), 5);
    for mut part in [output, other] {
        assert_eq!(part.len(), 5);
        let (mut socket, peer) = socket();
        assert!(part.write_to(&mut socket, usize::MAX).is_err(), "nothing is there");
        assert_eq!(peer.received_len(), 0);
    }
}

#[test]
fn an_output_of_bytes_is_six_words() {
    assert_eq!(size_of::<Output>(), 48);
    let mut output = Output::new();
    output.write_all(b"x").expect("open");
    assert!(output.later.is_none());
}

/// The whole content of an output.
fn content(mut output: Output) -> Vec<u8> {
    let (mut socket, peer) = socket();
    while !output.is_empty() {
        output.write_to(&mut socket, usize::MAX).expect("the socket takes all");
    }
    peer.take_received()
}

#[test]
fn moved_segments_stay_in_order_wherever_they_are_divided() {
    let bytes: Vec<u8> = (0..1_000).map(|at| (at % 251) as u8).collect();
    let file = file("moved", &bytes);
    for pattern in 0..256 {
        for count in [0, 1, 5, 6, 513, 600, 606, 700, 1_300, 1_301, 5_000] {
            let (mut output, mut expected) = (Output::new(), Vec::new());
            for place in 0..4 {
                expected.extend(add(&mut output, pattern >> (2 * place) & 3, place, &file));
            }
            let mut frames = Output::new();
            let mut framed = Vec::new();
            // As HTTP/2 does with a response body: a header for each piece.
            for piece in expected.chunks(count.max(1)).take(if count < 5 { 9 } else { 5_000 }) {
                frames.write_all(b"head").expect("open");
                let moved = output.move_to(&mut frames, count).expect("open");
                let piece = if count == 0 { &[][..] } else { piece };
                framed.extend([b"head", piece].concat());
                assert_eq!(moved, piece.len(), "{pattern} {count}");
            }
            let left = framed.len() - framed.len().div_ceil(count + 4) * 4;
            assert_eq!(frames.len(), framed.len());
            assert_eq!(output.len(), expected.len() - left, "{pattern} {count}");
            assert_eq!(content(frames), framed, "{pattern} {count}");
            assert_eq!(content(output), &expected[left..], "{pattern} {count}");
        }
    }
}

#[test]
fn a_block_is_moved_without_copying_its_bytes() {
    let block = vec![b'b'; 2_000];
    let place = block.as_ptr_range();
    let (mut output, mut other) = (Output::new(), Output::new());
    output.push_block(block).expect("open");
    assert_eq!(output.move_to(&mut other, 1_000).expect("open"), 1_000);
    for part in [&output, &other] {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        assert_eq!(part.collect_slices(&mut slices, usize::MAX), (1, 1_000));
        assert!(place.contains(&slices[0].as_ptr()));
    }
}

#[test]
fn nothing_is_moved_into_an_ended_output() {
    let (mut output, mut other) = (Output::new(), Output::new());
    output.write_all(b"abc").expect("open");
    other.set_end_state(EndState::Requested);
    let error = output.move_to(&mut other, 3).expect_err("it was ended");
    assert_eq!((error.kind(), output.len(), other.len()), (io::ErrorKind::BrokenPipe, 3, 0));
}

#[test]
fn shrinking_returns_a_half_empty_block_and_keeps_the_content() {
    for (len, held) in [(0, 0), (1, 64), (5_000, 8_192), (8_192, 8_192), (8_193, 16_384)] {
        let mut output = Output::new();
        let bytes: Vec<u8> = (0..len).map(|number| number as u8).collect();
        output.write_all(&bytes).expect("it is open");
        output.shrink();
        assert_eq!(output.held_bytes(), held, "{len}");
        output.shrink();
        output.write_all(b"and more").expect("it is open");
        assert_eq!(content(output), [&bytes[..], b"and more"].concat());
    }
}

#[test]
fn a_block_shared_by_outputs_is_counted_once_in_total() {
    let made: [fn() -> (Block, usize); 4] = [
        || (Block::from(Arc::<[u8]>::from(vec![b'x'; 6_000])), 6_000),
        || (Block::from(vec![b'x'; 6_000]), 6_000),
        || {
            let mut buf = Buf::new();
            buf.extend(&[b'x'; 10_000]);
            (Block::take_from(&mut buf, 10_000), 16_384)
        },
        || (Block::from(&[b'x'; 6_000][..]), 0),
    ];
    for make in made {
        let (block, held) = make();
        let mut outputs = [Output::new(), Output::new()];
        outputs[0].push_block(block.clone()).expect("open");
        outputs[1].push_block(block).expect("open");
        assert_eq!(outputs.each_ref().map(Output::held_bytes), [held / 2; 2]);
        let [mut output, other] = outputs;
        drop(other);
        output.push_file(file("held", b"abc"), 0, 3).expect("open");
        output.discard(5_000);
        assert_eq!(output.held_bytes(), held, "however little of it is left");
    }
}

/// Bytes consumed before, the length, bytes that follow, bytes pending in the output; and whether
/// the bytes stay in place.
#[test]
fn received_bytes_are_forwarded_without_copying_if_that_is_cheaper() {
    let cases = [
        (8, 16_384, 0, 0, true),
        (4, 16_380, 0, 0, true),
        (3, 16_380, 0, 0, false),
        (8, 4096, 0, 0, true),
        (8, 4095, 0, 0, false),
        (8, 8000, 1, 0, false),
        (8, 8000, 0, 1, false),
        (8, 16_000, 20_000, 0, false),
    ];
    for (room, len, behind, waits, stays) in cases {
        let (mut input, mut output) = (Buf::new(), Output::new());
        output.write_all(&b"w".repeat(waits)).unwrap();
        input.extend(&b"c".repeat(room));
        input.extend(&b"x".repeat(len));
        input.extend(&b"b".repeat(behind));
        input.consume(room);
        let place = input.as_ptr();
        output.write_from(b"head", &mut input, len).unwrap();
        let expected = [b"w".repeat(waits), b"head".to_vec(), b"x".repeat(len)].concat();
        assert!(output.front() == expected, "{room} {len}");
        assert!(input[..] == b"b".repeat(behind), "{room} {len}");
        assert_eq!(output.front()[waits + 4..].as_ptr() == place, stays, "{room} {len}");
    }
}

#[test]
fn an_ended_output_takes_nothing_from_an_input() {
    let (mut input, mut output) = (Buf::new(), Output::new());
    output.set_end_state(EndState::Requested);
    input.extend(&[7; 5000]);
    let error = output.write_from(b"", &mut input, 5000).unwrap_err();
    assert_eq!((error.kind(), input.len()), (io::ErrorKind::BrokenPipe, 5000));
}
