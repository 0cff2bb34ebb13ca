//! A socket that sends each datagram back to its sender. It is one machine, however many peers
//! there are.

use std::io::{self, ErrorKind};

use rotor::net::DatagramSocket;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope, Time};

/// The maximum length of a UDP datagram, so that none is truncated.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// How many datagrams are sent back before other machines of the loop have their turn.
const DATAGRAMS_PER_EVENT: u32 = 64;

pub(crate) struct UdpEcho<D: DatagramSocket> {
    socket: D,
    buffer: Box<[u8]>,
    /// A datagram in the buffer that could not be sent yet, because the system had no room for it:
    /// its length, and its target.
    unsent: Option<(usize, D::Address)>,
}

impl<D: DatagramSocket> UdpEcho<D> {
    pub(crate) fn new<C>(mut socket: D, scope: &Scope<'_, C>) -> io::Result<UdpEcho<D>> {
        scope.register(&mut socket, Interest::Both)?;
        Ok(UdpEcho { socket, buffer: vec![0; DATAGRAM_BYTES_MAX].into(), unsent: None })
    }

    /// Sends the datagram in the buffer. Returns an error only if that may be tried again. A
    /// datagram that cannot be sent at all (there is no route to its sender, or it gave port 0) is
    /// lost, as usual with UDP.
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
        // The waiting datagram is sent first: there is one buffer, and the next datagram would
        // overwrite it.
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
                // A signal, or the error of a datagram that was sent earlier: more may be waiting.
                Err(_) => {}
            }
        }
        Response::again(self)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }
}
