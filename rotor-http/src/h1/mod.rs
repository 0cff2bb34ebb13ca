//! HTTP/1.1 (RFC 9112) as pure code: bytes in, bytes out; no clock, no socket, no loop. The server
//! and the client share it.
//!
//! **Feed it the bytes that were read, send the bytes that it wrote, and close when it says so.**
//! Nothing here blocks, allocates for a length that a peer merely announced, or panics on a peer's
//! bytes.
//!
//! This module is hidden and not part of the crate's public API. It is there for the crate's own
//! tests, benches and fuzz targets. What users need of a message is at the crate's root; this
//! module also has the older names of these items.
//!
//! Reading, in the order in which a connection calls it: [`HeadReader`] finds and parses the head,
//! [`RequestSemantics`] (for a client [`ResponseSemantics`]) collects in one pass over the fields
//! what the connection has to know, and [`BodyDecoder`] decodes the body. Writing:
//! [`ResponseState`] (for a client [`RequestState`]) checks what a caller writes into a [`Sink`].
//!
//! | module | contents |
//! |--|--|
//! | `head` | reads a head, however it is split |
//! | `request_lexer`, `response_lexer` | the fast path, for a head that has arrived whole |
//! | `head_scanner`, `field_lines`, `field_storage` | the slow path, the only one that refuses heads; its field lines; room for fields |
//! | `request_semantics`, `response_semantics`, `connection_options`, `framing` | what the fields mean for the connection |
//! | `body`, `chunked`, `decoded`, `trailer_reader` | the body decoder |
//! | `sink`, `message`, `response`, `request`, `decimal` | the message writers |
//!
//! # Limits
//!
//! All limits are in [`Limits`]. The policy is strict: a message is refused if a proxy in front
//! could frame it differently.

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
