//! HTTP/1.1 (RFC 9112) as pure code: bytes in, bytes out; no clock, no socket, no loop. Server and
//! client share it.
//!
//! **Feed it what was read, send what it wrote, close when it says so.** Nothing here blocks,
//! allocates for a length that a peer merely announced, or panics on a peer's bytes.
//!
//! Hidden, and no part of what the crate promises: the door for its own tests, benches and fuzz
//! targets. What users need of a message is at the crate's root, and under its old names here.
//!
//! Reading, in the order in which a connection calls it: [`HeadReader`] finds and parses the head,
//! [`RequestSemantics`] (for a client [`ResponseSemantics`]) says in one pass over its fields what
//! the connection has to know, and [`BodyDecoder`] takes the body apart. Writing: [`ResponseState`]
//! (for a client [`RequestState`]) guards what a caller writes into a [`Sink`].
//!
//! | module | what it holds |
//! |--|--|
//! | `head` | a head, from whatever pieces it comes in |
//! | `request_lexer`, `response_lexer` | the fast ways in, for a head that is there whole |
//! | `head_scanner`, `field_lines`, `field_storage` | the slow way, which alone refuses; its field lines; room for fields |
//! | `request_semantics`, `response_semantics`, `connection_options`, `framing` | what follows from the fields |
//! | `body`, `chunked`, `decoded`, `trailer_reader` | the body decoder |
//! | `sink`, `message`, `response`, `request`, `decimal` | the message writers |
//!
//! # Limits
//!
//! All of them are in [`Limits`]. The policy is strict: what a proxy in front could frame
//! differently is refused.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod connection_options;
pub(crate) mod decimal;
pub(crate) mod decoded;
pub(crate) mod field_lines;
pub(crate) mod field_storage;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod head_scanner;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod request_lexer;
pub(crate) mod request_semantics;
pub(crate) mod response;
pub(crate) mod response_lexer;
pub(crate) mod response_semantics;
pub(crate) mod sink;
pub(crate) mod trailer_reader;

pub use self::body::BodyDecoder;
pub use self::decoded::Decoded;
pub use self::field_storage::FieldStorage;
pub use self::framing::{Body, FramingFields, Message, body_of};
pub use self::head::{HeadReader, RequestHead, ResponseHead};
pub use self::request::RequestState;
pub use self::request_semantics::RequestSemantics;
pub use self::response::{Ending, ReplyTo, ResponseState};
pub use self::response_semantics::ResponseSemantics;
pub use self::sink::Sink;
pub use crate::limits::Limits;
pub use crate::semantics::authority::Authority;
pub use crate::semantics::date::{DateCache, format_date, parse_date};
pub use crate::semantics::error::{
    BodyError, FramingError, HeadError, MessageError, RequestError, ResponseHeadError,
};
pub use crate::semantics::fields::{Field, Fields};
pub use crate::semantics::method::Method;
pub use crate::semantics::nominated::Nominated;
pub use crate::semantics::status::Status;
pub use crate::semantics::target::{Form, Target};
pub use crate::semantics::token_list::{list_elements as elements, list_has_token as has_token};
pub use crate::semantics::trailers::Trailers;
pub use crate::semantics::version::Version;
