//! Stacks in a simulation: each host has one, and the network between them carries packets.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rotor_core::{Backend, EventSet, Time, Token, Wake};
use rotor_sim::{Boot, PacketPort, SimBackend};

use crate::backend::{Smoltcp, SmoltcpHandle};
use crate::clock::ManualClock;
use crate::config::StackConfig;
use crate::device::{Device, Medium};

/// The lengths of the prefixes of the network of all hosts, for IPv4 and for IPv6.
const PREFIXES: [u8; 2] = [8, 64];

/// The smallest MTU with which IPv6 works, in bytes (RFC 8200).
const MTU_MIN_V6: usize = 1_280;

impl Smoltcp {
    /// Makes the backend of a host of a simulation, with a TCP/IP stack. The packets of the host go
    /// through the simulation's network. That loses, duplicates, delays and changes packets, cuts
    /// hosts off, and resets connections, as the seed of the run determines.
    ///
    /// The stack has the addresses of the [host](PacketPort::addresses) besides those of `config`:
    /// the IPv6 address only if packets may be long enough (1,280 bytes). Its random numbers come
    /// from the simulation unless `config` has [a seed](StackConfig::seed). The simulation's own
    /// sockets work on the same loop.
    ///
    /// # Errors
    ///
    /// As for [`open`](Smoltcp::open).
    ///
    /// # Examples
    ///
    /// A server and its client on separate hosts, under twenty seeds:
    ///
    /// ```
    /// use std::io::Write;
    /// use std::net::SocketAddr;
    /// use std::time::Duration;
    ///
    /// use rotor::net::ListenOptions;
    /// use rotor::stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};
    /// use rotor::{Loop, Scope};
    /// use rotor_sim::Script;
    /// use rotor_smoltcp::{Smoltcp, SmoltcpTcpListener, SmoltcpTcpStream, StackConfig};
    ///
    /// # struct Echo;
    /// # impl Protocol for Echo {
    /// #     type Context = ();
    /// #     type Seed = ();
    /// #     fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
    /// #         Intent::of(Echo).bytes(1).no_deadline()
    /// #     }
    /// #     fn bytes_read(self, _: Matched, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
    /// #         if let Err(error) = transport.output.write_all(&transport.input[..]) {
    /// #             return Intent::error(error);
    /// #         }
    /// #         transport.input.clear();
    /// #         Intent::of(self).keep().no_deadline()
    /// #     }
    /// # }
    /// type Server = Accept<Stream<Echo, SmoltcpTcpStream>, SmoltcpTcpListener>;
    ///
    /// rotor_sim::check(|sim| {
    ///     let server = sim.host("server", |boot| {
    ///         let backend = Smoltcp::in_simulation(boot, &StackConfig::new())?;
    ///         let mut creator = Loop::<Server, _>::with_backend(backend, &boot.config())?;
    ///         let address = SocketAddr::new(boot.address(), 7);
    ///         creator.add_machine_with(|scope| {
    ///             Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
    ///         })?;
    ///         Ok(creator.instantiate(()))
    ///     })?;
    ///     let clients = sim.host("clients", |boot| {
    ///         let backend = Smoltcp::in_simulation(boot, &StackConfig::new())?;
    ///         Ok(Loop::with_backend(backend, &boot.config())?.instantiate(()))
    ///     })?;
    ///     sim.protect(clients);
    ///     let script = Script::new().send(b"hello").expect(b"hello").attempts(1_000);
    ///     let target = SocketAddr::new(sim.address(server), 7);
    ///     let (client, transcript) = script.client::<SmoltcpTcpStream, ()>(target);
    ///     sim.with(clients, |instance| instance.add_machine_with(|scope| client.start(scope)));
    ///     sim.run_for(Duration::from_secs(10))?;
    ///     sim.eventually(Duration::from_secs(600), |_| transcript.is_done())?;
    ///     Ok(())
    /// });
    /// ```
    pub fn in_simulation(boot: &Boot, config: &StackConfig) -> io::Result<SimBackend> {
        let port = boot.packet_port();
        let mut config = config.clone();
        for (address, prefix) in port.addresses().into_iter().zip(PREFIXES) {
            if address.is_ipv4() || port.mtu() >= MTU_MIN_V6 {
                config = config.address(address, prefix);
            }
        }
        config.seed = config.seed.or(Some(port.seed()));
        let clock = ManualClock::new();
        let stack = Smoltcp::in_virtual_time(SimulatedCard(port.clone()), &config, &clock)?;
        let alarms = clock.clone();
        boot.backend_around(SimulatedBackend { stack, clock, port }, move || alarms.next())
    }
}

/// A stack with the clock of its host.
struct SimulatedBackend {
    stack: Smoltcp,
    clock: ManualClock,
    port: PacketPort,
}

impl Backend for SimulatedBackend {
    type Handle = SmoltcpHandle;

    fn handle(&self) -> io::Result<SmoltcpHandle> {
        self.stack.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.stack.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.clock.set(self.port.now());
        self.stack.wait(until, ready)
    }

    fn may_have_more(&self) -> bool {
        self.stack.may_have_more()
    }

    fn full_waits(&self) -> usize {
        self.stack.full_waits()
    }

    fn has_unsent(&self) -> bool {
        self.stack.has_unsent()
    }
}

/// The network card of a simulated host.
struct SimulatedCard(PacketPort);

impl Device for SimulatedCard {
    fn name(&self) -> &str {
        "the simulated network"
    }

    fn medium(&self) -> Medium {
        Medium::Ip
    }

    fn mtu(&self) -> usize {
        self.0.mtu()
    }

    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        self.0.receive(packet).ok_or(io::ErrorKind::WouldBlock.into())
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl fmt::Debug for SimulatedCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
