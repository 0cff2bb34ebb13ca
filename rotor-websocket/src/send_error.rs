//! `SendError`: why nothing was sent.

use quick_error::quick_error;

quick_error! {
    /// Why nothing was sent. No part of the message was sent, and the connection is unchanged.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum SendError {
        /// A close frame was sent, after which nothing may follow (RFC 6455 §5.5.1). If the peer
        /// has closed, this is nobody's mistake; after [`Next::close`](crate::Next::close) it is
        /// the caller's.
        Closing {
            display("the connection is closing: nothing can be sent any more")
        }
        /// [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water) bytes are unsent
        /// already, because of the peer or the network. Try again in
        /// [`flushed`](crate::Handler::flushed).
        Full {
            display("too much output waits for the peer: try again when it is flushed")
        }
        /// A message was begun with [`begin`](crate::Sender::begin), and no other may be sent
        /// before it is ended. The caller's mistake.
        Unfinished {
            display("a message was begun: end it before another one")
        }
        /// No message was begun. The caller's mistake.
        NotBegun {
            display("no message was begun: `begin` one before its pieces")
        }
        /// The pieces of a text are not UTF-8, or it ends within a character. The caller's mistake:
        /// continue with valid bytes, or close.
        NotUtf8 {
            display("the pieces of a text are not UTF-8")
        }
        /// A ping has more than 125 bytes. The caller's mistake.
        TooLong {
            display("a ping has at most 125 bytes")
        }
    }
}
