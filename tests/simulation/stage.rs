//! What each scenario is played on: a host that serves, a host of scripted clients, and the same
//! end for all.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::{ListenOptions, Listener, StreamSocket};
use rotor::stream::{Accept, AcceptConfig, Accepted};
use rotor::{BoxError, EarlyScope, Machine, Response};
use rotor_sim::{
    Check, Crash, Family, Fault, Host, Script, ScriptClient, Sim, TranscriptHandle, Watched,
};

use crate::ground::{Bytes, Ground};

/// Seeds of each scenario unless `ROTOR_SIM_SEEDS` says otherwise.
pub(crate) const SEEDS: u64 = 10;

/// How long things go wrong.
pub(crate) const FAULTY: Duration = Duration::from_secs(20);

/// How long it may take to come right afterwards. The longest is an attempt to connect that nobody
/// answers (127 s), after a proxy or a server has lost patience with another.
const RECOVERY_TIME: Duration = Duration::from_secs(900);

pub(crate) const PORT: u16 = 80;

/// A script that is played again and again until it comes to its end.
pub(crate) fn persistent_script() -> Script {
    Script::new().attempts(10_000).patience(Duration::from_secs(90))
}

/// Time for things to go wrong between two requests: most of what a client does is to happen while
/// faults do. Without it all would be said within some milliseconds, and no crash or partition
/// would come in between.
pub(crate) fn think_time(number: u32, request: u32) -> Duration {
    Duration::from_millis(u64::from(number * 631 + request * 1_373) % 3_000)
}

/// Limits of a listener whose clients are to come to their end in one connection, with [a
/// while](a_while) between two requests: by default one of more clients than slots would be closed
/// in each while, to make room for those who wait.
pub(crate) fn patient() -> AcceptConfig {
    AcceptConfig::new().idle_min(Duration::from_secs(20))
}

/// Runs a scenario under the swarm of each seed.
#[track_caller]
pub(crate) fn check(scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) {
    Check::new().seeds(SEEDS).run(scenario);
}

/// The faults of some families.
pub(crate) fn faults(of: impl Fn(Family) -> bool) -> impl Iterator<Item = Fault> {
    Fault::ALL.iter().copied().filter(move |fault| of(fault.family()))
}

/// A host with one machine that listens at `PORT`; `listen` makes it, at each start.
pub(crate) fn serve<M>(
    sim: &mut Sim,
    name: &str,
    listen: impl Fn(SocketAddr, &mut EarlyScope<'_>) -> Response<M> + Copy + 'static,
) -> Result<Host<Watched<M>>, BoxError>
where
    M: Machine<Context: Default> + 'static,
{
    serve_on::<Bytes, M>(sim, name, listen)
}

/// The same on any ground.
pub(crate) fn serve_on<G: Ground, M>(
    sim: &mut Sim,
    name: &str,
    listen: impl Fn(SocketAddr, &mut EarlyScope<'_>) -> Response<M> + Copy + 'static,
) -> Result<Host<Watched<M>>, BoxError>
where
    M: Machine<Context: Default> + 'static,
{
    let host = sim.host(name, move |boot| {
        let mut creator = G::new_loop(boot)?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| Watched::make(scope, |scope| listen(address, scope)))?;
        Ok(creator.instantiate(M::Context::default()))
    })?;
    Ok(host)
}

/// Listens with an `Accept` of the usual limits.
pub(crate) fn accept<M, L>(
    address: &L::Address,
    shared: M::Shared,
    scope: &mut EarlyScope<'_>,
) -> Response<Accept<M, L>>
where
    M: Accepted<L::Socket>,
    L: Listener,
{
    Accept::bind(address, &ListenOptions::new(), shared, AcceptConfig::new(), scope)
}

/// The clients of a scenario, on a host that is no part of what is tested: nothing there crashes or
/// panics.
pub(crate) struct Clients<S: StreamSocket> {
    host: Host<ScriptClient<S, ()>>,
    target: SocketAddr,
    transcripts: Vec<TranscriptHandle>,
}

impl<S: StreamSocket<Target = SocketAddr>> Clients<S> {
    /// Of what listens at `PORT`.
    pub(crate) fn of<M>(sim: &mut Sim, server: Host<M>) -> Result<Clients<S>, BoxError> {
        Clients::at(sim, server, PORT)
    }

    pub(crate) fn at<M>(sim: &mut Sim, server: Host<M>, port: u16) -> Result<Clients<S>, BoxError> {
        Clients::on::<Bytes, M>(sim, server, port)
    }

    /// On any ground, whose sockets they have.
    pub(crate) fn on<G: Ground, M>(
        sim: &mut Sim,
        server: Host<M>,
        port: u16,
    ) -> Result<Clients<S>, BoxError> {
        let faults = sim.faults();
        sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
        let host = sim.host("clients", |boot| Ok(G::new_loop(boot)?.instantiate(())))?;
        sim.set_faults(faults);
        sim.protect(host);
        let target = SocketAddr::new(sim.address(server), port);
        Ok(Clients { host, target, transcripts: Vec::new() })
    }

    /// A client that plays the script.
    pub(crate) fn add(&mut self, sim: &mut Sim, script: Script) -> TranscriptHandle {
        let (client, transcript) = script.client(self.target);
        let added = sim.with(self.host, |instance| {
            instance.add_machine_with(|scope| client.start(scope)).is_ok()
        });
        assert_eq!(added, Some(true), "the clients' host is up and has room");
        self.transcripts.push(transcript.clone());
        transcript
    }

    /// Nothing passes between them and the server from now on.
    pub(crate) fn cut_off<M>(&self, sim: &mut Sim, server: Host<M>) {
        sim.partition(self.host, server);
    }

    /// Ends the faults and waits until all scripts are played, to their end.
    pub(crate) fn assert_all_complete(&self, sim: &mut Sim) -> Result<(), BoxError> {
        let have_ended = |_: &mut Sim| self.transcripts.iter().all(TranscriptHandle::has_ended);
        sim.eventually(RECOVERY_TIME, have_ended)?;
        for (number, transcript) in self.transcripts.iter().enumerate() {
            match transcript.read().outcome {
                Some(Ok(())) => {}
                other => return Err(format!("client {number}: {other:?}").into()),
            }
        }
        Ok(())
    }
}

/// Things go wrong for a while; then they end, all scripts are played, and the server's loop ends.
pub(crate) fn play<M, S>(
    sim: &mut Sim,
    server: Host<M>,
    clients: &Clients<S>,
) -> Result<(), BoxError>
where
    S: StreamSocket<Target = SocketAddr>,
{
    sim.run_for(FAULTY)?;
    heal(sim, server)?;
    clients.assert_all_complete(sim)?;
    drain(sim, server)
}

/// Ends the faults; a host whose listener may have panicked starts again, as whoever looks after it
/// would have it.
pub(crate) fn heal<M>(sim: &mut Sim, host: Host<M>) -> Result<(), BoxError> {
    sim.heal();
    if sim.fault_count(Fault::HandlerPanics) > 0 {
        sim.crash(host, Crash::Process);
        sim.restart(host)?;
    }
    Ok(())
}

/// The loop of a host ends, and nothing is left of it. What was said was said: no connection is
/// dropped at the end.
pub(crate) fn drain<M>(sim: &mut Sim, host: Host<M>) -> Result<(), BoxError> {
    sim.drain(host, Duration::from_secs(120))?;
    Ok(())
}
