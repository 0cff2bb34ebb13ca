//! The properties that each run is checked for, by name.
//!
//! | property | checked | needs |
//! |--|--|--|
//! | [`NO_DEADLINE_EARLY`] | at each time-out | [`Watched`](crate::Watched) machines |
//! | [`NO_DEADLINE_LATE`] | whenever no loop can run | [`Watched`](crate::Watched) machines |
//! | [`NO_MACHINE_LOST`] | after each turn | all machines of the loop [`Watched`](crate::Watched) |
//! | [`SPAWN_IS_ANSWERED`], [`DRAINED_ONCE`] | at each handler | [`Watched`](crate::Watched) machines |
//! | [`ATTEMPT_FAILS_FOR_A_REASON`] | by [`attempt_failed`](crate::attempt_failed) | clients that call it |
//! | [`NO_PANIC`] | after each turn | nothing |
//! | [`NO_WAKEUP_LOST`] | whenever no loop can run | nothing |
//! | [`BOOKS_AGREE`] | every 64 turns of a loop, and at the end | nothing |
//! | [`WORK_IS_BOUNDED`] | after each turn and each handler | [`Sim::bound_work`](crate::Sim::bound_work); for handlers [`Watched`](crate::Watched) machines |
//! | [`WAITING_IS_BOUNDED`] | at each accepted connection | [`Sim::bound_waiting`](crate::Sim::bound_waiting) |
//! | [`NO_BUSY_LOOP`] | after each turn | nothing |
//! | [`EMPTY_AFTER_DRAIN`] | by [`Sim::drain`](crate::Sim::drain) | nothing |
//! | [`NOTHING_ARRIVED_IS_LOST`] | by [`Sim::drain_losing_nothing`](crate::Sim::drain_losing_nothing) | nothing |
//! | [`ANSWERED`] | by [`Sim::eventually`](crate::Sim::eventually) and [`Sim::run_until`](crate::Sim::run_until) | a condition |
//! | your own | after each turn of a loop, added by [`Sim::always`](crate::Sim::always) | a closure |
//!
//! An example of a property of your own, for the limit of a buffer:
//!
//! ```
//! use rotor_sim::{Sim, Host};
//! # use rotor_core::{Machine, Infallible};
//! # struct Connection { output: Vec<u8> }
//! # impl Machine for Connection {
//! #     type Context = ();
//! #     type Seed = Infallible;
//! # }
//! fn output_is_bounded(sim: &mut Sim, server: Host<Connection>) {
//!     sim.always("output is bounded", move |sim| {
//!         let most = sim.machines(server, |_, connection| connection.output.len()).into_iter().max();
//!         if most > Some(65_536) { Err(format!("{most:?} bytes wait")) } else { Ok(()) }
//!     });
//! }
//! ```

/// `timeout` is never called before the deadline that the machine's last response set, by the
/// loop's time.
pub const NO_DEADLINE_EARLY: &str = "no deadline early";
/// While a machine has a deadline, its loop wants a turn at most one tick after it.
pub const NO_DEADLINE_LATE: &str = "no deadline late";
/// The machines that were made and not dropped are those in the slab: none is kept elsewhere, none
/// has vanished.
pub const NO_MACHINE_LOST: &str = "no machine lost";
/// After a machine has responded with `spawn`, the next call is `spawned` or `spawn_error`, and
/// these come at no other time.
pub const SPAWN_IS_ANSWERED: &str = "a spawn is answered next";
/// A machine hears of a drain once. A machine that [waits for the
/// others](rotor_core::Scope::wait_for_others) is told again when no others are left.
pub const DRAINED_ONCE: &str = "draining comes once";
/// No attempt to connect fails with "not connected": the simulated network never reports that,
/// whatever goes wrong.
pub const ATTEMPT_FAILS_FOR_A_REASON: &str = "an attempt fails for a reason";
/// No handler panics. Otherwise a bug that costs a connection would look like one of the faults. This
/// does not concern the panics that the simulation makes
/// ([`Fault::HandlerPanics`](crate::Fault::HandlerPanics)), hosts for which the test
/// [allows](crate::Sim::allow_panics) panics, and panics that a layer catches
/// ([`Scope::guard`](rotor_core::Scope::guard)), as HTTP does those of a request's handler.
pub const NO_PANIC: &str = "no panic";
/// A loop that has something to do is awake, or has been woken.
pub const NO_WAKEUP_LOST: &str = "no wake-up lost";
/// The slab, the deadlines and the queues of a loop agree about each machine: see
/// [`LoopInstance::check_invariants`](rotor_core::LoopInstance::check_invariants).
pub const BOOKS_AGREE: &str = "the books agree";
/// A loop does not take a thousand turns (or
/// [as many as are set](crate::Sim::set_busy_turns_max)) while the time stands still and no byte,
/// connection, job or machine makes progress.
pub const NO_BUSY_LOOP: &str = "no busy loop";
/// No turn of a loop and no call of a machine does more than its bounds allow.
pub const WORK_IS_BOUNDED: &str = "the work of a turn is bounded";
/// No connection waits at one listener of a host while the other listeners accept any number.
pub const WAITING_IS_BOUNDED: &str = "waiting is bounded";
/// After a drain, no machine and no socket of the host is left.
pub const EMPTY_AFTER_DRAIN: &str = "empty after a drain";
/// Until its time is over, a drain discards nothing that had reached the host when it began.
pub const NOTHING_ARRIVED_IS_LOST: &str = "nothing that had arrived is lost";
/// A condition that the scenario waits for becomes true in the given time.
pub const ANSWERED: &str = "answered in time";
/// The run takes at most as many steps as it may.
pub const STEPS_BOUNDED: &str = "steps are bounded";
/// A host could not start or has no room for a client, or a loop could not wait.
pub const HOST_WORKS: &str = "the host works";
/// The run was stopped where it was to stop. This is not a property.
pub const STOPPED: &str = "stopped as asked";
