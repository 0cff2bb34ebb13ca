//! The setup of each scenario: a host with a server, a host with scripted clients, and the same
//! final checks for all.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::{ListenOptions, Listener, StreamSocket};
use rotor::stream::{Accept, AcceptConfig, Accepted};
use rotor::{BoxError, EarlyScope, Machine, Response};
use rotor_sim::{
    Check, Crash, Family, Fault, Host, Script, ScriptClient, Sim, TranscriptHandle, Watched,
};

use crate::ground::{Bytes, Ground};

/// The number of seeds of each scenario, unless `ROTOR_SIM_SEEDS` is set.
pub(crate) const SEEDS: u64 = 10;

/// How long faults strike.
pub(crate) const FAULTY: Duration = Duration::from_secs(20);

/// How long recovery may take afterwards. The longest part is an attempt to connect that nobody
/// answers (127 s), after the timeout of a proxy or a server.
const RECOVERY_TIME: Duration = Duration::from_secs(900);

pub(crate) const PORT: u16 = 80;

/// A script that is repeated until it completes.
pub(crate) fn persistent_script() -> Script {
    Script::new().attempts(10_000).patience(Duration::from_secs(90))
}

/// A pause between two requests, so that most of what a client does happens while faults strike.
/// Without it the scripts would complete within milliseconds, before any crash or partition.
pub(crate) fn think_time(number: u32, request: u32) -> Duration {
    Duration::from_millis(u64::from(number * 631 + request * 1_373) % 3_000)
}

/// Limits of a listener whose clients should complete in one connection, with a [pause](think_time)
/// between requests. With the default limits and more clients than slots, a connection would be
/// closed in each pause, to make room for waiting clients.
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

/// A host with one machine that listens at `PORT`. `listen` creates the machine at each start.
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

/// The same, on any kind of network.
pub(crate) fn serve_on<G: Ground, M>(
    sim: &mut Sim,
    name: &str,
    listen: impl Fn(SocketAddr, &mut EarlyScope<'_>) -> Response<M> + Copy + 'static,
) -> Result<Host<Watched<M>>, BoxError>
where
    M: Machine<Context: Default> + 'static,
{
    let seed = sim.seed();
    let host = sim.host(name, move |boot| {
        let mut creator = G::new_loop(boot)?;
        let address = SocketAddr::new(G::server_address(boot.address(), seed), PORT);
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

/// The clients of a scenario. Their host is not under test: it never crashes or panics.
pub(crate) struct Clients<S: StreamSocket> {
    host: Host<ScriptClient<S, ()>>,
    target: SocketAddr,
    transcripts: Vec<TranscriptHandle>,
}

impl<S: StreamSocket<Target = SocketAddr>> Clients<S> {
    /// Clients of the server at `PORT`.
    pub(crate) fn of<M>(sim: &mut Sim, server: Host<M>) -> Result<Clients<S>, BoxError> {
        Clients::at(sim, server, PORT)
    }

    pub(crate) fn at<M>(sim: &mut Sim, server: Host<M>, port: u16) -> Result<Clients<S>, BoxError> {
        Clients::on::<Bytes, M>(sim, server, port)
    }

    /// Clients on any kind of network, with its sockets.
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
        let address = G::server_address(sim.address(server), sim.seed());
        let target = SocketAddr::new(address, port);
        Ok(Clients { host, target, transcripts: Vec::new() })
    }

    /// Adds a client that plays the script.
    pub(crate) fn add(&mut self, sim: &mut Sim, script: Script) -> TranscriptHandle {
        let (client, transcript) = script.client(self.target);
        let added = sim.with(self.host, |instance| {
            instance.add_machine_with(|scope| client.start(scope)).is_ok()
        });
        assert_eq!(added, Some(true), "the clients' host is up and has room");
        self.transcripts.push(transcript.clone());
        transcript
    }

    /// Partitions the clients from the server from now on.
    pub(crate) fn cut_off<M>(&self, sim: &mut Sim, server: Host<M>) {
        sim.partition(self.host, server);
    }

    /// Ends the faults and waits until all scripts have completed.
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

/// Faults strike for a while. Then they end, all scripts complete, and the server's loop ends.
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

/// Ends the faults. A host whose listener may have panicked is restarted, as its operator would do.
pub(crate) fn heal<M>(sim: &mut Sim, host: Host<M>) -> Result<(), BoxError> {
    sim.heal();
    if sim.fault_count(Fault::HandlerPanics) > 0 {
        sim.crash(host, Crash::Process);
        sim.restart(host)?;
    }
    Ok(())
}

/// Drains the loop of a host. No connection may be dropped at the end.
pub(crate) fn drain<M>(sim: &mut Sim, host: Host<M>) -> Result<(), BoxError> {
    sim.drain(host, Duration::from_secs(120))?;
    Ok(())
}
