//! The fuzz targets as ordinary functions: the targets in `fuzz/` call them under libFuzzer, and
//! `tests/corpus.rs` calls them on every saved input.
//!
//! **Any bytes are a valid input; a panic is a finding.** Each body compares the code with three
//! things: itself (whole, byte by byte and cut anywhere, the result is the same), a second
//! implementation that is obviously correct (`naive`), and what its documentation promises after an
//! error.

mod body;
mod connection;
mod dates;
mod hpack;
mod http2_client;
mod http2_connection;
mod http2_frames;
mod input;
mod naive;
mod request_head;
mod request_writer;
mod response_head;
mod response_writer;
mod targets;

/// A fuzz target: its name, which is that of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
pub(super) const TARGETS: [Target; 12] = [
    ("body", body::run),
    ("connection", connection::run),
    ("dates", dates::run),
    ("hpack", hpack::run),
    ("http2_client", http2_client::run),
    ("http2_connection", http2_connection::run),
    ("http2_frames", http2_frames::run),
    ("request_head", request_head::run),
    ("request_writer", request_writer::run),
    ("response_head", response_head::run),
    ("response_writer", response_writer::run),
    ("targets", targets::run),
];
