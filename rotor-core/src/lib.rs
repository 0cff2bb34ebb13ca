//! The core of rotor: a loop that runs thousands of state machines and owns the one context that
//! they share.
//!
//! **A machine is a value: its handlers get it by value and return its next state. A loop calls the
//! handlers of its machines one at a time, each with a scope through which everything else comes:
//! time, randomness, sockets, wake-ups. So a machine that uses only its scope runs unchanged on the
//! kernel and in a simulation, no state can be forgotten, and a panic costs only the machine whose
//! handler panicked.**
//!
//! # A program
//!
//! A machine that sends datagrams back, until a deadline:
//!
//! ```
//! # use rotor_core as rotor;
//! use rotor::net::{DatagramSocket, UdpSocket};
//! use rotor::{Config, EventSet, Interest, Loop, Machine, Response, Scope, Infallible};
//! use std::io::ErrorKind;
//! use std::time::Duration;
//!
//! struct Echo<S> {
//!     socket: S,
//! }
//!
//! impl<S: DatagramSocket> Machine for Echo<S> {
//!     type Context = ();
//!     type Seed = Infallible;
//!
//!     fn ready(mut self, _events: EventSet, _scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
//!         let mut datagram = [0; 1500];
//!         // A budget: a flood must not hold up the other machines of the loop.
//!         for _ in 0..32 {
//!             match self.socket.receive_from(&mut datagram) {
//!                 Ok((len, peer)) => drop(self.socket.send_to(&datagram[..len], &peer)),
//!                 // Nothing left: only now does the next datagram cause an event.
//!                 Err(error) if error.kind() == ErrorKind::WouldBlock => return Response::keep(self),
//!                 Err(_) => {} // an error of an earlier datagram, or a signal
//!             }
//!         }
//!         Response::again(self)
//!     }
//!
//!     fn timeout(self, _scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
//!         Response::done()
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::new(&Config::new())?;
//! creator.add_machine_with(|scope| {
//!     Response::attempt(|| {
//!         let mut socket = UdpSocket::bind(&"127.0.0.1:0".parse()?, scope)?;
//!         scope.register(&mut socket, Interest::Readable)?;
//!         Ok(Response::ok(Echo { socket }).deadline(scope.now() + Duration::from_millis(1)))
//!     })
//! })?;
//! creator.instantiate(()).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Machine`], [`Event`], [`Response`], [`Scope`] | a protocol, its events, its answers, its access to the outside |
//! | [`Loop`], [`LoopInstance`], [`Config`], [`Exit`] | making, running and ending a loop |
//! | [`Notifier`], [`Port`] and [`Future`], [`Mailbox`] | waking a machine; one-shot and bounded channels to it |
//! | [`Service`], [`Calls`], [`Call`] | requests from one machine to another, and their answers |
//! | [`ReturnOnDrop`] | what has to be undone in the context when a machine ends |
//! | [`OffloadPool`], [`Job`], [`Batch`], [`Place`], [`Measured`] | work for other threads |
//! | [`Permits`], [`Lock`], [`Barrier`], [`Bell`] | things for which machines of any loop wait in line |
//! | [`LoopHandle`], [`Broadcast`], [`Machines`], [`Stats`], [`Histogram`] | reaching a loop from outside, and its statistics |
//! | [`Compose2`], [`rotor_compose!`], [`BoxMachine`] | several protocols in one loop |
//! | [`net`] | sockets |
//! | [`foreign`] | other file descriptors and event sources |
//! | [`backend`], [`LoopKind`] | how a loop waits, and how to use another backend |
//! | [`Blocking`], [`StuckReport`] | noticing handlers that hold up their loop |
//! | [`hand_over`], [`service_manager`] | passing listeners to a successor process; systemd |
//! | [`MachineFailure`], [`with_causes`], [`LogLimit`] | why a machine failed, how to print that, and how not to print too much |
//! | [`threads`], [`signals`], [`Drain`], [`Phase`] | several loops; ending gracefully on a signal |
//!
//! # Errors
//!
//! A machine that returns an error, or panics, ends. The loop goes on, counts the failure in
//! [`Stats`] and logs the reason through the crate [`log`](https://docs.rs/log), so without a
//! logger nobody sees it. [`Config::observer`] receives each [`MachineFailure`].
//!
//! # Limits
//!
//! Every limit is a setting of [`Config`], with unit, default and reason. A loop holds at most
//! [`MACHINES_LIMIT`] machines. Deadlines have a resolution of one [`TICK`] and never fire early,
//! by loop time. Panics are contained only with `panic = "unwind"`, Rust's default. Pointers must
//! have 64 bits.
//!
//! # Versions and features
//!
//! The crate `rotor` re-exports all of this at its top, and the examples here use that name. If you
//! depend on this crate alone, write `rotor_core` instead:
//!
//! ```toml
//! rotor-core = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
//!
//! # The book
//!
//! * [Machines](https://github.com/rotor-rs/rotor/blob/main/doc/guide/machines.md)
//! * [The loop, the scope and the
//!   context](https://github.com/rotor-rs/rotor/blob/main/doc/guide/loop.md)
//! * [Deadlines](https://github.com/rotor-rs/rotor/blob/main/doc/guide/deadlines.md)
//! * [Waking and messages](https://github.com/rotor-rs/rotor/blob/main/doc/guide/waking.md)
//! * [Several protocols in one
//!   loop](https://github.com/rotor-rs/rotor/blob/main/doc/guide/composing.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

