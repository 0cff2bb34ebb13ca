//! The most valuable test of a stream protocol: the same bytes give the same output, however they
//! are cut.

use std::fmt::{self, Display};

use super::Driver;
use crate::protocol::Protocol;

/// What a protocol did with its input.
#[derive(Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Everything that it wrote.
    pub output: Vec<u8>,
    /// The errors that ended it, if any.
    pub failures: Vec<String>,
    /// Whether it had ended after its peer had ended the stream.
    pub has_ended: bool,
}

/// Shows the output as text, because most of it is.
impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("output", &format_args!("\"{}\"", self.output.escape_ascii()))
            .field("failures", &self.failures)
            .field("has_ended", &self.has_ended)
            .finish()
    }
}

/// Feeds `input`, then the end of the stream, to a protocol: whole, byte by byte, and cut in two at
/// every point; each time with a peer that takes everything at once, and with one that takes a byte
/// at a time. Returns the transcript, which is the same each time.
///
/// `make` makes a new driver each time.
///
/// # Panics
///
/// If two transcripts differ: the message names the cut, and shows both. And if the protocol panics,
/// which is a bug even if it does so with every cut.
pub fn assert_cuts_agree<P: Protocol>(make: impl Fn() -> Driver<P>, input: &[u8]) -> Transcript {
    let whole = transcript(&make, &[input], usize::MAX);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    for (peer, write_max) in [("all at once", usize::MAX), ("a byte at a time", 1)] {
        let check = |cut: &dyn Display, pieces: &[&[u8]]| {
            let seen = transcript(&make, pieces, write_max);
            assert!(
                seen == whole,
                "{cut}, to a peer that reads {peer}:\n  {seen:?}\nwhole:\n  {whole:?}"
            );
        };
        check(&"whole", &[input]);
        check(&"byte by byte", &bytes);
        for cut in 1..input.len() {
            let (first, second) = input.split_at(cut);
            check(&format_args!("cut at {cut}"), &[first, second]);
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
    let has_panicked = driver.test().instance().stats().read().panicked > 0;
    assert!(!has_panicked, "the protocol has failed: {:?}", driver.failures());
    Transcript { output: driver.take_received(), failures: driver.failures(), has_ended }
}
