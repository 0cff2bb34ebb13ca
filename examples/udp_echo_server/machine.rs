//! A socket that sends each datagram back to where it came from: one machine, whatever the number
//! of peers.

use std::io::{self, ErrorKind};

use rotor::net::DatagramSocket;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope, Time};

/// The most that UDP can carry: no datagram is ever cut.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// How many datagrams are sent back before the other machines of the loop have their turn.
const DATAGRAMS_PER_EVENT: u32 = 64;

pub(crate) struct UdpEcho<D: DatagramSocket> {
    socket: D,
    buffer: Box<[u8]>,
    /// A datagram that is in the buffer, since the system has no room for it yet: its length, and
    /// where it goes.
    unsent: Option<(usize, D::Address)>,
}

impl<D: DatagramSocket> UdpEcho<D> {
    pub(crate) fn new<C>(mut socket: D, scope: &Scope<'_, C>) -> io::Result<UdpEcho<D>> {
        scope.register(&mut socket, Interest::Both)?;
        Ok(UdpEcho { socket, buffer: vec![0; DATAGRAM_BYTES_MAX].into(), unsent: None })
    }

    /// Sends back what is in the buffer. It is an error only when that may be tried again: a
    /// datagram that cannot go back at all (its sender has no route, or gave port 0) is the
    /// sender's loss, as in UDP everywhere.
    fn send(&mut self) -> io::Result<()> {
        let Some((length, target)) = self.unsent.take() else { return Ok(()) };
        match self.socket.send_to(&self.buffer[..length], &target) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.unsent = Some((length, target));
                Err(e)
            }
            Err(e) => {
                log::debug!("a datagram of {length} bytes was not sent back: {e}");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    fn receive_and_send(&mut self) -> io::Result<()> {
        // First what waits: there is one buffer, and the next datagram would take its place.
        self.send()?;
        self.unsent = Some(self.socket.receive_from(&mut self.buffer)?);
        self.send()
    }
}

impl<D: DatagramSocket> Machine for UdpEcho<D> {
    type Context = ();
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        for _ in 0..DATAGRAMS_PER_EVENT {
            match self.receive_and_send() {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Response::ok(self),
                // A signal, or news of a datagram that was sent earlier: more may be waiting.
                Err(_) => {}
            }
        }
        Response::again(self)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }
}
