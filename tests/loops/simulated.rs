//! The simulator: one host that connects to itself, without faults, in virtual time.

use std::any::Any;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Config, Exit, Loop, LoopInstance, Response};
use rotor_sim::net::{SimNet, SimTcpListener, SimTcpStream};
use rotor_sim::{Host, Sim, SimBackend};

use super::{End, OnLoop, TestMachine, local};

pub(crate) struct Simulated;

pub(crate) struct Running<M: TestMachine> {
    sim: Sim,
    host: Host<M>,
}

impl OnLoop for Simulated {
    type Backend = SimBackend;
    type Net = SimNet;
    type End = SimTcpStream;
    type PeerListener = SimTcpListener;
    type Running<M: TestMachine> = Running<M>;

    const TURNS_MAX: u32 = 1_000_000;

    fn open<M: TestMachine>(config: &Config, context: M::Context) -> Running<M> {
        let mut sim = Sim::new(1);
        let (config, mut context) = (config.clone(), Some(context));
        let host = sim.host("the host of the test", move |boot| {
            let creator = Loop::with_backend(boot.backend(), &config)?;
            Ok(creator.instantiate(context.take().expect("it starts once")))
        });
        Running { host: host.expect("it starts"), sim }
    }

    fn with<M: TestMachine, R>(
        running: &mut Running<M>,
        ask: impl FnOnce(&mut LoopInstance<M, SimBackend>) -> R,
    ) -> R {
        running.sim.with(running.host, ask).expect("it is up")
    }

    fn turn<M: TestMachine>(running: &mut Running<M>) -> Option<Exit> {
        running.sim.run_for(Duration::from_micros(100)).expect("all properties hold");
        running.sim.exit(running.host)
    }

    fn connect<M: TestMachine>(running: &mut Running<M>, to: SocketAddr) -> SimTcpStream {
        let mut socket = None;
        Self::with(running, |instance| {
            let _done = instance.add_machine_with(|scope| {
                socket = SimTcpStream::connect(&to, scope).ok();
                Response::done()
            });
        });
        socket.expect("it only begins to connect")
    }

    fn peer_listener<M: TestMachine>(running: &mut Running<M>) -> (SimTcpListener, SocketAddr) {
        let mut door = None;
        Self::with(running, |instance| {
            let _done = instance.add_machine_with(|scope| {
                door = SimTcpListener::bind(&local(), &ListenOptions::new(), scope).ok();
                Response::done()
            });
        });
        let door = door.expect("a port is free");
        let address = door.local_address().expect("it is bound");
        (door, address)
    }

    fn accept_peer(door: &mut SimTcpListener) -> io::Result<SimTcpStream> {
        door.accept().map(|(end, _)| end)
    }

    fn closed() -> (Box<dyn Any>, SocketAddr) {
        (Box::new(()), SocketAddr::from(([127, 0, 0, 1], 9)))
    }

    fn silent() -> (Box<dyn Any>, SocketAddr) {
        // No host has this address.
        (Box::new(()), SocketAddr::from(([10, 9, 9, 9], 9)))
    }
}

impl End for SimTcpStream {
    fn has_connected(&mut self) -> io::Result<bool> {
        StreamSocket::has_connected(self)
    }

    fn end(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}
