//! What messages mean, whatever version of HTTP carries them (RFC 9110): pure, and shared by every
//! module that reads or writes one. Its public names are those of the crate's root.
//!
//! | module | what it holds |
//! |--|--|
//! | `method`, `target`, `authority`, `version`, `status` | the parts of a start line |
//! | `fields`, `token_list`, `nominated`, `trailers`, `date` | the fields, and what stands in them |
//! | `weight`, `content_coding` | how much a client likes what it accepts |
//! | `trace_context` | which trace a request is a part of |
//! | `calendar` | days since 1970, and dates |
//! | `error` | every error of messages that are read or written |
//! | `grammar`, `swar` | the byte classes, and how many bytes at the beginning are of one |

pub(crate) mod authority;
pub(crate) mod calendar;
pub(crate) mod content_coding;
pub(crate) mod date;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod grammar;
pub(crate) mod method;
pub(crate) mod nominated;
pub(crate) mod status;
pub(crate) mod swar;
pub(crate) mod target;
pub(crate) mod token_list;
pub(crate) mod trace_context;
pub(crate) mod trailers;
pub(crate) mod version;
pub(crate) mod weight;
