//! `Machine`: a protocol as a value that gets events and returns its next state.

use std::any::type_name;

use crate::description::Description;
use crate::event::{Event, InPlace};
use crate::event_set::EventSet;
use crate::response::Response;
use crate::room::Idle;
use crate::scope::Scope;
use crate::spawn_error::SpawnError;
use crate::time::Time;

/// A state machine that a loop runs.
///
/// **A machine decides; the loop does.** A handler gets the machine by value, together with a
/// scope, and returns what happens next: the machine goes on, spawns another one, or ends. A
/// handler must not block and cannot keep anything that belongs to the loop. Long work goes to
/// other threads, through the scope.
///
/// # What the loop promises
///
/// * Handlers of one machine never overlap, and all of them run on the thread of the loop. Only in
///   a loop that [hands over](crate::LoopInstance::handing_over) or [takes
///   over](crate::LoopInstance::taking_over) may they run on several threads, one at a time.
/// * After `create`, events may come in any order, with one exception: if the answer was `spawn`,
///   the next event is `Spawned` or `SpawnError`.
/// * Events may be spurious (see [`EventSet`]). A wake-up may be spurious only if the documentation
///   of its cause says so. A `Timeout` is never spurious and never comes before its deadline.
/// * If a handler panics, only its machine is lost (with `panic = "unwind"`, which the loop needs).
///
/// # One entry point, and a handler for each event
///
/// The loop, or a layer around the machine, makes the machine with [`create`](Machine::create) and
/// from then on calls only [`handle`](Machine::handle). The default `handle` calls the handler
/// named after the event:
///
/// ```text
///   seed ─▶ create          Ready ─▶ ready          Spawned ────▶ spawned          Draining ─▶ draining
///                           Timeout ▶ timeout       SpawnError ─▶ spawn_error
///                           Wakeup ─▶ wakeup        MakeRoom ───▶ make_room
/// ```
///
/// * A machine with a protocol of its own implements the **named handlers** of the events that
///   matter to it. The defaults of the others change nothing: they return [`Response::keep`], so
///   that state and deadline stay as they were.
/// * A layer around other machines implements **`handle`** and passes on every event that it does
///   not decide itself, including events that a later version adds. It also implements
///   [`idle`](Machine::idle), [`describe`](Machine::describe) and `type_name`, which are queries,
///   not events. The layer's own named handlers are then never called. The layer must not call the
///   named handlers of the inner machine either: `inner.ready(..)` bypasses the inner `handle`. The
///   [guide] has an example.
///
/// [guide]: https://github.com/rotor-rs/rotor/blob/main/doc/guide/composing.md#a-layer-around-other-machines
///
/// # Examples
///
/// A machine that counts its wake-ups and ends at the third:
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Machine, Response, Scope, Infallible};
///
/// struct Countdown(u32);
///
/// impl Machine for Countdown {
///     type Context = ();
///     type Seed = Infallible;
///
///     fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self> {
///         if self.0 == 0 {
///             return Response::done();
///         }
///         scope.wake_self();
///         Response::ok(Countdown(self.0 - 1))
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = rotor::Loop::new(&rotor::Config::new())?;
/// creator.add_machine_with(|scope| {
///     scope.wake_self();
///     Response::ok(Countdown(2))
/// })?;
/// let ended = creator.instantiate(()).run()?;
/// assert_eq!(ended, rotor::Exit::Empty);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a machine",
    label = "a loop holds machines",
    note = "implement `Machine` for it: `Context`, `Seed` and the handlers of the events that it waits for are enough",
    note = "what another layer runs is none by itself: a protocol becomes one as `rotor::stream::Stream<P, S>`, a handler of \
            HTTP requests, with its listener, as `rotor::http::server::HttpAccept<S, L>`"
)]
pub trait Machine: Sized {
    /// The data that the machines of a loop share. A machine in a library is generic over its
    /// context and puts trait bounds on it.
    type Context;

