//! `Fault`: violations of the protocol, and the close codes for them.

use quick_error::quick_error;

use super::code::Code;

quick_error! {
    /// A violation by the peer that ends the connection; always the peer's mistake. The peer gets
    /// the [code](Fault::code) in a close frame.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Fault {
        /// A reserved bit is set, but no extension gives it a meaning (RFC 6455 §5.2). 1002.
        ReservedBits {
            display("a frame has a reserved bit set")
        }
        /// An unknown opcode. 1002.
        Opcode(opcode: u8) {
            display("a frame has the unknown opcode {opcode:#x}")
        }
        /// A control frame that is longer than 125 bytes, or not final (RFC 6455 §5.5). 1002.
        Control {
            display("a control frame is too long, or is a fragment")
        }
        /// A length that is not in its shortest form, or has its highest bit set (RFC 6455 §5.2).
        /// 1002.
        Length {
            display("the length of a frame is not in its shortest form")
        }
        /// A client's frame is not masked, or a server's frame is (RFC 6455 §5.1). 1002.
        Mask {
            display("a frame of a server is masked, or one of a client is not")
        }
        /// A continuation outside a message, or a new message before the last one has ended (RFC
        /// 6455 §5.4). 1002.
        Order {
            display("a fragment continues nothing, or a message begins within another")
        }
        /// A close frame of one byte, or with a code that must not be sent (RFC 6455 §7.4). 1002.
        CloseCode {
            display("a close frame has no code that may be sent")
        }
        /// Text, or the reason in a close frame, that is not UTF-8 (RFC 6455 §8.1). 1007.
        NotUtf8 {
            display("a text is not UTF-8")
        }
        /// A compressed message that cannot be decompressed, or has been cut off (RFC 7692 §7.2.2).
        /// 1007.
        Deflate {
            display("a compressed message cannot be decompressed")
        }
        /// A message longer than [`message_max`](crate::WebSocketConfig::message_max): by its
        /// announced length, by the bytes received, or after decompression. 1009.
        TooLong {
            display("a message is too long")
        }
        /// A message in more fragments than
        /// [`fragments_max`](crate::WebSocketConfig::fragments_max). 1008.
        Fragments {
            display("a message has too many fragments")
        }
        /// More control frames than [`control_max`](crate::WebSocketConfig::control_max) and
        /// [`control_rate`](crate::WebSocketConfig::control_rate) allow. 1008.
        ControlFlood {
            display("there are too many control frames")
        }
    }
}

impl Fault {
    /// Returns the code that the peer gets.
    pub fn code(self) -> Code {
        match self {
            Fault::ReservedBits
            | Fault::Opcode(_)
            | Fault::Control
            | Fault::Length
            | Fault::Mask
            | Fault::Order
            | Fault::CloseCode => Code::PROTOCOL_ERROR,
            Fault::NotUtf8 | Fault::Deflate => Code::INVALID_DATA,
            Fault::TooLong => Code::TOO_LONG,
            Fault::Fragments | Fault::ControlFlood => Code::POLICY,
        }
    }
}
