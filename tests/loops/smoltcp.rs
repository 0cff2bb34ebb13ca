//! smoltcp: a stack that connects to itself over a loopback device, in virtual time.

use std::any::Any;
use std::io;
use std::net::{Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Config, Exit, Loop, LoopInstance, Response};
use rotor_smoltcp::{
    ManualClock, MemoryConfig, MemoryDevice, Smoltcp, SmoltcpInet, SmoltcpTcpListener,
    SmoltcpTcpStream, StackConfig,
};

use super::{End, OnLoop, TestMachine, local};

pub(crate) struct OnSmoltcp;

pub(crate) struct Running<M: TestMachine> {
    instance: LoopInstance<M, Smoltcp>,
    clock: ManualClock,
}

impl OnLoop for OnSmoltcp {
    type Backend = Smoltcp;
    type Net = SmoltcpInet;
    type End = SmoltcpTcpStream;
    type PeerListener = SmoltcpTcpListener;
    type Running<M: TestMachine> = Running<M>;

    const TURNS_MAX: u32 = 1_000_000;

    fn open<M: TestMachine>(config: &Config, context: M::Context) -> Running<M> {
        let clock = ManualClock::new();
        let cable = MemoryConfig::new().clock(&clock);
        let device = MemoryDevice::loopback(&cable).expect("descriptors are left");
        let of_stack = StackConfig::new()
            .address(local().ip(), 8)
            .address(Ipv6Addr::LOCALHOST.into(), 128)
            .packets_max(config.events_len().min(256))
            .seed(1);
        let backend = Smoltcp::in_virtual_time(device, &of_stack, &clock).expect("it is in order");
        let creator = Loop::with_backend(backend, config).expect("there is memory");
        Running { instance: creator.instantiate(context), clock }
    }

    fn with<M: TestMachine, R>(
        running: &mut Running<M>,
        ask: impl FnOnce(&mut LoopInstance<M, Smoltcp>) -> R,
    ) -> R {
        ask(&mut running.instance)
    }

    fn turn<M: TestMachine>(running: &mut Running<M>) -> Option<Exit> {
        let exit = running.instance.turn(None).expect("the loop goes on");
        let end = running.clock.now() + Duration::from_micros(100);
        if !running.clock.step_until(end) {
            // Nothing is pending, but time must pass anyway.
            running.clock.advance(end - running.clock.now());
        }
        exit
    }

    fn connect<M: TestMachine>(running: &mut Running<M>, to: SocketAddr) -> SmoltcpTcpStream {
        let mut socket = None;
        let _done = running.instance.add_machine_with(|scope| {
            socket = SmoltcpTcpStream::connect(&to, scope).ok();
            Response::done()
        });
        socket.expect("it only begins to connect")
    }

    fn peer_listener<M: TestMachine>(running: &mut Running<M>) -> (SmoltcpTcpListener, SocketAddr) {
        let mut door = None;
        let _done = running.instance.add_machine_with(|scope| {
            door = SmoltcpTcpListener::bind(&local(), &ListenOptions::new(), scope).ok();
            Response::done()
        });
        let door = door.expect("a port is free");
        let address = door.local_address().expect("it is bound");
        (door, address)
    }

    fn accept_peer(door: &mut SmoltcpTcpListener) -> io::Result<SmoltcpTcpStream> {
        door.accept().map(|(end, _)| end)
    }

    fn closed() -> (Box<dyn Any>, SocketAddr) {
        (Box::new(()), SocketAddr::from(([127, 0, 0, 1], 9)))
    }

    fn silent() -> (Box<dyn Any>, SocketAddr) {
        // Packets to this address come back, and no socket receives them.
        (Box::new(()), SocketAddr::from(([127, 9, 9, 9], 9)))
    }
}

impl End for SmoltcpTcpStream {
    fn has_connected(&mut self) -> io::Result<bool> {
        StreamSocket::has_connected(self)
    }

    fn end(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}
