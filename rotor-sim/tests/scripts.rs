//! How a script's client behaves when its peer does nothing.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_sim::net::SimTcpStream;
use rotor_sim::property::HOST_WORKS;
use rotor_sim::{Failure, Fault, Faults, Script, ScriptClient, Sim};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_unanswered_attempt_ends_when_its_patience_expires() -> Result<(), Failure> {
    for attempts in 1..=3 {
        let mut sim = Sim::new(1);
        let host =
            sim.host("client", |boot| Ok(boot.new_loop::<ScriptClient<_, _>>()?.instantiate(())))?;
        // No host has this address: a connection attempt takes 127 s, and no edge comes before
        // that.
        let nobody: SocketAddr = "10.9.9.9:80".parse().expect("an address");
        let script = Script::new().expect(b"hello").patience(10 * SECOND).attempts(attempts);
        let (client, transcript) = script.client::<SimTcpStream, ()>(nobody);
        sim.with(host, |instance| {
            instance.add_machine_with(|scope| client.start(scope)).expect("there is room");
        });
        sim.run_for(10 * SECOND * attempts - SECOND)?;
        assert_eq!(transcript.read().outcome, None, "{attempts} attempts");
        // There is half a second between two attempts.
        sim.run_for(3 * SECOND)?;
        let ended = transcript.read();
        assert_eq!(ended.outcome, Some(Err("it took too long".into())), "{attempts} attempts");
        assert_eq!(ended.attempts, attempts);
    }
    Ok(())
}

/// More clients than a small slab has slots.
const MANY: usize = 20;

#[test]
fn a_host_of_clients_is_exempt_from_faults() -> Result<(), Failure> {
    let faults = Faults::none().set(Fault::SmallSlab, 1.0).set(Fault::Crash, 1.0);
    let nobody: SocketAddr = "10.9.9.9:80".parse().expect("an address");
    for seed in 0..5 {
        let mut sim = Sim::new(seed);
        sim.set_faults(faults.clone());
        let clients = sim.host_of_clients::<SimTcpStream>("clients")?;
        for _ in 0..MANY {
            sim.play(clients, Script::new().pause(100 * SECOND), nobody)?;
        }
        sim.run_for(60 * SECOND)?;
        assert_eq!(sim.machines(clients, |_, _| ()).len(), MANY, "seed {seed}");
        // On an ordinary host, clients may find no slot; there must not be one to wait for.
        let other = sim.host("other", |boot| {
            Ok(boot.new_loop::<ScriptClient<SimTcpStream, ()>>()?.instantiate(()))
        })?;
        let failure = (0..MANY)
            .find_map(|_| sim.play(other, Script::new(), nobody).err())
            .expect("its slab is small");
        assert_eq!(failure.property(), HOST_WORKS);
        assert!(failure.message().contains("no place"), "{}", failure.message());
    }
    Ok(())
}

#[test]
fn a_standstill_is_distinguished_from_a_slow_run() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let nobody: SocketAddr = "10.9.9.9:80".parse().expect("an address");
    let clients = sim.host_of_clients::<SimTcpStream>("clients")?;
    // Each attempt takes one second, and the next begins half a second later.
    let script = Script::new().expect(b"hello").patience(SECOND).attempts(20);
    let transcript = sim.play(clients, script, nobody)?;
    let busy = sim.run_until(10 * SECOND, |_| false).expect_err("it never holds");
    assert!(!busy.message().contains("nothing happens"), "{}", busy.message());
    let still = sim.run_until(100 * SECOND, |_| false).expect_err("it never holds");
    assert!(transcript.has_ended() && !transcript.is_done());
    assert!(still.message().contains("of which nothing happens"), "{}", still.message());
    Ok(())
}

#[test]
fn a_report_says_why_scripts_ended_early() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let nobody: SocketAddr = "10.9.9.9:80".parse().expect("an address");
    let clients = sim.host_of_clients::<SimTcpStream>("clients")?;
    sim.play(clients, Script::new().expect(b"hello").patience(SECOND), nobody)?;
    sim.play(clients, Script::new(), nobody)?;
    let failure = sim.run_until(10 * SECOND, |_| false).expect_err("it never holds").to_string();
    assert_eq!(
        failure.matches("a script of clients ended early: it took too long\n").count(),
        1,
        "{failure}"
    );
    Ok(())
}
