//! What messages are: `Message`, `Piece`, `Kind`.

/// A whole message, as it came. It borrows from the connection: what a handler needs later, it
/// copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// What a message is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// A piece of a message, as much as is there.
///
/// Where it is cut means nothing: neither frames nor characters keep together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// What the message is.
    pub kind: Kind,
    /// The bytes, decompressed. Of a text, all bytes so far can be the beginning of one; whether it
    /// is whole is known with its last piece.
    pub bytes: &'a [u8],
    /// Whether a message begins with it.
    pub is_first: bool,
    /// Whether the message ends with it. The last piece may be empty.
    pub is_last: bool,
}

impl Message<'_> {
    /// Returns what the message is.
    pub fn kind(&self) -> Kind {
        match self {
            Message::Text(_) => Kind::Text,
            Message::Binary(_) => Kind::Binary,
        }
    }

    /// Returns its bytes, whatever it is.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
        }
    }
}
