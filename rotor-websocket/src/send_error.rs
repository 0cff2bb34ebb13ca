//! `SendError`: why a message was not sent.

use quick_error::quick_error;

quick_error! {
    /// Why nothing was sent. No part of the message is on its way, and the connection is as it was.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum SendError {
        /// A close frame was sent, after which nothing may follow (RFC 6455 §5.5.1). Nobody's fault
        /// if the peer has closed; the caller's after [`Next::close`](crate::Next::close).
        Closing {
            display("the connection is closing: nothing can be sent any more")
        }
        /// [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water) bytes wait for the peer
        /// already. The peer's or the network's fault; try again in
        /// [`flushed`](crate::Handler::flushed).
        Full {
            display("too much waits for the peer already: try again when it is flushed")
        }
        /// A message was begun with [`begin`](crate::Sender::begin), and no other may be sent
        /// within it. The caller's fault.
        Unfinished {
            display("a message was begun: end it before another one")
        }
        /// No message was begun. The caller's fault.
        NotBegun {
            display("no message was begun: `begin` one before its pieces")
        }
        /// The pieces of a text are not UTF-8, or it ends within a character. The caller's fault:
        /// go on with the right bytes, or close.
        NotUtf8 {
            display("the pieces of a text are not UTF-8")
        }
        /// A ping of more than 125 bytes. The caller's fault.
        TooLong {
            display("a ping has 125 bytes at most")
        }
    }
}
