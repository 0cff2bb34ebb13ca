//! Attacks that involve several crates. Each is told from the attacker's side: what the attacker
//! does, step by step, and what must not succeed.
//!
//! Attacks on a single crate are tested in that crate.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "attackers with plain sockets, outside of any loop")]

mod http2_floods;
mod http2_peers;
mod prediction;
