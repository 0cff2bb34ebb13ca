//! The line protocol on a wrapping socket, at both ends: handshakes, records and key updates, cut
//! and lost anywhere.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::{ListenOptions, Listener};
use rotor::stream::{Accept, Stream};
use rotor::{BoxError, Scope, Source};
use rotor_sim::net::{SimTcpListener, SimTcpStream};

use crate::lines::{self, Lines};
use crate::stage::{self, Clients};
use rotor_sim::{Network, Sim};

#[path = "../../rotor-stream/tests/record/mod.rs"]
mod record;

use record::Record;

/// Wraps the sockets that another listener accepts. The server's side updates its key each time it
/// has sent `RECORDS` records.
pub(crate) struct RekeyingListener<L, const RECORDS: usize>(L);

impl<L: Source, const RECORDS: usize> Source for RekeyingListener<L, RECORDS> {
    rotor::rotor_forward_source!(0);
}

impl<L: Listener, const RECORDS: usize> Listener for RekeyingListener<L, RECORDS> {
    type Address = L::Address;
    type Socket = Record<L::Socket>;

    fn bind<C>(
        address: &L::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self> {
        L::bind(address, options, scope).map(RekeyingListener)
    }

    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)> {
        let (socket, peer) = self.0.accept()?;
        let server = Record::server(socket).with_read_max(64).change_key_after(RECORDS);
        Ok((server.with_signals().with_job(|| ()), peer))
    }

    fn has_waiting(&self) -> bool {
        self.0.has_waiting()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }
}

type Server<const RECORDS: usize> =
    Accept<Stream<Lines, Record<SimTcpStream>>, RekeyingListener<SimTcpListener, RECORDS>>;

fn scenario<const RECORDS: usize>(sim: &mut Sim, numbers: &[u32]) -> Result<(), BoxError> {
    let server = stage::serve::<Server<RECORDS>>(sim, "server", |address, scope| {
        stage::accept(&address, (), scope)
    })?;
    let mut clients = Clients::<Record<SimTcpStream>>::of(sim, server)?;
    for number in numbers {
        clients.add(sim, lines::script(*number));
    }
    stage::play(sim, server, &clients)
}

#[test]
fn every_line_is_echoed_in_records_once_the_network_heals() {
    stage::check(|sim| scenario::<{ usize::MAX }>(sim, &[0, 1, 2, 3, 4, 5]));
}

/// A side that has shut down cannot answer a key update, so these clients let the server end the
/// connection. With an update every thirty bytes, each update costs a round trip, so no script is
/// long.
#[test]
fn every_line_is_echoed_across_key_updates_once_the_network_heals() {
    stage::check(|sim| {
        let latency = Duration::from_micros(100)..Duration::from_millis(20);
        sim.set_network(Network::swarm(sim.seed()).latency(latency));
        scenario::<3>(sim, &[2, 3, 6, 7, 10, 11])
    });
}
