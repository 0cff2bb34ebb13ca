//! `Persistent`: a stream that is connected again whenever it ends.

use std::any::type_name;
use std::fmt;
use std::time::Duration;

use rotor_core::net::StreamSocket;
use rotor_core::{Answer, Description, Event, Machine, Response, Scope, TICK, Time};

use crate::connect::Connect;
use crate::destination::Destination;
use crate::link::Link;
use crate::protocol::Protocol;

/// The machine that keeps a protocol connected to one [`Destination`], an address or a name: it
/// connects, and when the connection fails or ends, it waits a while and connects again.
///
/// How long connecting may take is said by the protocol's [`StreamConfig`](crate::StreamConfig),
/// the waiting by [`PersistentConfig`]. Each connection gets a clone of the seed, and a failure to
/// connect is told to [`Protocol::not_connected`]. A [`Link`] tells others whether it is up.
///
/// It ends when the loop drains, or by [`Link::close`]. It makes no room for others
/// ([`Machine::idle`]), whatever its protocol says: its slot would stay its own, and it would take
/// a descriptor again at once.
#[doc(alias = "reconnect")]
pub struct Persistent<P: Protocol, S: StreamSocket, T = <S as StreamSocket>::Target> {
    plan: Box<Plan<P, T>>,
    state: State<P, S, T>,
}

/// ```text
///              ┌───────── failed, ended ─────────┐
///              │                                 ▼
///  create ─▶ Running (connecting, then open)   BackingOff
///              ▲                                 │
///              └──────────── timeout ────────────┘
/// ```
enum State<P: Protocol, S: StreamSocket, T> {
    Running(Connect<P, S, T>),
    BackingOff { until: Time },
}

/// What stays when connections come and go.
struct Plan<P: Protocol, T> {
    destination: T,
    seed: P::Seed,
    config: PersistentConfig,
    link: Link,
    /// How many connections in a row have failed or ended too soon.
    failures: u32,
    up_since: Option<Time>,
    is_up: bool,
    is_draining: bool,
}

/// What a persistent connection is made from.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// # use rotor::Scope;
/// # use rotor::stream::{Intent, Matched, Protocol, Transport};
/// # struct Echo;
/// # impl Protocol for Echo {
/// #     type Context = ();
/// #     type Seed = ();
/// #     fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
/// #     fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
/// # }
/// use rotor::stream::{Host, Link, PersistentConfig, PersistentSeed};
/// use std::time::Duration;
///
/// let link = Link::new();
/// let seed = PersistentSeed::<Echo, Host>::new(Host::new("cache.example.com", 6379), ())
///     .config(PersistentConfig::new().backoff_max(Duration::from_secs(5)))
///     .link(link.clone());
/// ```
#[must_use]
#[non_exhaustive]
pub struct PersistentSeed<P: Protocol, T> {
    /// Where to connect to.
    #[doc(alias = "target")]
    pub destination: T,
    /// What the protocol is made from, each time.
    pub seed: P::Seed,
    /// How long to wait between attempts. Default: [`PersistentConfig::new`].
    pub config: PersistentConfig,
    /// Where others look whether it is up. Default: a link that nobody else has.
    pub link: Link,
}

/// How a persistent connection waits between attempts.
///
/// The first wait is between half of `backoff_min` and all of it; each further one is up to twice
/// as long as the one before, up to `backoff_max`. The random half keeps many clients from coming
/// back at the same instant.
#[derive(Clone, Debug)]
#[must_use]
#[doc(alias = "exponential backoff")]
#[doc(alias = "jitter")]
pub struct PersistentConfig {
    backoff_min: Duration,
    backoff_max: Duration,
    stable_after: Duration,
}

impl<P: Protocol, T> PersistentSeed<P, T> {
    /// A connection to `destination`, whose protocol is made from a clone of `seed` each time.
    pub fn new(destination: T, seed: P::Seed) -> PersistentSeed<P, T> {
        PersistentSeed { destination, seed, config: PersistentConfig::new(), link: Link::new() }
    }

    /// How long to wait between attempts.
    pub fn config(mut self, config: PersistentConfig) -> PersistentSeed<P, T> {
        self.config = config;
        self
    }

    /// Where others look whether it is up.
    pub fn link(mut self, link: Link) -> PersistentSeed<P, T> {
        self.link = link;
        self
    }
}

impl PersistentConfig {
    /// The defaults.
    pub fn new() -> PersistentConfig {
        PersistentConfig {
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            stable_after: Duration::from_secs(10),
        }
    }

