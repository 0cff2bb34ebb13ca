//! What a script's client does when its peer does nothing.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_sim::net::SimTcpStream;
use rotor_sim::{Failure, Script, ScriptClient, Sim};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_attempt_that_hears_nothing_at_all_ends_with_its_patience() -> Result<(), Failure> {
    for attempts in 1..=3 {
        let mut sim = Sim::new(1);
        let host =
            sim.host("client", |boot| Ok(boot.new_loop::<ScriptClient<_, _>>()?.instantiate(())))?;
        // No host has this address: connecting alone takes 127 s, and no edge comes before.
        let nobody: SocketAddr = "10.9.9.9:80".parse().expect("an address");
        let script = Script::new().expect(b"hello").patience(10 * SECOND).attempts(attempts);
        let (client, transcript) = script.client::<SimTcpStream, ()>(nobody);
        sim.with(host, |instance| {
            instance.add_machine_with(|scope| client.start(scope)).expect("there is room");
        });
        sim.run_for(10 * SECOND * attempts - SECOND)?;
        assert_eq!(transcript.read().outcome, None, "{attempts} attempts");
        // Between two attempts there is half a second.
        sim.run_for(3 * SECOND)?;
        let ended = transcript.read();
        assert_eq!(ended.outcome, Some(Err("it took too long".into())), "{attempts} attempts");
        assert_eq!(ended.attempts, attempts);
    }
    Ok(())
}
