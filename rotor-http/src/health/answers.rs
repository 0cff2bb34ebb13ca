//! `Health`: the responses to probes. `HealthServer`: a server that only responds to probes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rotor_core::{Backend, Infallible, LoopInstance, Machine, Phase, Pulses, Scope, Time};

use super::report::Report;
use crate::no_upgrade::NoUpgrade;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::server::{Head, Next, Reply, Response, Server};

/// The default of [`Health::live_within`]: how long ago the last turn of a loop may be.
pub const LIVE_WITHIN: Duration = Duration::from_secs(5);

/// The state from which probes are answered. Clones share it, on all loops and threads.
#[derive(Clone)]
#[doc(alias = "liveness")]
#[doc(alias = "readiness")]
#[doc(alias = "healthz")]
pub struct Health {
    pulses: Pulses,
    is_ready: Arc<AtomicBool>,
    live_within: Duration,
    checks: Vec<Check>,
    /// Whether this answers for the service, whose port a successor takes over, and not for this
    /// process.
    is_of_service: bool,
}

#[derive(Clone)]
struct Check {
    name: Arc<str>,
    check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Health {
    /// Makes a `Health` for the loops that `pulses` [watches](Pulses::watch). The process counts as
    /// not ready until [`set_ready`](Health::set_ready) is called.
    pub fn new(pulses: Pulses) -> Health {
        let is_ready = Arc::new(AtomicBool::new(false));
        Health {
            pulses,
            is_ready,
            live_within: LIVE_WITHIN,
            checks: Vec::new(),
            is_of_service: false,
        }
    }

    /// Returns the same for a port that a successor takes over. Probes that still get here meanwhile
    /// are told that the service is ready, since the successor serves.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn of_service(&self) -> Health {
        Health { is_of_service: true, ..self.clone() }
    }

    /// Sets how long ago the last turn of a loop may be. Default 5 s: far longer than a turn takes.
    /// At least two seconds, because loops record their turns once a second.
    #[must_use]
    pub fn live_within(mut self, time: Duration) -> Health {
        self.live_within = time.max(2 * Pulses::EVERY);
        self
    }

    /// Adds a check that must succeed for the process to be ready. Its error is the reason that is
    /// reported.
    ///
    /// Each probe calls the check, on the loop that responds, so it must not block. If a check
    /// takes time, do it elsewhere and look up the result here.
    ///
    /// Do not check things that all processes of a service depend on: if they fail, no process is
    /// left that gets requests.
    #[must_use]
    pub fn check(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Health {
        self.checks.push(Check { name: name.into(), check: Arc::new(check) });
        self
    }

    /// Watches a loop, like [`Pulses::watch`].
    pub fn watch<M: Machine, B: Backend>(&self, instance: &mut LoopInstance<M, B>) {
        self.pulses.watch(instance);
    }

    /// Sets whether the program is ready, for example has started and has warm caches.
    pub fn set_ready(&self, yes: bool) {
        self.is_ready.store(yes, Relaxed);
    }

    /// Responds to a request for `/livez` or `/readyz`. For any other request it returns `None` and
    /// writes nothing.
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::health::Health;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    ///
    /// fn serve(
    ///     health: &Health,
    ///     head: &Head<'_>,
    ///     response: &mut Response<'_>,
    ///     scope: &mut Scope<'_, ()>,
    /// ) -> Reply {
    ///     if let Some(reply) = health.answer(head, response, scope) {
    ///         return reply;
    ///     }
    ///     response.reply(Status::OK, "text/plain", b"Hello, World!")
    /// }
    /// ```
    pub fn answer<C>(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &Scope<'_, C>,
    ) -> Option<Reply> {
        let report = match head.path() {
            "/livez" => self.liveness(scope.now()),
            "/readyz" => self.readiness(scope.now(), scope.phase()),
            _ => return None,
        };
        if !matches!(head.method(), Method::Get | Method::Head) {
            let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
            let status = Status::METHOD_NOT_ALLOWED;
            return Some(response.reply_with(status, allow, "text/plain", b""));
        }
        let status = if report.is_ok() { Status::OK } else { Status::SERVICE_UNAVAILABLE };
        let fields: &[(&str, &[u8])] = &[("Cache-Control", b"no-store")];
        let body = report.json();
        Some(response.reply_with(status, fields, "application/json", body.as_bytes()))
    }

    fn liveness(&self, now: Time) -> Report {
        let mut report = Report::default();
        for held_up in self.pulses.stalled_loops(now, self.live_within) {
            let (index, since) = (held_up.index, held_up.since.as_secs());
            report.add(if held_up.has_ended {
                format!("loop {index} has ended")
            } else {
                format!("loop {index} has made no turn for {since} s")
            });
        }
        report
    }

    fn readiness(&self, now: Time, phase: Phase) -> Report {
        let mut report = self.liveness(now);
        if self.pulses.is_empty() || !self.is_ready.load(Relaxed) {
            report.add("it has not started yet".into());
        }
        let goes_on = self.is_of_service && self.pulses.has_successor();
        if !goes_on && (self.pulses.is_ending() || phase != Phase::Serving) {
            report.add("it is about to end".into());
        }
        for Check { name, check } in &self.checks {
            if let Err(reason) = check() {
                report.add(format!("{name}: {reason}"));
            }
        }
        report
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("pulses", &self.pulses)
            .field("is_ready", &self.is_ready)
            .finish_non_exhaustive()
    }
}

/// A server that responds to probes, and with 404 to everything else. Use it for a separate port,
/// or combine it with another server by [`Routed`](crate::server::Routed). Its seed is a
/// [`Health`].
pub struct HealthServer<C> {
    never: Infallible,
    context: PhantomData<fn(C)>,
}

impl<C> Server for HealthServer<C> {
    type Context = C;
    type Seed = Health;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        health: Health,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match health.answer(head, response, scope) {
            Some(reply) => reply.into(),
            None => response.reply(Status::NOT_FOUND, "text/plain", b"").into(),
        }
    }
}

impl<C> fmt::Debug for HealthServer<C> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
