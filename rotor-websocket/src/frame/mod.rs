//! What frames are made of: pure, bytes in and bytes out (RFC 6455 §5).
//!
//! | module | what it holds |
//! |--|--|
//! | `header` | the header of a frame, read and written |
//! | `mask` | taking a mask off, and putting it on |
//! | `utf8` | text that comes in parts |
//! | `code`, `close` | close codes, and the payload of a close frame |
//! | `fault` | what a peer may do wrong |

pub(crate) mod close;
pub(crate) mod code;
pub(crate) mod fault;
pub(crate) mod header;
pub(crate) mod mask;
pub(crate) mod utf8;
