//! A DNS resolver made of rotor machines: it finds hosts by name without blocking and without other
//! threads.
//!
//! **Every question gets exactly one reply within its time limit: records, or an error that says
//! whose fault it was. Whatever a server sends can end only the query to that server. Packets are
//! ignored unless they come from the server that was asked, to the same port, with the same id and
//! the same question, letter by letter.** (One kind of reply may lack the question: the one by
//! which a server says that it cannot read a question with EDNS. The server is then asked again
//! without EDNS.)
//!
//! # A program
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_dns as dns; }
//! use rotor::net::Inet;
//! use rotor::{Config, Loop};
//! use rotor::dns::{Kind, Question, Resolver, ResolverConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<Resolver<Inet, ()>>::new(&Config::new())?;
//! // A handle, for the context or for another thread. In a program of more parts the first argument
//! // is the resolver's one.
//! let dns = creator
//!     .add_part(|resolver| resolver, |scope| Ok(Resolver::new(ResolverConfig::system(), scope)))?;
//! let question = Question { name: "_imaps._tcp.example.org".parse()?, kind: Kind::Srv };
//! let asked = dns.records().ask_from_thread(question)?;
//! drop(dns); // without a handle the resolver ends when it has answered
//! creator.instantiate(()).run()?;
//! println!("{:?}", asked.wait()?);
//! # Ok(())
//! # }
//! ```
//!
//! A machine asks with [`Service::ask`](rotor_core::Service::ask), is woken, and takes the reply,
//! as the example `resolve` does. To connect by name, implement
//! [`HasResolver`](rotor_stream::HasResolver) for the context and use [`Host`](rotor_stream::Host)
//! as the destination.
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Resolver`], [`ResolverConfig`], [`Dns`] | the machine, its settings, its handle |
//! | [`Question`], [`Kind`], [`Name`]; [`RecordSet`], [`Data`] | questions; answers |
//! | [`LookupError`], [`ServerFault`] | why there is no answer, and whose fault that is; for addresses, [`ResolveError`](rotor_stream::ResolveError) |
//! | [`DnsCounters`] | how lookups end, how many the cache answers, how servers behave |
//! | [`ResolvConf`], [`Hosts`] | `/etc/resolv.conf` and `/etc/hosts` |
//! | [`SystemResolver`] | the system's `getaddrinfo` behind the same handle |
//!
//! # Limits
//!
//! * This is a stub resolver: it asks recursive servers, and trusts them and the network between;
//!   it does not validate signatures (DNSSEC).
//! * A chain of aliases has at most [`CHAIN_MAX`] links. Replies are cached for a day at most,
//!   negative replies for an hour, failures of servers for 1 s to 8 s (RFC 9520). That a server
//!   does not support EDNS is remembered for 15 minutes (RFC 6891).
//! * All memory is bounded, in bytes: the cache by [`ResolverConfig::cache_bytes_max`], an answer
//!   by [`ANSWER_BYTES_MAX`], the addresses that a lookup waits with by [`ADDRESSES_MAX`], and
//!   their numbers by the other settings of [`ResolverConfig`].
//! * Ids, ports and the case of letters come from
//!   [`Scope::secure_random`](rotor_core::Scope::secure_random), so a forger who does not see the
//!   questions must guess 32 bits and one more for each letter. A forger who sees them need not
//!   guess: to exclude that, use a server on the same host.
//! * `sortlist` and the other options of resolv.conf(5) that are not fields of [`ResolvConf`] are
//!   ignored.
//!
//! # Versions and features
//!
//! With its feature `dns`, the crate `rotor` re-exports this crate as `rotor::dns`, and the
//! examples here use that name. If you depend on this crate alone, write `rotor_dns` instead:
//!
//! ```toml
//! rotor-dns = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
//!
//! # The book
//!
//! * [Names and addresses](https://github.com/rotor-rs/rotor/blob/main/doc/guide/names.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod cache;
mod chain;
mod config;
mod counters;
mod dns;
mod error;
mod frame;
mod held_bytes;
mod hosts;
mod lookup;
mod message;
mod name;
mod query;
mod query_link;
mod questions;
mod record;
mod report;
mod resolv_conf;
mod resolver;
mod result;
mod rotation;
mod special;
mod stub_resolver;
mod system;
mod tcp;
mod unguessable;
mod without_edns;

pub use cache::CACHED_BYTES_MAX;
pub use chain::{ANSWER_BYTES_MAX, CHAIN_MAX};
pub use config::ResolverConfig;
pub use counters::DnsCounters;
pub use dns::Dns;
pub use error::{LookupError, ServerFault};
pub use hosts::Hosts;
pub use lookup::ADDRESSES_MAX;
pub use name::{Name, NameError};
pub use record::{Data, Kind, Question, RecordSet};
pub use resolv_conf::ResolvConf;
pub use resolver::{Resolver, ResolverSeed};
pub use result::LookupResult;
pub use system::SystemResolver;
