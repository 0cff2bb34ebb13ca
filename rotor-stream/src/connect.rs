//! `Connect`: a stream to a destination, which may be a name.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use rotor_core::net::StreamSocket;
use rotor_core::{Description, Event, EventSet, Idle, InPlace, Machine, Response, Scope, Time};

use crate::destination::Destination;
use crate::error::Fatal;
use crate::happy_eyeballs::{HappyEyeballs, Progress};
use crate::protocol::Protocol;
use crate::stream::{Stream, not_connected};

/// A machine that connects to a [`Destination`] and then becomes the stream.
///
/// The context's resolver resolves a [`Host`](crate::Host). Its addresses are tried according to
/// RFC 8305: IPv6 and IPv4 alternate, [250 ms](crate::ATTEMPT_DELAY) apart or as soon as the
/// previous attempt has failed, at most [16](crate::ATTEMPTS_MAX) of them. The first that connects
/// is used, the others are closed. A Unix socket whose listener has no room in its queue is tried
/// again after 250 ms. The protocol's
/// [`connect_timeout`](crate::StreamConfig::connect_timeout) covers the whole process, including
/// resolving. A failure is reported to [`Protocol::not_connected`], and the machine ends. If all
/// addresses have failed, the error is the last one that an address has answered.
#[doc(alias = "Happy Eyeballs")]
#[doc(alias = "RFC 8305")]
pub struct Connect<P: Protocol, S: StreamSocket, T = <S as StreamSocket>::Target> {
    state: State<P, S>,
    destination: PhantomData<fn() -> T>,
}

/// The seed of a [`Connect`].
#[non_exhaustive]
pub struct ConnectSeed<P: Protocol, T> {
    /// The address or name to connect to.
    pub destination: T,
    /// The seed of the protocol.
    pub seed: P::Seed,
}

impl<P: Protocol, T> ConnectSeed<P, T> {
    /// Makes the seed of a connection to `destination`, whose protocol is made from `seed`.
    pub fn new(destination: T, seed: P::Seed) -> ConnectSeed<P, T> {
        ConnectSeed { destination, seed }
    }
}

/// ```text
///  Connecting ──connected──▶ Running ──▶ end
///      └── failed, late ──▶ end
/// ```
enum State<P: Protocol, S: StreamSocket> {
    // Boxed: it is dropped when the stream begins, and the slot would keep its size.
    Connecting { race: Box<HappyEyeballs<S>>, attempt: Attempt<P> },
    Running(Stream<P, S>),
}

/// The seed for an attempt to connect, and how long the attempt may take.
struct Attempt<P: Protocol> {
    seed: P::Seed,
    until: Time,
    /// The loop drains, and there was no protocol yet to be told.
    drain_pending: bool,
}

impl<P: Protocol, S: StreamSocket, T: Destination<S, P::Context>> Connect<P, S, T> {
    /// Begins to connect.
    #[doc(alias = "to")]
    pub fn new<N>(
        destination: &T,
        seed: P::Seed,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, N> {
        let until = scope.now() + P::config(&seed).connect_timeout;
        let progress = HappyEyeballs::begin(destination.resolve(scope), scope);
        let attempt = Attempt { seed, until, drain_pending: false };
        Connect::advance(progress, EventSet::EMPTY, attempt, scope)
    }

    /// Returns whether the protocol's `create` was called, and the protocol has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&self.state, State::Running(stream) if stream.is_open())
    }

    /// Returns whether the protocol's `create` is still to come.
    pub(crate) fn is_opening(&self) -> bool {
        match &self.state {
            State::Connecting { .. } => true,
            State::Running(stream) => stream.is_opening(),
        }
    }

    /// Prepares the connection for being dropped, which happens next.
    #[cold]
    pub(crate) fn reset_if_unsent(&mut self) {
        if let State::Running(stream) = &mut self.state {
            stream.reset_if_unsent();
        }
    }

