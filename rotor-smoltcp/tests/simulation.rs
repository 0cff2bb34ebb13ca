//! Stacks on the hosts of a simulation. The bytes read are the bytes written, whatever happens to
//! packets; a connection survives what TCP survives; a lost connection is reported.
#![forbid(unsafe_code)]

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rotor::net::ListenOptions;
use rotor::stream::{
    Accept, AcceptConfig, Intent, Matched, Protocol, Stream, StreamConfig, Transport,
};
use rotor::{Backend, BoxError, Loop, Scope};
use rotor_sim::{
    Check, Crash, Family, Fault, Faults, Host, Network, Script, ScriptClient, Sim, TranscriptHandle,
};
use rotor_smoltcp::{Smoltcp, SmoltcpTcpListener, SmoltcpTcpStream, StackConfig};

/// Sends a long text for each line, and ends when its peer ends.
struct Texts;

const LEN: usize = 100_000;

/// Bytes whose values depend on their position.
fn text() -> Vec<u8> {
    (0..LEN).map(|byte| (byte % 251) as u8).collect()
}

impl Protocol for Texts {
    type Context = ();
    type Seed = ();

    /// TCP usually retries for longer than a stream waits for its output.
    fn config((): &()) -> Arc<StreamConfig> {
        StreamConfig::new().flush_timeout(Duration::from_secs(600)).share()
    }

    fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Texts).delimiter(b"\n", 80).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        line.consume(transport.input);
        match transport.output.write_all(&text()) {
            Ok(()) => Intent::of(self).delimiter(b"\n", 80).no_deadline(),
            Err(error) => Intent::error(error),
        }
    }
}

#[test]
fn a_stack_in_a_simulation_says_how_many_waits_its_packets_need() -> Result<(), BoxError> {
    Sim::new(1).host("a host", |boot| {
        let backend = Smoltcp::in_simulation(boot, &StackConfig::new().packets_max(100))?;
        assert_eq!(backend.full_waits(), 11, "for 1,024 packets");
        Ok(Loop::<Server, _>::with_backend(backend, &boot.config())?.instantiate(()))
    })?;
    Ok(())
}

type Server = Accept<Stream<Texts, SmoltcpTcpStream>, SmoltcpTcpListener>;
type Client = ScriptClient<SmoltcpTcpStream, ()>;

/// A server and a host for clients. The buffers are small, so that windows close.
fn hosts(sim: &mut Sim) -> Result<(Host<Server>, Host<Client>), BoxError> {
    let config = || StackConfig::new().receive_buffer_bytes(5_000).send_buffer_bytes(8_000);
    let server = sim.host("server", move |boot| {
        let backend = Smoltcp::in_simulation(boot, &config())?;
        let mut creator = Loop::<Server, _>::with_backend(backend, &boot.config())?;
        for any in ["0.0.0.0:7", "[::]:7"] {
            let Ok(address) = any.parse() else { return Err("an address".into()) };
            // The MTU may be too small for IPv6; binding succeeds nevertheless.
            let bound = creator.add_machine_with(|scope| {
                Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
            });
            bound?;
        }
        Ok(creator.instantiate(()))
    })?;
    let clients = sim.host("clients", move |boot| {
        let backend = Smoltcp::in_simulation(boot, &config())?;
        Ok(Loop::with_backend(backend, &boot.config())?.instantiate(()))
    })?;
    sim.protect(clients);
    Ok((server, clients))
}

fn play(
    sim: &mut Sim,
    clients: Host<Client>,
    target: IpAddr,
    script: Script,
) -> Result<TranscriptHandle, BoxError> {
    let (client, transcript) = script.client(SocketAddr::new(target, 7));
    let added = sim
        .with(clients, |instance| instance.add_machine_with(|scope| client.start(scope)).is_ok());
    if added == Some(true) { Ok(transcript) } else { Err("the clients' host has no room".into()) }
}

fn script() -> Script {
    Script::new().send(b"first\n").expect(&text()).send(b"second\n").expect(&text())
}

const SIX: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0xa00, 1));

#[test]
fn all_bytes_arrive_once_and_in_order_despite_packet_faults() {
    let rates = [
        (Fault::PacketLost, 0.1),
        (Fault::PacketTwice, 0.1),
        (Fault::PacketLate, 0.2),
        (Fault::PacketChanged, 0.05),
    ];
    for mtu in [576, 1_280, 65_535] {
        let check = Check::new().seeds(4).calm().must_strike(rates.map(|(fault, _)| fault));
        check.run(|sim| {
            sim.set_network(Network::new().mtu(mtu));
            sim.set_faults(
                rates
                    .iter()
                    .fold(Faults::none(), |faults, (fault, rate)| faults.set(*fault, *rate)),
            );
            let (server, clients) = hosts(sim)?;
            let four = sim.address(server);
            let targets = if mtu < 1_280 { vec![four] } else { vec![four, SIX] };
            for target in targets {
                // One attempt, since no connection is lost. But a segment that is lost several
                // times in a row is sent again after up to a minute each time (RFC 6298 §5).
                let script = script().shutdown().expect_end().patience(Duration::from_secs(3_000));
                let transcript = play(sim, clients, target, script)?;
                sim.run_until(Duration::from_secs(3_600), |_| transcript.has_ended())?;
                assert_eq!(transcript.read().outcome, Some(Ok(())));
            }
            Ok(())
        });
    }
}

