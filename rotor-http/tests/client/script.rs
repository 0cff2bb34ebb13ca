//! `Script`: a feed of probes for one connection, which is driven by hand.

use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Connection, ConnectionSeed, Job, Offer, RequestSource};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;

use crate::probe::{Probe, Sc, Seen, outcome_of};

pub(crate) type Probed = Driver<Connection<Probe, Script>>;

/// A feed that takes what the context holds.
#[derive(Debug)]
pub(crate) struct Script;

impl RequestSource<Probe> for Script {
    fn next(&mut self, _: bool, scope: Sc<'_, '_>) -> Offer<Probe> {
        scope.notifier = Some(scope.notifier());
        if scope.takes_back
            && let Some(job) = scope.given_back.pop()
        {
            return Offer::Job(job);
        }
        let Some(probe) = scope.plans.pop_front() else { return Offer::Idle };
        if scope.notes_jobs {
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
        scope.given_back.push(job);
    }

    fn not_connected(self, error: Fatal, scope: Sc<'_, '_>) {
        scope.events.push(format!("not connected: {error}"));
    }
}

/// A connection that makes these requests.
pub(crate) fn connection(limits: Limits, plans: impl IntoIterator<Item = Probe>) -> Probed {
    connection_of(&Arc::new(ClientConfig::new().limits(limits)), plans)
}

/// The same, of a client.
pub(crate) fn connection_of(
    config: &Arc<ClientConfig>,
    plans: impl IntoIterator<Item = Probe>,
) -> Probed {
    let seed = ConnectionSeed::new(Script, config.clone());
    let mut driver =
        Driver::new(seed, Seen { plans: plans.into_iter().collect(), ..Seen::default() });
    driver.settle();
    driver
}

/// What became of the oldest request: its text, its error with whose fault it is, or nothing yet.
pub(crate) fn outcome(driver: &mut Probed) -> Option<String> {
    outcome_of(driver.context_mut())
}

/// Whether the connection waits for another request.
pub(crate) fn is_reusable(driver: &mut Probed) -> bool {
    driver.is_alive() && !driver.is_ended()
}