    fn handle_running<S2, N>(
        mut stream: Stream<P, S>,
        event: Event<S2>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, N> {
        let response = stream.on_event(event, scope);
        response.map(
            |()| Connect { state: State::Running(stream), destination: PhantomData },
            |seed| seed,
        )
    }

    fn advance<N>(
        progress: Progress<S>,
        events: EventSet,
        attempt: Attempt<P>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, N> {
        match progress {
            Progress::Wait(race, next) => {
                // The limit for the whole process, or the time of the next attempt, whichever comes
                // first.
                let until = attempt.until.min(next);
                let state = State::Connecting { race: Box::new(race), attempt };
                Response::ok(Connect { state, destination: PhantomData }).deadline(until)
            }
            Progress::Fail(error) => {
                not_connected::<P>(attempt.seed, error, scope);
                Response::done()
            }
            // The event that reported it may have reported input too, and is not repeated.
            Progress::Done(socket) => {
                let mut stream = Stream::<P, S>::registered(socket, attempt.seed, attempt.until);
                if attempt.drain_pending {
                    stream.set_drain_pending();
                }
                Connect::handle_running(stream, Event::<()>::Ready(events), scope)
            }
        }
    }

    /// Continues an attempt to connect, or ends it.
    fn handle_connecting<N>(
        race: Box<HappyEyeballs<S>>,
        mut attempt: Attempt<P>,
        event: Event<ConnectSeed<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, N> {
        let events = match event {
            Event::Ready(events) => events,
            Event::Timeout if attempt.until <= scope.now() => {
                not_connected::<P>(attempt.seed, Fatal::ConnectTimeout, scope);
                return Response::done();
            }
            // The next attempt is due, or the resolver has answered.
            Event::Timeout | Event::Wakeup => EventSet::EMPTY,
            other => {
                // There is no protocol to be told yet; it is told after its first call.
                attempt.drain_pending |= matches!(other, Event::Draining(_));
                let state = State::Connecting { race, attempt };
                return Response::keep(Connect { state, destination: PhantomData });
            }
        };
        Connect::advance(race.poll(scope), events, attempt, scope)
    }
}

impl<P: Protocol, S: StreamSocket, T: Destination<S, P::Context>> Machine for Connect<P, S, T> {
    type Context = P::Context;
    type Seed = ConnectSeed<P, T>;

    fn create(seed: ConnectSeed<P, T>, scope: &mut Scope<'_, P::Context>) -> Response<Self> {
        Connect::new(&seed.destination, seed.seed, scope)
    }

    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, Self::Seed> {
        match self.state {
            State::Running(stream) => Connect::handle_running(stream, event, scope),
            State::Connecting { race, attempt } => {
                Connect::handle_connecting(race, attempt, event, scope)
            }
        }
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, P::Context>,
    ) -> InPlace<Self::Seed> {
        match &mut self.state {
            State::Running(stream) => InPlace::Handled(stream.on_event(event, scope)),
            State::Connecting { .. } => InPlace::Declined(event),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match &self.state {
            State::Running(stream) => stream.idle(),
            State::Connecting { .. } => None,
        }
    }

    fn describe(&self, to: &mut Description) {
        match &self.state {
            State::Running(stream) => stream.describe(to),
            State::Connecting { .. } => to.set_state("connecting"),
        }
    }

    fn type_name(&self) -> &'static str {
        type_name::<P>()
    }
}

impl<P: Protocol, S: StreamSocket, T> fmt::Debug for Connect<P, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Running(stream) => stream.fmt(f),
            State::Connecting { race, attempt } => {
                let phase = match **race {
                    HappyEyeballs::Resolving { .. } => "Resolving",
                    HappyEyeballs::Racing(_) => "Racing",
                };
                f.debug_struct(phase).field("until", &attempt.until).finish_non_exhaustive()
            }
        }
    }
}

impl<P: Protocol, T: fmt::Debug> fmt::Debug for ConnectSeed<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectSeed")
            .field("destination", &self.destination)
            .finish_non_exhaustive()
    }
}
