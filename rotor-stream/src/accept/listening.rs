//! `Listening`: how a listener accepts connections.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::Listener;
use rotor_core::{
    Event, Notifier, Response, Room, Scope, SpawnCause, SpawnError, Time, with_causes,
};

use super::config::AcceptConfig;
use super::connections::{ConnectionGuard, Connections};
use super::failure::{is_connection_error, is_for_lack_of_descriptors, is_out_of_descriptors};
use super::seed::{AcceptSeed, Origin};
use rotor_core::net::Accepted;

/// The minimum time between two warnings of one listener.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of connections that a listener still accepts when the loop drains. 65,536:
/// more than systems keep in a queue. The queue is in order, so connections from before the drain
/// are among them, and accepting ends however many new ones arrive.
const DRAIN_ACCEPTS_MAX: u32 = 65_536;

/// The maximum number of machines that are asked to make room at once. 64: a full queue of 4,096 is
/// accepted in about eighty turns, and closing the connections takes only some tenths of a
/// millisecond per turn.
const ROOM_REQUEST_MAX: usize = 64;

/// Room is made for one connection, plus one for every this many connections that have got room
/// since a connection first had to wait. 4: at most a quarter more connections are closed than have
/// waited, and two hundred waiting connections are accepted within twenty turns.
const ROOM_DIVISOR: usize = 4;

/// ```text
///             no slot, limit reached, no descriptor
///  Accepting ───────────────────────────────────────▶ Waiting
///      ▲  │ WouldBlock                                    │
///      │  └──────────▶ Idle                               │
///      └─── an edge ────┘◀────── woken, pause over ───────┘
/// ```
///
/// While the loop drains, `Idle` is the end.
pub(super) struct Listening<M: Accepted<L::Socket>, L: Listener> {
    listener: L,
    shared: M::Shared,
    config: AcceptConfig,
    connections: Connections,
    /// Whether there may be connections for which no further edge will come.
    is_ready: bool,
    /// How many connections may still be accepted in this event.
    budget: u32,
    /// Whether any connection was accepted in this event.
    has_accepted: bool,
    /// An accepted connection for which there was no slot.
    held: Option<AcceptSeed<M, L>>,
    /// The end of the current pause; `ZERO` if accepting is not paused.
    paused_until: Time,
    /// How many connections were accepted since room was first requested; `None` while no
    /// connection waits for room.
    accepted_since_request: Option<usize>,
    /// When room is requested again, if none is made before; `ZERO` if none was requested.
    next_room_request: Time,
    /// Nothing more is logged before this time.
    quiet_until: Time,
    /// While the loop drains: how many more connections are accepted before the address is closed.
    drain_accepts_left: Option<u32>,
}

/// The response of a listener.
type ListeningResponse<M, L> = Response<Box<Listening<M, L>>, AcceptSeed<M, L>>;

impl<M: Accepted<L::Socket>, L: Listener> Listening<M, L> {
    pub(super) fn new(
        listener: L,
        shared: M::Shared,
        config: AcceptConfig,
        notifier: Notifier,
    ) -> Listening<M, L> {
        let connections = Connections::new(config.connections_max, notifier);
        Listening {
            listener,
            shared,
            budget: config.accept_budget,
            config,
            connections,
            is_ready: false,
            has_accepted: false,
            held: None,
            paused_until: Time::ZERO,
            accepted_since_request: None,
            next_room_request: Time::ZERO,
            quiet_until: Time::ZERO,
            drain_accepts_left: None,
        }
    }

    pub(super) fn local_address(&self) -> Option<SocketAddr> {
        self.listener.local_address()
    }

    pub(super) fn handle(
        self: Box<Self>,
        event: Event<AcceptSeed<M, L>>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        match event {
            Event::Ready(_) => self.ready(scope),
            Event::Timeout => self.timeout(scope),
            Event::Wakeup => self.wakeup(scope),
            Event::Spawned => self.accept_more(scope),
            Event::SpawnError(error) => self.spawn_error(error, scope),
            Event::Draining(_) => self.draining(scope),
            _ => Response::keep(self),
        }
    }

    /// Handles readiness, or a turn that the last response requested.
    fn ready(mut self: Box<Self>, scope: &mut Scope<'_, M::Context>) -> ListeningResponse<M, L> {
        self.is_ready = true;
        self.start_accepting(scope)
    }

    /// Handles a wake-up: a slot is free, a connection has ended, or a machine has made room.
    fn wakeup(mut self: Box<Self>, scope: &mut Scope<'_, M::Context>) -> ListeningResponse<M, L> {
        // If room was requested, this may be it: then a descriptor is free too, and the pause need
        // not be waited for.
        if self.next_room_request != Time::ZERO {
            self.next_room_request = Time::ZERO;
            self.paused_until = Time::ZERO;
        }
        self.start_accepting(scope)
    }

