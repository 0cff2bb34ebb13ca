//! What the two sides of a request say to each other: the handler that faces the client, and the
//! one that faces the upstream.
//!
//! Each has a mailbox. One piece of a body, or one interim answer, is under way in each direction
//! at most: who has sent one holds its peer off until it is asked for more. So a side that does not
//! read stops the other one from sending, and memory stays flat.

use rotor::Sender;
use rotor::http::Status;
use rotor::stream::Block;

/// From one side to the other.
pub(crate) enum Message {
    /// The upstream side has a connection, and hears by this.
    Ready(Sender<Message>),
    /// It can take the body of the request.
    Wanted,
    /// An interim answer of the upstream.
    Interim(Status, Lines),
    /// The head of its answer.
    Head(Box<Answer>),
    /// A piece of a body, or of the protocol that was switched to.
    Piece(Block),
    /// The last piece or interim answer was taken: there is room for another.
    More,
    /// The body has ended, with these trailer fields, or this direction of the other protocol.
    End(Lines),
    /// The other protocol broke off: not in order, or its connection was lost.
    Broken,
}

/// Field lines.
pub(crate) type Lines = Vec<(String, Vec<u8>)>;

/// Field lines as writers take them.
pub(crate) fn borrowed(lines: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    lines.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect()
}

/// The head of an answer, as it is passed on.
pub(crate) struct Answer {
    pub(crate) status: Status,
    pub(crate) fields: Lines,
    /// It says in `Upgrade` that it goes on as a WebSocket, or would.
    pub(crate) names_websocket: bool,
    /// None where it is unknown.
    pub(crate) length: Option<u64>,
}

/// Messages that a mailbox holds: one interim answer or head, one piece, and the words about them,
/// of two attempts if the first died. What they hold is that head and that piece.
pub(crate) const MESSAGES_MAX: usize = 10;
