//! HTTP/1.1 as pure code: bytes in, bytes out; no clock, no socket, no loop. Server and client share it.
//!
//! **Feed it what was read, send what it wrote, close when it says so.** Nothing here blocks, allocates for a
//! length that a peer merely announced, or panics on a peer's bytes.
//!
//! | module | what it holds |
//! |--|--|
//! | `scanner`, `parser`, `head` | the head: which bytes are allowed, the fast way in, the parsed result |
//! | `method`, `target`, `authority`, `version`, `status` | the parts of the start line |
//! | `fields`, `token_list`, `terms`, `framing` | the fields, and what follows from them |
//! | `body`, `chunked`, `trailers` | the body decoder |
//! | `sink`, `message`, `response`, `request`, `decimal` | the message writers |
//! | `date`, `limits`, `error`, `grammar` | dates, every limit, every error, the byte classes |
//!
//! # Limits
//!
//! All of them are in [`Limits`]. The policy is strict: what a proxy in front could frame differently is refused.

mod authority;
mod error;
mod fields;
mod grammar;
mod head;
mod limits;
mod method;
mod parser;
mod scanner;
mod status;
mod target;
mod token_list;
mod version;

pub use self::authority::Authority;
pub use self::error::{BodyError, FramingError, HeadError, MessageError, RequestError, ResponseHeadError};
pub use self::fields::{Field, Fields};
pub use self::head::{Head, HeadReader, ResponseHead};
pub use self::limits::Limits;
pub use self::method::Method;
pub use self::parser::FieldStorage;
pub use self::status::Status;
pub use self::target::{Form, Target};
pub use self::token_list::{elements, has_token};
pub use self::version::Version;
