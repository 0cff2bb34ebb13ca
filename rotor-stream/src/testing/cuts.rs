//! The most valuable test of a stream protocol: the same bytes give the same output, however they
//! are cut.

use super::Driver;
use crate::protocol::Protocol;

/// What a protocol did with its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// Everything that it wrote.
    pub output: Vec<u8>,
    /// The errors that ended it, if any.
    pub failures: Vec<String>,
    /// Whether it had ended after its peer had ended the stream.
    pub has_ended: bool,
}

/// Feeds `input`, then the end of the stream, to a protocol: whole, byte by byte, and cut in two at
/// every point; each time with a peer that takes everything at once, and with one that takes a byte
/// at a time. Returns the transcript, which is the same each time.
///
/// `make` makes a new driver each time.
///
/// # Panics
///
/// If two transcripts differ. The message names the cut.
pub fn assert_cuts_agree<P: Protocol>(make: impl Fn() -> Driver<P>, input: &[u8]) -> Transcript {
    let whole = transcript(&make, &[input], usize::MAX);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    for write_max in [usize::MAX, 1] {
        assert_eq!(
            transcript(&make, &[input], write_max),
            whole,
            "whole, {write_max} bytes a write"
        );
        assert_eq!(
            transcript(&make, &bytes, write_max),
            whole,
            "byte by byte, {write_max} bytes a write"
        );
        for cut in 1..input.len() {
            let (first, second) = input.split_at(cut);
            let cut_in_two = transcript(&make, &[first, second], write_max);
            assert_eq!(cut_in_two, whole, "cut at {cut}, {write_max} bytes a write");
        }
    }
    whole
}

fn transcript<P: Protocol>(
    make: impl Fn() -> Driver<P>,
    pieces: &[&[u8]],
    write_max: usize,
) -> Transcript {
    let mut driver = make();
    driver.limit_writes(write_max);
    for piece in pieces {
        driver.send(piece);
    }
    driver.end();
    let has_ended = !driver.is_alive();
    Transcript { output: driver.take_received(), failures: driver.failures(), has_ended }
}