    /// The value from which a machine of this type is made when another machine spawns it:
    /// [`Infallible`](crate::Infallible) for a type that is never spawned.
    type Seed;

    /// Makes a machine from the seed that another machine has spawned.
    ///
    /// The new machine already has its slot: the scope's token and notifiers belong to it. If the
    /// answer is `done` or `error`, or if this method panics, the machine that spawned it gets a
    /// [`spawn_error`](Machine::spawn_error).
    ///
    /// If the machine wakes itself here, and was spawned by the handler of an event or a wake-up,
    /// its `wakeup` is called in the same turn: after the machines that were woken before, and
    /// within [`Config::wakeups_per_turn`](crate::Config::wakeups_per_turn). So a chain of
    /// machines, each of which starts the next, does not take one turn per machine. In a handler,
    /// by contrast, a machine that wakes itself is called in the next turn.
    ///
    /// A type whose seed is [`Infallible`](crate::Infallible) needs no `create`. Any other type
    /// without `create` does not compile once it is put into a loop:
    ///
    /// ```compile_fail,E0080
    /// # use rotor_core as rotor;
    /// use rotor::{Config, Loop, Machine};
    ///
    /// struct Counter;
    ///
    /// impl Machine for Counter {
    ///     type Context = ();
    ///     type Seed = u32; // and nothing says how a `Counter` is made from one
    /// }
    ///
    /// let mut instance = Loop::<Counter>::new(&Config::new()).unwrap().instantiate(());
    /// let _ = instance.spawn(7);
    /// ```
    fn create(seed: Self::Seed, scope: &mut Scope<'_, Self::Context>) -> Response<Self> {
        // An `Option` that takes no memory has no value but `None`, so there can be no seed.
        const {
            assert!(
                size_of::<Option<Self::Seed>>() == 0,
                "this machine has a `Seed`, so it needs `create`, which makes it from one; if it is never spawned, \
                 `type Seed = Infallible`"
            );
        }
        let _ = (seed, scope);
        Response::done()
    }

