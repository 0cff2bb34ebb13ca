//! `Persistent`: a stream that is connected again whenever it ends.

use std::any::type_name;
use std::fmt;
use std::time::Duration;

use rotor_core::net::StreamSocket;
use rotor_core::{Answer, Description, Event, Machine, Response, Scope, TICK, Time, with_causes};

use crate::connect::Connect;
use crate::destination::Destination;
use crate::link::Link;
use crate::protocol::Protocol;

/// A machine that keeps a protocol connected to one [`Destination`], an address or a name. It
/// connects, and when the connection fails or ends, it waits for a while and connects again.
///
/// The protocol's [`StreamConfig`](crate::StreamConfig) sets how long connecting may take, and
/// [`PersistentConfig`] sets how long to wait. Each connection gets a clone of the seed. A failure
/// to connect is reported to [`Protocol::not_connected`]. A [`Link`] tells others whether the
/// connection is up.
///
/// The machine stays the same from one connection to the next, and so do its token and its
/// notifiers: one that the protocol has made wakes the protocol of a later connection, and
/// [`Notifier::wakeup`](rotor_core::Notifier::wakeup) does not say that the connection has ended.
/// While there is no connection, a wake-up has no effect.
///
/// The machine ends by [`Link::close`], or when the loop drains: at once if it is not connected,
/// otherwise when its connection ends. For that, the protocol has to implement
/// [`Protocol::draining`], whose default goes on. The machine is never idle ([`Machine::idle`]),
/// whatever its protocol returns: closing the connection would free no slot, and the machine would
/// take a descriptor again at once.
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

/// What is kept from one connection to the next.
struct Plan<P: Protocol, T> {
    destination: T,
    seed: P::Seed,
    config: PersistentConfig,
    link: Link,
    /// How many connections in a row have failed or ended too soon.
    failures: u32,
    /// Since when the connection has been up; `None` if it is not.
    up_since: Option<Time>,
    /// Whether the connection was up for long enough, before it went down.
    was_stable: bool,
    is_draining: bool,
}

/// The seed of a [`Persistent`].
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
    /// The seed of the protocol; each connection gets a clone.
    pub seed: P::Seed,
    /// How long to wait between attempts. Default: [`PersistentConfig::new`].
    pub config: PersistentConfig,
    /// Shows others whether the connection is up. Default: a link that is not shared.
    pub link: Link,
}

/// How long a persistent connection waits between attempts.
///
/// The first wait is between half of `backoff_min` and all of it. Each further wait may be twice as
/// long as the one before, up to `backoff_max`. The random half keeps many clients from
/// reconnecting at the same instant.
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
    /// Makes the seed of a connection to `destination`. Each connection's protocol is made from a
    /// clone of `seed`.
    pub fn new(destination: T, seed: P::Seed) -> PersistentSeed<P, T> {
        PersistentSeed { destination, seed, config: PersistentConfig::new(), link: Link::new() }
    }

    /// Sets how long to wait between attempts. Default: [`PersistentConfig::new`].
    pub fn config(mut self, config: PersistentConfig) -> PersistentSeed<P, T> {
        self.config = config;
        self
    }

    /// Sets the link that shows others whether the connection is up. Default: a link that is not
    /// shared.
    pub fn link(mut self, link: Link) -> PersistentSeed<P, T> {
        self.link = link;
        self
    }
}

impl PersistentConfig {
    /// Returns the defaults.
    pub fn new() -> PersistentConfig {
        PersistentConfig {
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            stable_after: Duration::from_secs(10),
        }
    }

    /// Sets the first wait. Default 100 ms: a restarted server is back soon. It is at least 1 ms,
    /// whatever is set here and in [`backoff_max`](PersistentConfig::backoff_max): without a wait,
    /// the loop would do nothing but reconnect.
    pub fn backoff_min(mut self, time: Duration) -> PersistentConfig {
        self.backoff_min = time;
        self
    }

    /// Sets the longest wait. Default 30 s: a server that was down for hours is found within half a
    /// minute of its return.
    pub fn backoff_max(mut self, time: Duration) -> PersistentConfig {
        self.backoff_max = time;
        self
    }

    /// Sets how long a connection must have been up for the next wait to be the first one again.
    /// Default 10 s: a server that accepts and closes at once is not contacted ten times a second.
    pub fn stable_after(mut self, time: Duration) -> PersistentConfig {
        self.stable_after = time;
        self
    }

