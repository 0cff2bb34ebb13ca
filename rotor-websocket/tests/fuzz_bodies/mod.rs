//! The bodies of the fuzz targets, as ordinary functions: the targets in `fuzz/` call them under
//! libFuzzer, `tests/corpus.rs` calls them on every saved input.
//!
//! **Any bytes are a valid input; a panic is a finding.** A server's connection in an in-memory
//! loop receives them and echoes the messages. The answer does not depend on how the bytes are
//! split, and a second reader, simple enough to be obviously correct, gets the same messages.

mod echo;
mod naive;

use std::time::Duration;

use self::echo::{Mode, answer, opened};

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

/// The default limit on the fragments of a message.
const FRAGMENTS_MAX: usize = 1024;

/// Every fuzz target.
pub(super) const TARGETS: [Target; 3] =
    [("websocket", connection), ("websocket_deflate", deflate), ("websocket_frames", frames)];

/// A whole connection that receives any bytes after its request: split as the first bytes say,
/// whole, and byte by byte; with and without pieces and compression.
fn connection(data: &[u8]) {
    let Some(([mode, cut, after], input)) = data.split_first_chunk::<3>() else { return };
    let mode = Mode::of(*mode);
    let whole = answer(mode, [input].into_iter());
    let step = usize::from(*cut) + 1;
    for step in [1, step] {
        let cut = answer(mode, input.chunks(step));
        // A message in pieces may be cut anywhere, but its total is the same. If a text is invalid
        // UTF-8 and cannot be decompressed after that, either fault may be found first.
        if mode == Mode::DEFLATE_PIECES {
            assert_eq!(cut.heard, whole.heard, "by {step}");
            let [cut, whole] = [cut, whole.clone()].map(|one| naive::without_reason(one.sent));
            assert_eq!(cut, whole, "by {step}");
        } else {
            assert_eq!(cut, whole, "by {step}");
        }
    }
    naive::assert_well_formed(&whole.sent);
    // A silent peer ends every connection.
    let mut driver = opened(mode);
    driver.send(input);
    for _ in 0..3 + usize::from(*after) % 4 {
        driver.advance(Duration::from_secs(60));
    }
    assert!(!driver.is_alive(), "nobody is there");
}

/// Valid frames of any kind and length that the input chooses. A naive reader of the same frames
/// computes the expected messages.
fn frames(data: &[u8]) {
    let (input, expected) = naive::build(data);
    let got = answer(Mode::PLAIN, [&input[..]].into_iter());
    assert_eq!(got.heard, expected);
}

/// A payload that claims to be compressed, in fragments whose length the first byte chooses. It is
/// received whole and in pieces, and compared with another decompressor.
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
        // Too long for a whole message, or broken: no mode delivers a wrong message.
        None => assert!(whole.heard.is_empty()),
    }
}