    /// Begins to accept, with a new budget.
    fn start_accepting(
        mut self: Box<Self>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        self.budget = self.config.accept_budget;
        self.has_accepted = false;
        self.accept_more(scope)
    }

    /// Handles the beginning of a drain: accepts the connections that have arrived, then ends. The
    /// system completes a client's connection as soon as it is in the queue, so the client may have
    /// sent its request already, and closing the address would reset it.
    fn draining(mut self: Box<Self>, scope: &mut Scope<'_, M::Context>) -> ListeningResponse<M, L> {
        // A second drain does not begin the count again.
        self.drain_accepts_left.get_or_insert(DRAIN_ACCEPTS_MAX);
        self.ready(scope)
    }

    /// Handles the end of a pause, or the time to request room again.
    fn timeout(mut self: Box<Self>, scope: &mut Scope<'_, M::Context>) -> ListeningResponse<M, L> {
        if self.paused_until <= scope.now() {
            self.paused_until = Time::ZERO;
        }
        if self.next_room_request <= scope.now() {
            self.next_room_request = Time::ZERO;
            // No room was made meanwhile, so the connections that were let in before say nothing
            // about those that wait now.
            self.accepted_since_request = None;
        }
        self.start_accepting(scope)
    }

    /// Accepts the next connection, if there is one and there is room for it.
    fn accept_more(
        mut self: Box<Self>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        // This connection came before all that are still in the queue.
        if let Some(seed) = self.held.take() {
            return self.spawn_or_wait(seed, scope);
        }
        while self.is_ready && self.paused_until == Time::ZERO && self.drain_accepts_left != Some(0)
        {
            // Existing connections get their turn before more are accepted.
            if self.budget == 0 && self.has_accepted {
                return Response::again(self);
            }
            // There were only errors: continuing, or coming back in the next turn, would spin.
            if self.budget == 0 {
                self.pause(scope.now(), &"nothing but errors");
                break;
            }
            // Nothing is accepted before there is a slot: a connection in the system's queue costs
            // nothing, and another loop that shares the queue may have room.
            if !scope.has_free_slot() {
                scope.wake_on_free_slot();
                self.request_room_if_any_wait(Room::new(), scope);
                break;
            }
            if !self.connections.has_room() {
                self.request_room_if_any_wait(Room::new().of_listener(scope.token()), scope);
                break;
            }
            self.budget -= 1;
            match self.listener.accept() {
                Ok((socket, peer)) => {
                    self.has_accepted = true;
                    self.accepted_since_request =
                        self.accepted_since_request.map(|count| count + 1);
                    self.drain_accepts_left = self.drain_accepts_left.map(|left| left - 1);
                    let Some(guard) = self.count_connection(peer) else { continue };
                    // The user's `clone` may panic, which must not end the listener.
                    let origin = match scope.guard(|_| self.shared.clone()) {
                        Ok(shared) => Origin::Accepted { socket, peer, shared, guard },
                        Err(panicked) => Origin::ClonePanicked { socket, panicked },
                    };
                    return Response::spawn(self, AcceptSeed { origin });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.mark_queue_empty(),
                Err(error) if is_connection_error(&error) => {
                    log::debug!("a connection was gone before it was accepted: {error}")
                }
                // Linux reserves a descriptor before it looks at the queue (accept4(2)), so this
                // error does not say whether a connection waits.
                Err(error) if is_out_of_descriptors(&error) && !self.listener.has_waiting() => {
                    self.mark_queue_empty();
                }
                Err(error) if is_out_of_descriptors(&error) => {
                    self.wait_for_descriptor(&error, scope);
                }
                Err(error) => self.pause(scope.now(), &error),
            }
        }
        self.wait()
    }

    /// Counts a connection. Returns `None` if its peer has the maximum number; then the connection
    /// is closed silently, because a peer that opens connections without end gets no reply, and no
    /// machine is made for it.
    fn count_connection(&self, peer: Option<SocketAddr>) -> Option<ConnectionGuard> {
        match (&self.config.per_peer, peer) {
            (Some(connections), Some(peer)) => {
                Some(self.connections.add_with(connections.enter(peer.ip())?))
            }
            _ => Some(self.connections.add()),
        }
    }

    /// Notes that the queue is empty: the next connection causes an edge, and none waits for room.
    fn mark_queue_empty(&mut self) {
        self.is_ready = false;
        self.accepted_since_request = None;
        self.next_room_request = Time::ZERO;
    }

    /// Requests room if a connection waits for it, so that no other is closed needlessly. If the
    /// loop drains and none waits, nothing is left to be accepted.
    fn request_room_if_any_wait(&mut self, room: Room, scope: &Scope<'_, M::Context>) {
        let can_request = self.can_request_room(scope.now());
        let is_draining = self.drain_accepts_left.is_some();
        // First, because polling the queue is a system call.
        if !can_request && !is_draining {
            return;
        }
        if self.listener.has_waiting() {
            if can_request {
                self.request_room(room, scope);
            }
        } else if is_draining {
            self.mark_queue_empty();
        } else {
            self.accepted_since_request = None;
        }
    }

    /// Returns whether room may be requested: idle connections may be closed for it, and it was not
    /// requested just before.
    fn can_request_room(&self, now: Time) -> bool {
        now >= self.next_room_request && self.config.idle_min != Duration::MAX
    }

    /// Requests room for one waiting connection, and for as many more as are likely to wait with
    /// it. No system reports how many wait, so it is a fraction of those that did wait, which
    /// limits how many are closed needlessly.
    fn request_room(&mut self, room: Room, scope: &Scope<'_, M::Context>) {
        let accepted_since_request = *self.accepted_since_request.get_or_insert(0);
        let machines = (1 + accepted_since_request / ROOM_DIVISOR).min(ROOM_REQUEST_MAX);
        scope.ask_for_room(room.machines(machines).idle_min(self.config.idle_min));
        self.next_room_request = scope.now() + self.config.pause;
    }

    /// Pauses until there may be a descriptor for a connection that waits, and asks for one.
    fn wait_for_descriptor(&mut self, why: &dyn Display, scope: &Scope<'_, M::Context>) {
        if self.can_request_room(scope.now()) {
            self.request_room(Room::new(), scope);
        }
        self.pause(scope.now(), why);
    }

    /// Makes a machine for the held connection, if there is a slot now.
    fn spawn_or_wait(
        self: Box<Self>,
        seed: AcceptSeed<M, L>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        // The wake-up may have had another cause, or another machine has taken the slot.
        if scope.has_free_slot() {
            return Response::spawn(self, seed);
        }
        self.hold(seed, scope)
    }

    /// Keeps an accepted connection until there is a slot for it.
    fn hold(
        mut self: Box<Self>,
        seed: AcceptSeed<M, L>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        scope.wake_on_free_slot();
        self.request_room(Room::new(), scope);
        self.held = Some(seed);
        self.wait()
    }

    /// Handles a failed spawn. If there was no slot, the connection is held; otherwise it is
    /// closed. The other connections go on.
    fn spawn_error(
        mut self: Box<Self>,
        error: SpawnError<AcceptSeed<M, L>>,
        scope: &mut Scope<'_, M::Context>,
    ) -> ListeningResponse<M, L> {
        match (error.cause, error.seed) {
            (SpawnCause::SlabFull, Some(seed)) => self.hold(seed, scope),
            // The machine ended at once, which is allowed.
            (SpawnCause::Ended, _) => self.accept_more(scope),
            (cause, _) => {
                // Made only for its text; the socket is dropped with the seed.
                let error = SpawnError::<()> { cause, seed: None };
                // The others that wait would be closed as well.
                let rests = is_for_lack_of_descriptors(&error) && self.listener.has_waiting();
                let what = match rests {
                    // The message of the pause follows too closely to be logged.
                    true => format!(", and accepting rests for {:?}", self.config.pause),
                    false => String::new(),
                };
                self.warn(
                    scope.now(),
                    &format_args!("a connection was closed at once{what}: {}", with_causes(&error)),
                );
                if rests {
                    self.wait_for_descriptor(&error, scope);
                }
                self.accept_more(scope)
            }
        }
    }

    /// Pauses accepting, because trying again at once would spin.
    fn pause(&mut self, now: Time, why: &dyn Display) {
        let pause = self.config.pause;
        self.paused_until = now + pause;
        self.warn(now, &format_args!("accepting rests for {pause:?}: {why}"));
    }

    /// Waits for an edge, a wake-up, or a time. While the loop drains, it does not wait for another
    /// edge.
    fn wait(self: Box<Self>) -> ListeningResponse<M, L> {
        // The loop drains, and all connections that had arrived are accepted: close the address.
        if self.drain_accepts_left.is_some_and(|left| left == 0 || !self.is_ready)
            && self.held.is_none()
        {
            return Response::done();
        }
        let until = [self.paused_until, self.next_room_request]
            .into_iter()
            .filter(|time| *time != Time::ZERO)
            .min();
        Response::ok(self).deadline_opt(until)
    }

    /// Logs a message, unless one was logged just before.
    fn warn(&mut self, now: Time, message: &dyn Display) {
        // A peer that makes its connections fail would otherwise fill the log as fast as it
        // connects.
        if self.quiet_until <= now {
            self.quiet_until = now + WARNING_INTERVAL;
            let address =
                self.local_address().map(|address| format!(" on {address}")).unwrap_or_default();
            log::warn!("listener{address}: {message}");
        }
    }
}