    /// The first wait, at least 1 ms, whatever is said here and in
    /// [`backoff_max`](PersistentConfig::backoff_max): without any, a loop would do nothing but
    /// try. Default 100 ms: a server that is restarted is back soon.
    pub fn backoff_min(mut self, time: Duration) -> PersistentConfig {
        self.backoff_min = time;
        self
    }

    /// The longest wait. Default 30 s: a server that is down for hours is found within half a
    /// minute of its return.
    pub fn backoff_max(mut self, time: Duration) -> PersistentConfig {
        self.backoff_max = time;
        self
    }

    /// How long a connection must have been up for the next wait to be the first again. Default 10
    /// s: a server that accepts and closes at once is not asked ten times a second.
    pub fn stable_after(mut self, time: Duration) -> PersistentConfig {
        self.stable_after = time;
        self
    }

    /// The wait after so many failures in a row (at least one), a tick at least, `random` being
    /// evenly spread over its range.
    fn backoff(&self, failures: u32, random: u64) -> Duration {
        let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let ceiling = self.backoff_min.saturating_mul(doubled).min(self.backoff_max);
        // All of it at random would be next to nothing for some clients; none of it at random
        // brings all back at once.
        let half = ceiling / 2;
        // 53 random bits are all that a floating-point number can tell apart.
        let wait = half
            .saturating_add((ceiling - half).mul_f64((random >> 11) as f64 / (1u64 << 53) as f64));
        wait.max(TICK)
    }
}

impl Default for PersistentConfig {
    fn default() -> PersistentConfig {
        PersistentConfig::new()
    }
}

impl<P: Protocol, T> Plan<P, T> {
    /// Notes whether the protocol is there: after its end the connection may still be flushed.
    fn note(&mut self, is_up: bool, now: Time) {
        if is_up == self.is_up {
            return;
        }
        self.is_up = is_up;
        if is_up {
            self.up_since = Some(now);
        }
        self.link.set(is_up);
    }

    fn note_end(&mut self, now: Time) {
        let was_stable =
            self.up_since.take().is_some_and(|since| now - since >= self.config.stable_after);
        // This end counts as well: without a failure there would be no wait.
        self.failures = if was_stable { 1 } else { self.failures.saturating_add(1) };
        self.note(false, now);
    }
}

impl<P: Protocol, T> Drop for Plan<P, T> {
    fn drop(&mut self) {
        // Also where the protocol has panicked: who waits for the link must not do so for ever.
        self.link.set(false);
    }
}

/// What a persistent connection answers.
type Answered<P, S, T, N> = Response<Persistent<P, S, T>, N>;