    /// Handles one event. The loop, and each layer around the machine, calls this method only; the
    /// default calls the handler named after the event.
    ///
    /// Implement this for a layer around other machines. The layer passes on the events that it
    /// does not decide itself, with [`Event::filter_map`] if the inner machine has seeds of another
    /// type. A machine with a protocol of its own implements the named handlers instead: see
    /// [above](Machine#one-entry-point-and-a-handler-for-each-event).
    #[doc(alias = "middleware")]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        match event {
            Event::Ready(events) => self.ready(events, scope),
            Event::Timeout => self.timeout(scope),
            Event::Wakeup => self.wakeup(scope),
            Event::Spawned => self.spawned(scope),
            Event::SpawnError(error) => self.spawn_error(error, scope),
            Event::Draining(until) => self.draining(until, scope),
            Event::MakeRoom => self.make_room(scope),
        }
    }

    /// Handles one event without moving the machine, so that a large machine is not copied into its
    /// handler and out again.
    ///
    /// The loop calls this method first. A machine that does not support it returns
    /// [`InPlace::Declined`] without having done anything, and then gets the event through
    /// [`handle`](Machine::handle). This is the default.
    ///
    /// The answer is the same as that of `handle`, but without the machine: `self` is the machine's
    /// next state. If the answer is `done` or `error`, the machine is dropped.
    ///
    /// Most machines implement only the named handlers, so that no state can be forgotten. This
    /// method is for layers around other machines, which pass the call on, and for the few machines
    /// that are so large that copying them takes noticeable time. A layer that has only `handle` is
    /// correct, but slower.
    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> InPlace<Self::Seed> {
        let _ = scope;
        InPlace::Declined(event)
    }

    /// Called when something happened to a source that the machine has registered, or when the
    /// machine's last answer was [`again`](Response::again) (the set may then be empty).
    ///
    /// The default changes nothing. With debug assertions it also logs a warning, which points to
    /// one of two mistakes: the machine has registered a source but does not implement `ready`, or
    /// a layer around it calls `ready` instead of [`handle`](Machine::handle).
    fn ready(
        self,
        events: EventSet,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        if cfg!(debug_assertions) {
            let (token, name) = (scope.token(), self.type_name());
            crate::guard::log_guarded!(
                warn,
                "machine {token} ({name}) has no handler `ready` for {events:?}; if it has `handle`, \
                 the layer around it is to call that"
            );
        }
        Response::keep(self)
    }

    /// Called when the machine has been made from the seed given to [`spawn`](Response::spawn).
    fn spawned(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// Called when no machine was made from the seed. The error says why, and contains the seed if
    /// it was not used.
    ///
    /// The default logs the error as a warning and changes nothing else.
    fn spawn_error(
        self,
        error: SpawnError<Self::Seed>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        // The error is reported nowhere else, and a default must not swallow an error.
        // `Debug` shows its causes.
        let (token, name) = (scope.token(), self.type_name());
        crate::guard::log_guarded!(warn, "machine {token} ({name}) could not spawn: {error:?}");
        // Before there is a return value, which would leak if the drop of the seed panicked
        // (rust-lang/rust#47949).
        drop(error);
        Response::keep(self)
    }

    /// Called when the deadline has been reached. The machine then has no deadline any more, so
    /// [`keep`](Response::keep) leaves it without one.
    fn timeout(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// Called when a notifier, a port, a mailbox or a free slot has woken the machine.
    /// [`Scope::woken_parts`] returns the parts that were woken.
    ///
    /// Wake-ups coalesce: one call may stand for many of them.
    fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// Called when the loop is draining. The machine should finish its work before `until`; at that
    /// time the remaining machines are dropped. Also called if a scan has asked only this machine to
    /// end ([`Verdict::Drain`](crate::Verdict::Drain)): then `until` is now, and it is not dropped.
    ///
    /// The loop calls this once for each machine; for machines that are made during the drain, once
    /// after they were made. A machine that has called [`wait_for_others`](Scope::wait_for_others)
    /// is called once more when no other machine is left (and again if other machines were made and
    /// have ended since).
    ///
    /// Events from before the drain are delivered first. A listener should accept the connections
    /// that wait in the system's queue, and then end. A connection that waits for its peer's next
    /// request may go on until [`grace_until`](Scope::grace_until), because a request may be on its
    /// way.
    ///
    /// This is not called when a drain is only [announced](crate::Drain::announce);
    /// [`Scope::phase`] returns [`Phase::Announced`](crate::Phase::Announced) then.
    #[doc(alias = "graceful shutdown")]
    fn draining(
        self,
        until: Time,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        let _ = (until, scope);
        Response::keep(self)
    }

    /// Returns since when the machine has been idle, that is, could have ended without loss. The
    /// default is `None`: the machine is at work, or should stay.
    ///
    /// The loop calls this only when [room is wanted](Scope::ask_for_room), but then possibly for
    /// every machine, so it should be cheap. The result must stay the same until something happens
    /// to the machine.
    fn idle(&self) -> Option<Idle> {
        None
    }

    /// Called when slots or descriptors are short and this machine has been [idle](Machine::idle)
    /// longest. The machine should end now, unless it is no longer idle.
    ///
    /// The default goes on. A machine that reports that it is idle, but goes on, is called again
    /// whenever room is wanted.
    fn make_room(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// Describes the machine for people who inspect a running loop: its state in a word, its peer,
    /// what it holds. The default adds nothing.
    ///
    /// This may be called for every machine of a loop in a row, so it should take no longer than
    /// reading a few fields. A layer adds what it knows itself, then calls the inner machine's
    /// `describe`.
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// Returns the machine's name for logs and statistics. A composed machine returns the name of
    /// the part.
    ///
    /// It is called only when the name is needed. For a machine that is called [in
    /// place](Machine::handle_in_place), it may also be called after a panic: a layer that has
    /// passed its inner machine by value to a handler must still know the name of that machine.
    fn type_name(&self) -> &'static str {
        type_name::<Self>()
    }
}
