//! What each fuzz target does with its input, as ordinary functions: the targets in `fuzz/` call
//! them under libFuzzer, `tests/corpus.rs` calls them on every saved input.
//!
//! **Any bytes are a good input; a panic is a finding.** They come to a server's connection, which
//! sends back what it gets, in a loop in memory. However they are cut, the answer is the same, and
//! it is what a second reader, written for being plainly right, makes of them.

mod echo;
mod naive;

use std::time::Duration;

use self::echo::{Mode, answer, opened};

/// A fuzz target: its name, which is that of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

/// How many fragments a message may have, by default.
const FRAGMENTS_MAX: usize = 1024;

/// Every fuzz target.
pub(super) const TARGETS: [Target; 3] =
    [("websocket", connection), ("websocket_deflate", deflate), ("websocket_frames", frames)];

/// A whole connection, with anything after its request: cut as the first bytes say, whole, and
/// byte by byte; with pieces and compression or without.
fn connection(data: &[u8]) {
    let Some(([mode, cut, after], input)) = data.split_first_chunk::<3>() else { return };
    let mode = Mode::of(*mode);
    let whole = answer(mode, [input].into_iter());
    let step = usize::from(*cut) + 1;
    for step in [1, step] {
        let cut = answer(mode, input.chunks(step));
        // In pieces, where they are cut is theirs to say; not what they come to. Of a text that is
        // no UTF-8, and cannot be decompressed behind that, either may be found first.
        if mode == Mode::DEFLATE_PIECES {
            assert_eq!(cut.heard, whole.heard, "by {step}");
            let [cut, whole] = [cut, whole.clone()].map(|one| naive::without_reason(one.sent));
            assert_eq!(cut, whole, "by {step}");
        } else {
            assert_eq!(cut, whole, "by {step}");
        }
    }
    naive::assert_well_formed(&whole.sent);
    // Silence ends every connection.
    let mut driver = opened(mode);
    driver.send(input);
    for _ in 0..3 + usize::from(*after) % 4 {
        driver.advance(Duration::from_secs(60));
    }
    assert!(!driver.is_alive(), "nobody is there");
}

/// Frames that are in order, of any kind and length, which the input chooses: a naive reader of the
/// same frames says what must come back.
fn frames(data: &[u8]) {
    let (input, expected) = naive::build(data);
    let got = answer(Mode::PLAIN, [&input[..]].into_iter());
    assert_eq!(got.heard, expected);
}

/// A payload that claims to be compressed, in fragments that the first bytes choose: as another
/// decompressor reads it, in pieces and whole.
fn deflate(data: &[u8]) {
    let Some(([cut], payload)) = data.split_first_chunk::<1>() else { return };
    let step = usize::from(*cut) + 1;
    let mut input = Vec::new();
    let count = payload.chunks(step).count().max(1);
    for (at, part) in payload.chunks(step).chain(payload.is_empty().then_some(payload)).enumerate()
    {
        let first = if at == 0 { 0x42 } else { 0x00 } | if at + 1 == count { 0x80 } else { 0 };
        input.extend(naive::frame(first, part));
    }
    let whole = answer(Mode::DEFLATE, [&input[..]].into_iter());
    let pieces = answer(Mode::DEFLATE_PIECES, [&input[..]].into_iter());
    let expected = naive::decompress(payload, echo::MESSAGE_MAX);
    match &expected {
        // More fragments than a whole message may have.
        Some(_) if count > FRAGMENTS_MAX => assert!(whole.heard.is_empty()),
        Some(bytes) => {
            assert_eq!(whole.heard, [(false, bytes.clone())]);
            assert_eq!(pieces.heard, whole.heard);
        }
        // Too long for a whole one, or broken: in neither way is it taken for a message that it
        // is not.
        None => assert!(whole.heard.is_empty()),
    }
}