impl<P: Protocol, S: StreamSocket, T: Destination<S, P::Context>> Persistent<P, S, T>
where
    P::Seed: Clone,
{
    /// Begins to connect, in the next turn; so it can be made before there is a context.
    pub fn new<C>(
        seed: PersistentSeed<P, T>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Persistent<P, S, T>> {
        let PersistentSeed { destination, seed, config, link } = seed;
        link.own(scope.notifier());
        let plan = Plan {
            destination,
            seed,
            config,
            link,
            failures: 0,
            up_since: None,
            is_up: false,
            is_draining: false,
        };
        let state = State::BackingOff { until: scope.now() };
        Response::ok(Persistent { plan: Box::new(plan), state }).deadline(scope.now())
    }

    fn connect<N>(
        plan: Box<Plan<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Answered<P, S, T, N> {
        let response: Response<Connect<P, S, T>> =
            Connect::new(&plan.destination, plan.seed.clone(), scope);
        Persistent::wrap(plan, response, scope)
    }

    /// Makes the stream's answer that of this machine.
    fn wrap<N>(
        mut plan: Box<Plan<P, T>>,
        response: Response<Connect<P, S, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Answered<P, S, T, N> {
        let (answer, deadline) = response.into_parts();
        let (stream, again) = match answer {
            Answer::Continue(stream) => (stream, false),
            Answer::Again(stream) => (stream, true),
            Answer::Done => return Persistent::back_off(plan, scope),
            // Not handed up: it would end this machine, which has to go on.
            Answer::Error(error) => {
                log::warn!(
                    "machine {} ({}) ended and is made again: {error}",
                    scope.token(),
                    type_name::<P>()
                );
                return Persistent::back_off(plan, scope);
            }
        };
        plan.note(stream.is_open(), scope.now());
        let machine = Persistent { plan, state: State::Running(stream) };
        Response::from_parts(
            if again { Answer::Again(machine) } else { Answer::Continue(machine) },
            deadline,
        )
    }

    fn back_off<N>(
        mut plan: Box<Plan<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Answered<P, S, T, N> {
        plan.note_end(scope.now());
        // Nobody waits for another connection.
        if plan.is_draining || plan.link.is_closed() {
            return Response::done();
        }
        // Peers see these times; `random_u64` could be computed from them.
        let random = u64::from_ne_bytes(scope.secure_random());
        let until = scope.now() + plan.config.backoff(plan.failures, random);
        Response::ok(Persistent { plan, state: State::BackingOff { until } }).deadline(until)
    }

    /// Hands an event to the stream, if there is one.
    fn hand_down<N>(
        self,
        event: Event<PersistentSeed<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Answered<P, S, T, N> {
        let Persistent { plan, state } = self;
        match state {
            State::Running(stream) => {
                let response = stream.handle(event.filter_map(|_| None), scope);
                Persistent::wrap(plan, response.without_spawn(), scope)
            }
            State::BackingOff { until } => {
                Response::ok(Persistent { plan, state: State::BackingOff { until } })
                    .deadline(until)
            }
        }
    }
}

impl<P: Protocol, S: StreamSocket, T: Destination<S, P::Context>> Machine for Persistent<P, S, T>
where
    P::Seed: Clone,
{
    type Context = P::Context;
    type Seed = PersistentSeed<P, T>;

    fn create(seed: PersistentSeed<P, T>, scope: &mut Scope<'_, P::Context>) -> Response<Self> {
        Persistent::new(seed, scope)
    }

    fn handle(
        mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, Self::Seed> {
        match (&event, &self.state) {
            // At once, whatever is connecting or being written: that is what closing a link means.
            (Event::Wakeup, _) if self.plan.link.is_closed() => return Response::done(),
            // A link that was closed before there was a machine to wake.
            (Event::Timeout, State::BackingOff { .. }) if self.plan.link.is_closed() => {
                return Response::done();
            }
            (Event::Timeout, State::BackingOff { until }) if *until <= scope.now() => {
                return Persistent::connect(self.plan, scope);
            }
            (Event::Draining(_), state) => {
                self.plan.is_draining = true;
                // What has been written is flushed also where the protocol has ended.
                if !matches!(state, State::Running(stream) if !stream.is_unopened()) {
                    return Response::done();
                }
            }
            _ => {}
        }
        self.hand_down(event, scope)
    }

    fn describe(&self, to: &mut Description) {
        match &self.state {
            State::Running(stream) => stream.describe(to),
            State::BackingOff { .. } => to.set_state("backing off"),
        }
    }

    fn type_name(&self) -> &'static str {
        type_name::<P>()
    }
}

impl<P: Protocol, S: StreamSocket, T> fmt::Debug for Persistent<P, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Running(stream) => f.debug_tuple("Running").field(stream).finish(),
            State::BackingOff { until } => {
                f.debug_struct("BackingOff").field("until", until).finish()
            }
        }
    }
}

impl<P: Protocol, T> fmt::Debug for PersistentSeed<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentSeed").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_ceiling_and_half_of_each_is_random() {
        let config = PersistentConfig::new()
            .backoff_min(Duration::from_millis(100))
            .backoff_max(Duration::from_secs(1));
        let cases = [
            (1, 50, 100),
            (2, 100, 200),
            (3, 200, 400),
            (4, 400, 800),
            (5, 500, 1000),
            (40, 500, 1000),
        ];
        for (failures, least, most) in cases {
            assert_eq!(
                config.backoff(failures, 0),
                Duration::from_millis(least),
                "{failures} failures"
            );
            let longest = config.backoff(failures, u64::MAX);
            let most = Duration::from_millis(most);
            assert!(
                longest <= most && most - longest < Duration::from_micros(1),
                "{failures}: {longest:?}"
            );
        }
        let none = PersistentConfig::new().backoff_min(Duration::ZERO).backoff_max(Duration::ZERO);
        assert_eq!(
            none.backoff(1, 0),
            TICK,
            "a connection that fails at once is not tried again at once"
        );
        let endless = PersistentConfig::new().backoff_min(Duration::MAX).backoff_max(Duration::MAX);
        assert!(endless.backoff(u32::MAX, u64::MAX) >= Duration::MAX / 2);
    }
}
