//! The pool: connections to many servers, shared by everything that makes requests.
//!
//! ```text
//!     caller ──ask──▶ manager ──spawns──▶ connection ──▶ server
//!       ▲                │ queue of each origin ▲  │
//!       │                └──────── takes ───────┘  │
//!       └───────────────── responses ──────────────┘
//! ```
//!
//! The manager and the connections are machines of one type. The manager puts each request into the
//! queue of its origin; a connection that has nothing to do takes the oldest request from there. So
//! no request is lost when a connection ends: a request that the connection had not taken is still
//! in the queue. `origins` keeps the records of all servers, `origin` those of one server; both are
//! pure. `manager` and `member` are the two kinds of machine, and `machine` combines them into one
//! type.

mod blocked;
mod config;
mod handle;
mod machine;
mod manager;
mod member;
mod origin;
mod origins;
mod seed;
mod shared;

pub use self::config::PoolConfig;
pub use self::handle::{Pool, PoolRequest};
pub use self::machine::PoolMachine;
pub use self::seed::PoolSeed;
