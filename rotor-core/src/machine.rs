//! `Machine`: a protocol as a value that is handed events and answers with its next state.

use std::any::type_name;

use crate::description::Description;
use crate::event::{Event, InPlace};
use crate::event_set::EventSet;
use crate::response::Response;
use crate::room::Idle;
use crate::scope::Scope;
use crate::spawn_error::SpawnError;
use crate::time::Time;

/// A state machine of a loop.
///
/// **A machine decides; the loop does.** A handler gets the machine by value together with a scope,
/// and answers with the next state: go on, spawn, end. It never blocks and never keeps what belongs
/// to the loop; what takes long goes to other threads through the scope.
///
/// # What the loop promises
///
/// * Handlers of one machine never overlap, and all run on the thread of the loop.
/// * After `create`, any event may come in any order; but after an answer of `spawn`, the next one
///   is `Spawned` or `SpawnError`.
/// * Events may be spurious (see [`EventSet`]); a wake-up may be spurious only where its
///   documentation says so; a `Timeout` never is, and never comes before its deadline.
/// * A handler that panics loses this machine and nothing else (with `panic = "unwind"`, which the
///   loop needs).
///
/// # One door, and a handler for each event
///
/// Whoever drives a machine, the loop or a layer around it, makes it with
/// [`create`](Machine::create) and from then on calls [`handle`](Machine::handle). By itself that
/// calls the handler that is named like the event:
///
/// ```text
///   seed ─▶ create          Ready ─▶ ready          Spawned ────▶ spawned          Draining ─▶ draining
///                           Timeout ▶ timeout       SpawnError ─▶ spawn_error
///                           Wakeup ─▶ wakeup        MakeRoom ───▶ make_room
/// ```
///
/// * A machine with a protocol of its own implements the **named handlers** of the events that mean
///   something to it. The others change nothing: they answer [`Response::keep`], so that state and
///   deadline stay as they were.
/// * A layer around other machines implements **`handle`**: what it does not decide itself it hands
///   down, whatever the event, those that a later version brings included. It implements
///   [`idle`](Machine::idle), [`describe`](Machine::describe) and `type_name` as well, which are
///   asked for and are no events. Its own named handlers are then not called, and nobody calls
///   those of the machine in it: calling `inner.ready(..)` bypasses its `handle`. There is one in
///   the [guide].
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
    note = "what another layer runs is none by itself: a protocol becomes one as `rotor_stream::Stream<P, S>`, a handler of HTTP \
            requests as `rotor_http::server::HttpStream<S, K>`"
)]
pub trait Machine: Sized {
    /// What the machines of a loop share; a library's machine is generic over it and asks for
    /// traits.
    type Context;

    /// What a machine of this type is made from, when another one spawns it.
    /// [`Infallible`](crate::Infallible) for a type that is never spawned.
    type Seed;

    /// Makes the machine that another one spawned.
    ///
    /// It is in its slot already: the scope's token and notifiers are its own. An answer of `done`
    /// or `error`, and a panic, are reported to the machine that spawned it.
    ///
    /// One that wakes itself here gets its `wakeup` in the same turn where it was spawned by the
    /// handler of an event or a wake-up: in line behind those that were woken before, and within
    /// [`Config::wakeups_per_turn`](crate::Config::wakeups_per_turn). So a chain of machines, each
    /// of which starts the next, does not take a turn for each. In a handler a wake-up of oneself
    /// is for the next turn.
    ///
    /// A machine whose seed is [`Infallible`](crate::Infallible) is never made from one, and needs
    /// no `create`. Any other that has none does not compile, where it is put into a loop:
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
        // Where the only value of an option is `None`, it takes no memory, and then there is no
        // seed.
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

    /// Something happened: the one door through which the loop, and each layer around the machine,
    /// tells it of all that does. By itself it calls the handler that is named like the event.
    ///
    /// To be implemented by layers around other machines, which hand down what they do not decide
    /// themselves, by [`Event::filter_map`] where the inner machine has other seeds. A machine with
    /// a protocol of its own implements the named handlers instead: see
    /// [above](Machine#one-door-and-a-handler-for-each-event).
    #[doc(alias = "middleware")]
    #[inline(always)]
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