pub mod backend;
mod blocking;
mod box_machine;
mod causes;
mod clock;
mod compose;
mod compose2;
mod config;
mod coordination;
mod counters;
mod description;
mod drain;
mod environment;
mod event;
mod event_loop;
mod event_set;
pub mod foreign;
mod future;
mod guard;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod hand_over;
mod handler_times;
mod histogram;
mod last_machines;
mod log_limit;
mod loop_kind;
mod loop_times;
mod machine;
mod machine_failure;
mod mailbox;
mod mio_backend;
pub mod net;
mod notifier;
mod offload;
mod pulses;
mod queue_memory;
mod response;
mod return_on_drop;
mod room;
mod scope;
mod secure_random;
mod service;
#[cfg(unix)]
pub mod service_manager;
mod shared_histogram;
#[cfg(unix)]
pub mod signals;
mod slot_waiters;
mod spawn_error;
mod stats;
#[cfg_attr(rotor_loom, path = "../../loom/src/sync.rs")]
mod sync;
pub mod threads;
mod time;
mod timers;
mod token;
mod waiter_queue;
mod wake_queue;

pub use backend::{Backend, BackendHandle, Source, Wake};
pub use blocking::{
    Blocking, SharedContext, StuckOutcome, StuckReport, ThreadState, UnstuckReport,
};
pub use box_machine::{BoxMachine, BoxSeed};
pub use causes::with_causes;
#[doc(hidden)]
pub use compose::check_part;
pub use compose2::Compose2;
pub use config::{Config, EVENTS_LIMIT, ExitPolicy, OnPanic, TICK};
pub use coordination::{
    Barrier, BarrierReached, Bell, Lock, LockGuard, Permit, PermitStats, Permits,
};
pub use description::{Description, Details};
pub use drain::{Drain, Grace, Phase};
pub use event::{Event, InPlace};
pub use event_loop::{
    AddError, Broadcast, Cursor, Exit, Loop, LoopHandle, LoopInstance, MachineView, Machines,
    PendingAdd, PostError, Verdict,
};
pub use event_set::{EventSet, Interest};
pub use future::{Future, FutureError, Outcome, Port};
pub use guard::Panicked;
pub use handler_times::HandlerTimes;
pub use histogram::Histogram;
pub use log_limit::LogLimit;
pub use loop_kind::{LoopKind, MioKind};
pub use loop_times::LoopTimes;
pub use machine::Machine;
pub use machine_failure::{FailureCause, MachineFailure};
pub use mailbox::{Mailbox, ReceiveError, Reserved, SendError, Sender};
pub use mio_backend::{Mio, MioHandle};
pub use notifier::Notifier;
pub use offload::{
    Batch, Job, Measured, OffloadFull, OffloadPool, OnJobPanic, PoolBuilder, PoolError, PoolStats,
    WhenFull,
};
pub use pulses::{Pulses, StalledLoop};
pub use response::{Answer, BoxError, Deadline, Response};
pub use return_on_drop::ReturnOnDrop;
pub use room::{Idle, Room};
pub use scope::{
    EarlyScope, GlobalScope, JobBuilder, NoContext, NoPermit, Place, RunAtResult, Scope,
};
pub use service::{BlockingReply, Call, Calls, Service};
pub use shared_histogram::SharedHistogram;
pub use spawn_error::{SpawnCause, SpawnError};
pub use stats::{Longest, LongestHandler, Stats, StatsHandle};
/// std's type without values: the seed of machines that are never spawned, and the seed type in
/// answers of machines that spawn none.
pub use std::convert::Infallible;
pub use time::Time;
pub use token::{MACHINES_LIMIT, Token};
