//! `permessage-deflate` (RFC 7692): pure.
//!
//! | module | what it holds |
//! |--|--|
//! | `config` | what this end wants |
//! | `params` | what both ends agree on |
//! | `codec` | compressing and decompressing, with codecs that a thread's connections share |

pub(crate) mod codec;
pub(crate) mod config;
pub(crate) mod params;
