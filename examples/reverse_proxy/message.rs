//! The messages between the two sides of a request: the handler on the client's side, and the one
//! on the upstream's side.
//!
//! Each has a mailbox. In each direction, at most one piece of a body, or one interim response, is
//! on its way: after a side has sent one, it pauses reading from its peer until it gets `More`. So
//! if one side does not read, the other one stops sending, and memory stays bounded.

use rotor::Sender;
use rotor::http::Status;
use rotor::stream::Block;

/// A message from one side to the other.
pub(crate) enum Message {
    /// The upstream's side has a connection, and receives messages here; and whether the upstream
    /// speaks HTTP/2.
    Ready(Sender<Message>, bool),
    /// The upstream's side can take the body of the request.
    Wanted,
    /// An interim response of the upstream.
    Interim(Status, Lines),
    /// The head of the upstream's response.
    Head(Box<Answer>),
    /// A piece of a body, or of the protocol after a switch.
    Piece(Block),
    /// The last piece or interim answer was taken: there is room for another.
    More,
    /// The body has ended, with these trailer fields; or this direction of the other protocol has
    /// ended.
    End(Lines),
    /// The other protocol ended abnormally, or its connection was lost.
    Broken,
}

/// Field lines.
pub(crate) type Lines = Vec<(String, Vec<u8>)>;

/// Field lines, as the writers take them.
pub(crate) fn borrowed(lines: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    lines.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect()
}

/// The head of a response to be passed on.
pub(crate) struct Answer {
    pub(crate) status: Status,
    pub(crate) fields: Lines,
    /// Whether its `Upgrade` says that it goes on as a WebSocket, or would.
    pub(crate) names_websocket: bool,
    /// `None` if it is unknown.
    pub(crate) length: Option<u64>,
}

/// How many messages a mailbox holds: one interim response or head, one piece, and the messages
/// about them, for two attempts if the first one failed. Only the head and the piece take memory.
pub(crate) const MESSAGES_MAX: usize = 10;
