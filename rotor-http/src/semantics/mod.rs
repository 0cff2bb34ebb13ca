//! What messages mean, whatever version of HTTP carries them (RFC 9110). The modules are pure, and
//! shared by all modules that read or write messages. Their public items are re-exported at the
//! crate's root.
//!
//! | module | what it holds |
//! |--|--|
//! | `method`, `target`, `authority`, `version`, `status` | the parts of a start line |
//! | `fields`, `token_list`, `nominated`, `trailers`, `date` | the fields, and the syntax of their values |
//! | `weight`, `content_coding` | which content codings a client prefers |
//! | `trace_context` | which trace a request belongs to |
//! | `calendar` | days since 1970, and dates |
//! | `error` | every error of messages that are read or written |
//! | `grammar`, `swar` | the byte classes, and how many bytes at the beginning belong to one |

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