    /// The same for a machine where it stands, so that a large one is not copied into its handler
    /// and out of it. The loop tries this first; a machine that does not want it so declines,
    /// having done nothing, and gets the event by [`handle`](Machine::handle). That is the default.
    ///
    /// The answer is that of `handle` without the machine: it is what has become of `self`. An
    /// answer of `done` or `error` drops it.
    ///
    /// A machine implements the named handlers, and forgets no state. This is for layers around
    /// other machines, which hand the call on, and for the few that are so large that it shows. A
    /// layer that only has `handle` is right, and slower.
    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> InPlace<Self::Seed> {
        let _ = scope;
        InPlace::Declined(event)
    }

    /// Something happened to a source that the machine registered, or its last answer was
    /// [`again`](Response::again) (then the set may be empty).
    ///
    /// By default nothing changes. A build with debug assertions logs a warning then: a machine
    /// that has registered something and has no `ready` misses its events, and so does one inside a
    /// layer that calls this in place of [`handle`](Machine::handle).
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

    /// The machine from the seed that was given with [`spawn`](Response::spawn) has been made.
    fn spawned(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// The machine from the seed was not made; the error says why, and gives the seed back if it
    /// was not used.
    fn spawn_error(
        self,
        error: SpawnError<Self::Seed>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        let _ = scope;
        // Nobody else hears of it: a default must not swallow an error.
        log::warn!("{} could not spawn: {error}", type_name::<Self>());
        Response::keep(self)
    }

    /// The deadline has been reached. It is gone: here [`keep`](Response::keep) leaves no
    /// deadline.
    fn timeout(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// A notifier, port, mailbox or free slot woke the machine; [`Scope::woken_parts`] says for
    /// which part.
    ///
    /// Wake-ups coalesce: one call may stand for many.
    fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// The loop is to end: finish what is under way before `until`, when the machines that are left
    /// are dropped.
    ///
    /// Called once for each machine, and for those made while draining once after they were made;
    /// and once more for one that said [`wait_for_others`](Scope::wait_for_others), when there are
    /// none left (again if others were made and have ended since).
    /// Events of what had come before the drain are delivered before it. A listener accepts what
    /// waits in the system's queue, and ends. One that waits for its peer to ask may go on until
    /// [`grace_until`](Scope::grace_until): what it asks may be on its way. Not called when a drain
    /// is [announced](crate::Drain::announce): ask [`Scope::phase`].
    #[doc(alias = "graceful shutdown")]
    fn draining(
        self,
        until: Time,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Self::Seed> {
        let _ = (until, scope);
        Response::keep(self)
    }

    /// Since when the machine is idle: since when nobody would miss anything if it ended now.
    /// `None`, the default, while it is at work, and for all that are to stay.
    ///
    /// The loop asks when [room is wanted](Scope::ask_for_room), and at no other time, so what the
    /// answer costs is of little account; but it may ask every machine. The answer must be the same
    /// time until something happens to the machine.
    fn idle(&self) -> Option<Idle> {
        None
    }

    /// Slots or descriptors are short, and this machine has been [idle](Machine::idle) longest. End
    /// now, unless you are no longer idle.
    ///
    /// Default: goes on. One that says it is idle and goes on is asked again whenever room is
    /// wanted.
    fn make_room(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Self::Seed> {
        let _ = scope;
        Response::keep(self)
    }

    /// Says what the machine is at, for people who look at the loop while it runs: its state in a
    /// word, its peer, what it holds. Default: nothing.
    ///
    /// It may be asked of every machine of a loop in a row, so it takes no longer than reading a
    /// few fields. A layer says what it knows itself, then has what is in it say the rest.
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// What the machine is called in logs and statistics. Composed machines answer with the name of
    /// the part.
    ///
    /// Asked where somebody wants to know it; where the machine is called
    /// [in place](Machine::handle_in_place), after a panic as well: a layer that has given its
    /// machine to a handler by value still knows what it was called.
    fn type_name(&self) -> &'static str {
        type_name::<Self>()
    }
}