    /// Returns the wait after this many failures in a row (at least one); at least a tick. `random`
    /// must be uniformly distributed.
    fn backoff(&self, failures: u32, random: u64) -> Duration {
        let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let ceiling = self.backoff_min.saturating_mul(doubled).min(self.backoff_max);
        // If the whole wait were random, some clients would hardly wait at all; if none of it were,
        // all would return at once.
        let half = ceiling / 2;
        // A floating-point number holds 53 random bits.
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
    /// Notes whether the protocol exists; after its end the connection may still be flushed.
    fn record_is_up(&mut self, is_up: bool, now: Time) {
        if is_up == self.up_since.is_some() {
            return;
        }
        if let Some(since) = self.up_since.take() {
            self.was_stable = now - since >= self.config.stable_after;
        } else {
            self.up_since = Some(now);
        }
        self.link.set_is_up(is_up);
    }

    fn record_end(&mut self, now: Time) {
        self.record_is_up(false, now);
        let was_stable = std::mem::take(&mut self.was_stable);
        // This end counts as a failure, too; otherwise there would be no wait.
        self.failures = if was_stable { 1 } else { self.failures.saturating_add(1) };
    }
}

impl<P: Protocol, T> Drop for Plan<P, T> {
    fn drop(&mut self) {
        // Also if the protocol has panicked, so that nobody waits for the link forever.
        self.link.set_is_up(false);
    }
}

/// The response of a persistent connection.
type PersistentResponse<P, S, T, N> = Response<Persistent<P, S, T>, N>;

impl<P: Protocol, S: StreamSocket, T: Destination<S, P::Context>> Persistent<P, S, T>
where
    P::Seed: Clone,
{
    /// Makes the machine, which begins to connect in the next turn, so that it can be made before
    /// there is a context.
    pub fn new<C>(
        seed: PersistentSeed<P, T>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Persistent<P, S, T>> {
        let PersistentSeed { destination, seed, config, link } = seed;
        link.set_owner(scope.notifier());
        let plan = Plan {
            destination,
            seed,
            config,
            link,
            failures: 0,
            up_since: None,
            was_stable: false,
            is_draining: false,
        };
        let state = State::BackingOff { until: scope.now() };
        Response::ok(Persistent { plan: Box::new(plan), state }).deadline(scope.now())
    }

    fn connect<N>(
        plan: Box<Plan<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> PersistentResponse<P, S, T, N> {
        let response: Response<Connect<P, S, T>> =
            Connect::new(&plan.destination, plan.seed.clone(), scope);
        Persistent::wrap_response(plan, response, scope)
    }

    /// Turns the response of the stream into one of this machine.
    fn wrap_response<N>(
        mut plan: Box<Plan<P, T>>,
        response: Response<Connect<P, S, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> PersistentResponse<P, S, T, N> {
        let (answer, deadline) = response.into_parts();
        let (stream, again) = match answer {
            Answer::Continue(stream) => (stream, false),
            Answer::Again(stream) => (stream, true),
            Answer::Done => return Persistent::back_off(plan, scope),
            // Not passed on: the error would end this machine, which must go on.
            Answer::Error(error) => {
                log::warn!(
                    "machine {} ({}) ended and is made again: {}",
                    scope.token(),
                    type_name::<P>(),
                    with_causes(&*error)
                );
                return Persistent::back_off(plan, scope);
            }
        };
        plan.record_is_up(stream.is_open(), scope.now());
        let machine = Persistent { plan, state: State::Running(stream) };
        Response::from_parts(
            if again { Answer::Again(machine) } else { Answer::Continue(machine) },
            deadline,
        )
    }

    fn back_off<N>(
        mut plan: Box<Plan<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> PersistentResponse<P, S, T, N> {
        plan.record_end(scope.now());
        // No further connection is wanted.
        if plan.is_draining || plan.link.is_closed() {
            return Response::done();
        }
        // Peers observe these times, from which `random_u64` could be computed.
        let random = u64::from_ne_bytes(scope.secure_random());
        let until = scope.now() + plan.config.backoff(plan.failures, random);
        Response::ok(Persistent { plan, state: State::BackingOff { until } }).deadline(until)
    }

    /// Passes an event to the stream, if there is one.
    fn forward_event<N>(
        self,
        event: Event<PersistentSeed<P, T>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> PersistentResponse<P, S, T, N> {
        let Persistent { plan, state } = self;
        match state {
            State::Running(stream) => {
                let response = stream.handle(event.filter_map(|_| None), scope);
                Persistent::wrap_response(plan, response.without_spawn(), scope)
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
            // At once, whatever is being connected or written: this is what closing a link means.
            (Event::Wakeup, _) if self.plan.link.is_closed() => {
                if let State::Running(stream) = &mut self.state {
                    stream.reset_if_unsent();
                }
                return Response::done();
            }
            // The link was closed before there was a machine to wake.
            (Event::Timeout, State::BackingOff { .. }) if self.plan.link.is_closed() => {
                return Response::done();
            }
            (Event::Timeout, State::BackingOff { until }) if *until <= scope.now() => {
                return Persistent::connect(self.plan, scope);
            }
            (Event::Draining(_), state) => {
                self.plan.is_draining = true;
                // Output is flushed even if the protocol has ended.
                if !matches!(state, State::Running(stream) if !stream.is_opening()) {
                    return Response::done();
                }
            }
            _ => {}
        }
        self.forward_event(event, scope)
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
    fn backoff_doubles_up_to_the_maximum_and_half_of_it_is_random() {
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
