//! The pool: connections to many servers, shared by whoever asks.
//!
//! ```text
//!   asker ──ask──▶ manager ──spawns──▶ connection ──▶ server
//!     ▲               │ queue of each origin ▲  │
//!     │               └──────── takes ───────┘  │
//!     └──────────────── responses ──────────────┘
//! ```
//!
//! The manager and the connections are machines of one type. The manager puts what is asked into
//! the queue of its origin; a connection with nothing to do takes the oldest from there. So nothing
//! is lost when a connection dies: what it had not taken is still in the queue. `origins` holds the
//! books, `origin` what they say of one server; both are pure. `manager` and `member` are the two
//! kinds of machine, `machine` makes one type of them.

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
pub use self::handle::{Ask, Pool};
pub use self::machine::PoolMachine;
pub use self::seed::PoolSeed;
