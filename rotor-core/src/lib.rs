//! The core of rotor: a loop that holds thousands of machines and one context that they share.
#![forbid(unsafe_code)]

pub mod backend;
mod box_machine;
mod compose;
mod config;
mod environment;
mod event;
mod event_loop;
mod future;
mod guard;
mod machine;
mod mailbox;
mod mio_backend;
pub mod net;
mod notifier;
mod response;
mod scope;
pub mod signals;
mod slab;
mod stats;
pub mod threads;
mod time;
mod timers;
mod token;
mod wake_queue;

pub use backend::{Backend, BackendHandle, Job, Source};
pub use box_machine::{BoxMachine, BoxSeed};
pub use compose::Compose2;
#[doc(hidden)]
pub use compose::PartCheck;
pub use config::{Config, ExitPolicy, Failure, FailureCause, OnPanic, TICK};
pub use event::{EventSet, Interest};
pub use event_loop::{
    Broadcast, Cursor, Exit, Loop, LoopHandle, LoopInstance, Machines, PostError, Seen, Verdict,
};
pub use future::{Future, Lost, Outcome, Port};
pub use guard::Panicked;
pub use machine::{Machine, SpawnCause, SpawnError};
pub use mailbox::{Mailbox, SendError, Sender};
pub use mio_backend::{Mio, MioHandle};
pub use notifier::Notifier;
pub use response::{Answer, BoxError, Deadline, Response, Void};
pub use scope::{EarlyScope, GlobalScope, NoContext, Scope};
pub use stats::{LongestHandler, Stats, StatsHandle};
pub use time::Time;
pub use token::{MACHINES_LIMIT, Token};
pub use wake_queue::Wake;
