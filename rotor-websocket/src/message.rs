//! `Message`, `Piece` and `Kind`.

/// A whole message. It borrows from the connection, so a handler copies what it needs later.
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

/// A piece of a message, as much as has come.
///
/// Where it is cut means nothing: pieces follow neither frames nor characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// The kind of the message.
    pub kind: Kind,
    /// The bytes, decompressed. For a text, all bytes so far are a valid beginning of UTF-8;
    /// whether the text is complete is known with its last piece.
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
