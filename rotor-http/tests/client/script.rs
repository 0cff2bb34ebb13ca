//! `ScriptedSource`: a source of probes for one connection, which the test controls.

use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Connection, ConnectionSeed, Job, Offer, RequestSource};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;

use crate::probe::{Probe, Sc, TestContext, outcome_of};

pub(crate) type ProbeDriver = Driver<Connection<Probe, ScriptedSource>>;

/// A source that takes its requests from the context.
#[derive(Debug)]
pub(crate) struct ScriptedSource;

impl RequestSource<Probe> for ScriptedSource {
    fn next(&mut self, _: bool, scope: Sc<'_, '_>) -> Offer<Probe> {
        scope.notifier = Some(scope.notifier());
        if scope.retakes_jobs
            && let Some(job) = scope.returned_jobs.pop()
        {
            return Offer::Job(job);
        }
        let Some(probe) = scope.plans.pop_front() else { return Offer::Idle };
        if scope.records_jobs {
            scope.events.push(format!("{} taken", probe.target));
        }
        let (port, future) = scope.create_future();
        if !probe.is_cancelled {
            scope.futures.push_back(future);
        }
        let deadline = scope.now() + probe.deadline;
        Offer::Job(Job::new(probe, deadline, port))
    }

    fn return_job(&mut self, job: Job<Probe>, scope: Sc<'_, '_>) {
        scope.returned_jobs.push(job);
    }

    fn not_connected(self, error: Fatal, scope: Sc<'_, '_>) {
        scope.events.push(format!("not connected: {error}"));
    }
}

/// A connection that makes these requests.
pub(crate) fn connection(limits: Limits, plans: impl IntoIterator<Item = Probe>) -> ProbeDriver {
    connection_with_config(&Arc::new(ClientConfig::new().limits(limits)), plans)
}

/// The same with the configuration of a client.
pub(crate) fn connection_with_config(
    config: &Arc<ClientConfig>,
    plans: impl IntoIterator<Item = Probe>,
) -> ProbeDriver {
    let seed = ConnectionSeed::new(ScriptedSource, config.clone());
    let mut driver = Driver::new(
        seed,
        TestContext { plans: plans.into_iter().collect(), ..TestContext::default() },
    );
    driver.settle();
    driver
}

/// The outcome of the oldest request: its text, its error with the side at fault, or nothing yet.
pub(crate) fn outcome(driver: &mut ProbeDriver) -> Option<String> {
    outcome_of(driver.context_mut())
}

/// Whether the connection waits for another request.
pub(crate) fn is_reusable(driver: &mut ProbeDriver) -> bool {
    driver.is_alive() && !driver.is_ended()
}
