//! Frames (RFC 6455 §5); pure, bytes in and bytes out.
//!
//! | module | contents |
//! |--|--|
//! | `header` | reading and writing the header of a frame |
//! | `mask` | applying and removing a mask |
//! | `utf8` | text that arrives in parts |
//! | `code`, `close` | close codes, and the payload of a close frame |
//! | `fault` | violations by the peer |

pub(crate) mod close;
pub(crate) mod code;
pub(crate) mod fault;
pub(crate) mod header;
pub(crate) mod mask;
pub(crate) mod utf8;
