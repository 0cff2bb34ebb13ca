//! `Statsd`: the socket to which programs report. It is one machine, however many programs there
//! are.

use std::io::{self, ErrorKind};

use rotor::net::DatagramSocket;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope, Time};

use super::machine::Shared;

/// The maximum length of a UDP datagram, so that none is truncated and no line misread.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// How many datagrams are processed before other machines have their turn.
const DATAGRAMS_PER_EVENT: u32 = 64;

pub(crate) struct Statsd<D> {
    socket: D,
    buffer: Box<[u8]>,
}

impl<D: DatagramSocket> Statsd<D> {
    /// Receives datagrams on an open socket.
    pub(crate) fn new<C>(mut socket: D, scope: &Scope<'_, C>) -> io::Result<Statsd<D>> {
        scope.register(&mut socket, Interest::Readable)?;
        Ok(Statsd { socket, buffer: vec![0; DATAGRAM_BYTES_MAX].into() })
    }
}

impl<D: DatagramSocket> Machine for Statsd<D> {
    type Context = Shared;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        for _ in 0..DATAGRAMS_PER_EVENT {
            match self.socket.receive_from(&mut self.buffer) {
                Ok((length, _)) => scope.stats.take(&self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Response::ok(self),
                Err(_) => {} // a signal, as a rule: more may be waiting
            }
        }
        Response::again(self)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        Response::done()
    }
}
