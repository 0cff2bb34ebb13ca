//! `Version`: the two forms of a header.

/// A form of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// A line of text: addresses and ports.
    V1,
    /// Binary: addresses and ports, and fields beside them.
    V2,
}
