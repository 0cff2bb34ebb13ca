//! Simulated hosts with the echo server and with its clients.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{BoxError, Response};
use rotor_sim::net::{SimNet, SimTcpListener, SimTcpStream};
use rotor_sim::{Fault, Host, Script, ScriptClient, Sim, TranscriptHandle, Watched};

#[path = "echo.rs"]
mod machine;

pub(crate) use machine::{Echo, OUTPUT_MAX};

const PORT: u16 = 7;

pub(crate) type Server = Watched<Echo<SimNet>>;
pub(crate) type Client = Watched<ScriptClient<SimTcpStream, ()>>;

pub(crate) fn add_server(sim: &mut Sim) -> Result<Host<Server>, BoxError> {
    let server = sim.host("server", |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| {
            let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope);
            Watched::make(scope, |scope| match listener {
                Ok(listener) => Echo::listen(listener, scope),
                Err(error) => Response::error(error),
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    sim.always("output is bounded", move |sim| {
        let most = sim.machines(server, |_, machine| match machine.machine() {
            Echo::Listener(_) => 0,
            Echo::Connection(connection) => connection.output.len(),
        });
        if most.iter().all(|bytes| *bytes <= OUTPUT_MAX) {
            Ok(())
        } else {
            Err(format!("{most:?} bytes"))
        }
    });
    Ok(server)
}

/// A host of clients, each of which plays the script for its number.
pub(crate) fn add_clients(
    sim: &mut Sim,
    server: Host<Server>,
    count: u8,
    script: impl Fn(u8) -> Script,
) -> Result<(Host<Client>, Vec<TranscriptHandle>), BoxError> {
    let clients = sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(())))?;
    // Their host is not under test: it must exist at the end for the clients to have been answered.
    sim.protect(clients);
    let target = SocketAddr::new(sim.address(server), PORT);
    let mut transcripts = Vec::new();
    for number in 0..count {
        let (client, transcript) = script(number).client(target);
        let added = sim.with(clients, |instance| {
            instance.add_machine_with(|scope| Watched::make(scope, |scope| client.start(scope)))
        });
        if matches!(added, Some(Ok(_))) {
            transcripts.push(transcript);
        }
    }
    Ok((clients, transcripts))
}

pub(crate) fn script(number: u8) -> Script {
    let line = vec![b'a' + number % 26; 1 + usize::from(number) * 37];
    let mut script = Script::new().attempts(1000).patience(Duration::from_secs(20));
    for _ in 0..5 {
        script = script.send(&line).expect(&line).pause(Duration::from_millis(100));
    }
    script.shutdown().expect_end()
}

/// All clients are answered and the server ends cleanly, whatever happens before the network heals.
pub(crate) fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    // A panic in a client's machine would lose that client for good.
    let faults = sim.faults();
    sim.set_faults(faults.set(Fault::HandlerPanics, 0.0));
    let server = add_server(sim)?;
    let (_, transcripts) = add_clients(sim, server, 8, script)?;
    sim.run_for(Duration::from_secs(30))?;
    sim.eventually(Duration::from_secs(600), |_| {
        transcripts.iter().all(TranscriptHandle::has_ended)
    })?;
    for transcript in &transcripts {
        assert_eq!(transcript.read().outcome, Some(Ok(())));
    }
    sim.drain(server, Duration::from_secs(90))?;
    Ok(())
}
