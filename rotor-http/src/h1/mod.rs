//! HTTP/1.1 as pure code: bytes in, bytes out; no clock, no socket, no loop. Server and client
//! share it.
//!
//! **Feed it what was read, send what it wrote, close when it says so.** Nothing here blocks,
//! allocates for a length that a peer merely announced, or panics on a peer's bytes.
//!
//! Reading, in the order in which a connection calls it: [`HeadReader`] finds and parses the head,
//! [`RequestTerms`] (for a client [`ResponseTerms`]) says in one pass over its fields what the
//! connection has to know, and [`BodyDecoder`] takes the body apart. Writing: [`ResponseState`]
//! (for a client [`RequestState`]) guards what a caller writes into a [`Sink`].
//!
//! | module | what it holds |
//! |--|--|
//! | `scanner`, `lexer`, `parser`, `head` | the head: which bytes are allowed, the fast ways in, the parsed result |
//! | `method`, `target`, `authority`, `version`, `status` | the parts of the start line |
//! | `fields`, `token_list`, `terms`, `framing`, `nominated` | the fields, and what follows from them |
//! | `body`, `chunked`, `decoded`, `trailers` | the body decoder |
//! | `sink`, `message`, `response`, `request`, `decimal` | the message writers |
//! | `date`, `limits`, `error` | dates, every limit, every error |
//! | `grammar`, `runs` | the byte classes, and how long a run of one is |
//!
//! # Limits
//!
//! All of them are in [`Limits`]. The policy is strict: what a proxy in front could frame
//! differently is refused.

mod authority;
mod body;
mod chunked;
mod date;
mod decimal;
mod decoded;
mod error;
mod fields;
mod framing;
mod grammar;
mod head;
mod lexer;
mod limits;
mod message;
mod method;
mod nominated;
mod parser;
mod request;
mod response;
mod runs;
mod scanner;
mod sink;
mod status;
mod target;
mod terms;
mod token_list;
mod trailers;
mod version;

pub use self::authority::Authority;
pub use self::body::BodyDecoder;
pub use self::date::{DateCache, format_date, parse_date};
pub use self::decoded::Decoded;
pub use self::error::{
    BodyError, FramingError, HeadError, MessageError, RequestError, ResponseHeadError,
};
pub use self::fields::{Field, Fields};
pub use self::framing::{Body, FramingFields, Message, body_of};
pub use self::head::{HeadReader, RequestHead, ResponseHead};
pub use self::limits::Limits;
pub use self::method::Method;
pub use self::nominated::Nominated;
pub use self::parser::FieldStorage;
pub use self::request::RequestState;
pub use self::response::{Ending, ReplyTo, ResponseState};
pub use self::sink::Sink;
pub use self::status::Status;
pub use self::target::{Form, Target};
pub use self::terms::{RequestTerms, ResponseTerms};
pub use self::token_list::{elements, has_token};
pub use self::trailers::Trailers;
pub use self::version::Version;
