//! `Version`: the two versions of the header.

/// A version of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// Version 1, a line of text with addresses and ports.
    V1,
    /// Version 2, a binary header with addresses, ports and further fields.
    V2,
}
