//! The counters of rotor's loops, pools, servers and clients, for Prometheus.
//!
//! **This crate counts nothing itself: it reads existing counters when it is scraped.** So a
//! program that is not scraped pays nothing, no figure is kept twice, and no memory leaks.
//!
//! # A program
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use std::sync::Arc;
//! use prometheus_client::registry::Registry;
//! use rotor::{Config, Loop};
//! use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig, bind};
//! use rotor_metrics::{Metrics, RotorCollector};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServerConfig::new();
//! let mut creator = Loop::<HttpAccept<Metrics, rotor::net::TcpListener>>::new(&Config::new())?;
//! let mut registry = Registry::default();
//! RotorCollector::new()
//!     .event_loop("metrics", creator.stats())
//!     .server("metrics", config.counters())
//!     .register(&mut registry);
//! let seed = HttpSeed::new(Arc::new(registry), config);
//! let address = "127.0.0.1:0".parse()?;
//! creator.add_machine_with(|scope| bind(&address, seed, scope))?;
//! // creator.instantiate(()).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`RotorCollector`] | the counters to read, for a registry of `prometheus-client` |
//! | [`Metrics`] | a server for the page of metrics |
//!
//! # Limits
//!
//! There are none of its own. The page has some rows for each thing that is watched; the number of
//! machine types is that of the program. It is written on the loop that serves it, which takes some
//! 100 µs per hundred rows.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
//!
//! ```toml
//! rotor-metrics = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later. There are no features to choose. `prometheus-client` 0.25 is part of the
//! API: you own its registry.
//!
//! # The book
//!
//! For the metrics and their use, see [Seeing what it
//! does](https://github.com/rotor-rs/rotor/blob/main/doc/guide/observing.md).
#![forbid(unsafe_code)]

mod accept;
mod classic;
mod collector;
mod families;
mod grouped;
mod http;
mod loops;
mod others;
mod pools;
mod server;

pub use collector::RotorCollector;
pub use prometheus_client;
pub use server::Metrics;
