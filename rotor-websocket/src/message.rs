//! `Message`, `Piece` and `Kind`.

/// A complete message. It borrows from the connection, so a handler must copy what it needs later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// A piece of a message, as it arrived.
///
/// Where a piece ends has no meaning: it need not be the end of a frame, or of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// The kind of the message.
    pub kind: Kind,
    /// The bytes, decompressed. The pieces of a text so far are always the beginning of valid
    /// UTF-8; its last piece never ends within a character.
    pub bytes: &'a [u8],
    /// Whether the message begins with this piece.
    pub is_first: bool,
    /// Whether the message ends with this piece. The last piece may be empty.
    pub is_last: bool,
}

impl Message<'_> {
    /// Returns the kind of the message.
    pub fn kind(&self) -> Kind {
        match self {
            Message::Text(_) => Kind::Text,
            Message::Binary(_) => Kind::Binary,
        }
    }

    /// Returns the bytes, whatever the kind.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
        }
    }
}