#[test]
fn a_run_on_stacks_is_a_function_of_its_seed() {
    Check::new().seeds(6).twice().run(|sim| {
        let (server, clients) = hosts(sim)?;
        let target = sim.address(server);
        let transcript = play(sim, clients, target, script().attempts(1_000))?;
        sim.run_for(Duration::from_secs(10))?;
        sim.eventually(Duration::from_secs(900), |_| transcript.is_done())?;
        Ok(())
    });
}

#[test]
fn a_connection_survives_a_network_outage_of_a_minute() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    sim.set_network(Network::new().bandwidth(200_000));
    let (server, clients) = hosts(&mut sim)?;
    let target = sim.address(server);
    let transcript = play(&mut sim, clients, target, script())?;
    sim.run_for(Duration::from_millis(300))?;
    let came = transcript.read().received.len();
    assert!((1..LEN).contains(&came), "{came} bytes have come");
    sim.partition(server, clients);
    sim.run_for(Duration::from_secs(60))?;
    sim.join(server, clients);
    sim.run_until(Duration::from_secs(200), |_| transcript.is_done())?;
    assert_eq!(transcript.read().attempts, 1);
    Ok(())
}

/// The error of a client whose connection is lost to `fault`. Asserts that the server has only its
/// listeners left then.
fn outcome_of_lost_connection(
    at: Duration,
    fault: impl Fn(&mut Sim, Host<Server>) -> Result<(), BoxError>,
) -> Result<String, BoxError> {
    let mut sim = Sim::new(1);
    sim.set_network(Network::new().bandwidth(200_000));
    let (server, clients) = hosts(&mut sim)?;
    let target = sim.address(server);
    let pause = Duration::from_secs(2);
    let script = Script::new().send(b"first\n").expect(&text()).pause(pause);
    let script = script.send(b"second\n").expect(&text());
    let transcript = play(&mut sim, clients, target, script)?;
    sim.run_for(at)?;
    fault(&mut sim, server)?;
    sim.run_until(Duration::from_secs(30), |_| transcript.has_ended())?;
    sim.run_for(Duration::from_secs(60))?;
    assert_eq!(sim.machines(server, |_, _| ()).len(), 2, "the listeners are left");
    match transcript.read().outcome {
        Some(Err(error)) => Ok(error),
        other => Err(format!("{other:?}").into()),
    }
}

#[test]
fn a_reset_by_a_middlebox_is_reported_to_both_ends() -> Result<(), BoxError> {
    // In the middle of an answer.
    let error = outcome_of_lost_connection(Duration::from_millis(300), |sim, _| {
        sim.set_faults(Faults::none().set(Fault::MiddleBoxResets, 1.0));
        sim.run_for(Duration::from_secs(1))?;
        sim.set_faults(Faults::none());
        Ok(())
    })?;
    assert!(error.contains("reset"), "{error}");
    Ok(())
}

#[test]
fn a_send_to_a_restarted_host_reports_a_reset() -> Result<(), BoxError> {
    for how in [Crash::Process, Crash::Power] {
        // Before the second request.
        let error = outcome_of_lost_connection(Duration::from_millis(1_500), |sim, server| {
            sim.crash(server, how);
            sim.run_for(Duration::from_millis(100))?;
            Ok(sim.restart(server)?)
        })?;
        assert!(error.contains("reset"), "{error}");
    }
    Ok(())
}

/// All readiness faults except three. Two of these affect only the simulation's own sockets; for
/// stale edges, the simulation would have to know which machines gave their sockets away.
#[test]
fn stacks_work_with_late_duplicate_and_spurious_edges() {
    let others = [Fault::WouldBlock, Fault::UnarmedEdgeLost, Fault::StaleEdge];
    let of_edges = |fault: &Fault| fault.family() == Family::Readiness && !others.contains(fault);
    let faults = Fault::ALL.iter().copied().filter(of_edges);
    Check::new().seeds(10).must_strike(faults).run(|sim| {
        let (server, clients) = hosts(sim)?;
        let target = sim.address(server);
        let transcripts = (0..4)
            .map(|_| play(sim, clients, target, script().attempts(1_000)))
            .collect::<Result<Vec<_>, _>>()?;
        sim.run_for(Duration::from_secs(10))?;
        sim.eventually(Duration::from_secs(900), |_| {
            transcripts.iter().all(TranscriptHandle::is_done)
        })?;
        Ok(())
    });
}
