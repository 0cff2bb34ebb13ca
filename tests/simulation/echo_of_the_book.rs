//! The echo of the book's chapter on the loop: a receive that a signal interrupts does not end it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{
    BoxError, EventSet, Infallible, Interest, Machine, Response, Scope, Source,
    rotor_forward_source,
};
use rotor_sim::net::SimUdpSocket;
use rotor_sim::{Check, Fault, Faults, Sim};

use crate::stage::{self, PORT};

/// Sent in one burst, so that a datagram that one event leaves behind would never be received.
const DATAGRAMS: u64 = 20;

/// What the machines of this loop share.
#[derive(Default)]
struct Totals {
    datagrams: u64,
}

/// Sends each datagram back.
struct Echo<S> {
    socket: S,
}

impl<S: DatagramSocket> Machine for Echo<S> {
    type Context = Totals;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Totals>) -> Response<Self, Infallible> {
        let mut buffer = [0; 1500];
        for _ in 0..32 {
            match self.socket.receive_from(&mut buffer) {
                Ok((len, peer)) => {
                    scope.datagrams += 1; // the scope derefs to the context
                    let _no_room = self.socket.send_to(&buffer[..len], &peer);
                }
                // Nothing left: wait for the next event.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Response::keep(self),
                Err(_) => {} // a signal, or a datagram sent earlier met nobody: there may be more
            }
        }
        Response::again(self) // others first, then the rest
    }
}

/// Sends again what a signal has interrupted, which would otherwise be lost.
pub(crate) fn send_despite_signals(
    socket: &mut SimUdpSocket,
    datagram: &[u8],
    target: &SocketAddr,
) -> io::Result<usize> {
    loop {
        match socket.send_to(datagram, target) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A socket that loses nothing that it sends.
struct Resending(SimUdpSocket);

impl Source for Resending {
    rotor_forward_source!(0);
}

impl DatagramSocket for Resending {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<Resending> {
        SimUdpSocket::bind(address, scope).map(Resending)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.receive_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        send_despite_signals(&mut self.0, datagram, target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }
}

/// Sends all its datagrams, and counts those that come back.
struct Sender(SimUdpSocket, SocketAddr);

impl Machine for Sender {
    type Context = Totals;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Totals>) -> Response<Self, Infallible> {
        loop {
            match self.0.receive_from(&mut [0; 16]) {
                Ok(_) => scope.datagrams += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Response::keep(self),
                Err(_) => {}
            }
        }
    }

    fn timeout(mut self, _: &mut Scope<'_, Totals>) -> Response<Self, Infallible> {
        for number in 0..DATAGRAMS {
            let sent = send_despite_signals(&mut self.0, &number.to_be_bytes(), &self.1);
            if let Err(error) = sent {
                return Response::error(error);
            }
        }
        Response::keep(self)
    }
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    sim.set_faults(Faults::none().set(Fault::Interrupted, 0.5).set(Fault::UnarmedEdgeLost, 1.0));
    let server = stage::serve(sim, "server", |address, scope| {
        Response::attempt(|| {
            let mut socket = Resending::bind(&address, scope)?;
            scope.register(&mut socket, Interest::Readable)?;
            Ok(Response::ok(Echo { socket }))
        })
    })?;
    let target = SocketAddr::new(sim.address(server), PORT);
    let sender = sim.host("sender", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), 0);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let mut socket = SimUdpSocket::bind(&address, scope)?;
                scope.register(&mut socket, Interest::Readable)?;
                Ok(Response::ok(Sender(socket, target)).deadline(scope.now()))
            })
        })?;
        Ok(creator.instantiate(Totals::default()))
    })?;
    sim.run_for(Duration::from_secs(10))?;
    let received = sim.with(server, |instance| instance.context().datagrams).ok_or("it is up")?;
    let came_back = sim.with(sender, |instance| instance.context().datagrams).ok_or("it is up")?;
    if (received, came_back) != (DATAGRAMS, DATAGRAMS) {
        return Err(
            format!("{received} of {DATAGRAMS} were received, {came_back} came back").into()
        );
    }
    if sim.fault_count(Fault::Interrupted) == 0 {
        return Err("nothing was interrupted".into());
    }
    Ok(())
}

#[test]
fn an_interrupted_receive_loses_nothing() {
    Check::new().seeds(10).calm().run(scenario);
}

/// The code tested above is the code that readers of the book and of the core's front page copy.
#[test]
fn the_machine_tested_here_is_that_of_the_documents() {
    let receiving = include_str!("echo_of_the_book.rs");
    let begin = receiving.find("impl<S: DatagramSocket> Machine for Echo<S>").expect("it is above");
    let end = begin + receiving[begin..].find("\n}\n").expect("it ends");
    let book = include_str!("../../doc/guide/loop.md");
    assert!(book.contains(&receiving[begin..end]), "doc/guide/loop.md has another Echo");
}
