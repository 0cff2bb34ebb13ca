//! Attacks that lead through several crates, each told from the attacker's side: what he does, step
//! by step, and what he must not get.
//!
//! Those that one crate can show by itself are beside its other tests.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "attackers with plain sockets, outside of any loop")]

mod http2_floods;
mod http2_peers;
mod prediction;
