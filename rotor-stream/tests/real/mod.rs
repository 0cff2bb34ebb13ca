//! Loops on kernel sockets, with the other end in the same thread: the loop runs a turn whenever
//! the other end would block.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use rotor_core::net::{ListenOptions, TcpListener, TcpStream};
use rotor_core::{Config, Loop, LoopInstance, Machine};
use rotor_stream::{Accept, AcceptConfig, Stream};

use crate::probe::{Log, Probe, Seed};

pub(crate) type Server = Accept<Stream<Probe, TcpStream>, TcpListener>;

/// How long a turn waits for something that is certain to come. No test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server of probes on its own port.
pub(crate) fn serve(seed: Seed) -> (LoopInstance<Server>, SocketAddr) {
    serve_with(Config::new(), AcceptConfig::new(), seed)
}

pub(crate) fn serve_with(
    config: Config,
    accept: AcceptConfig,
    seed: Seed,
) -> (LoopInstance<Server>, SocketAddr) {
    let mut creator = Loop::<Server>::new(&config).expect("a loop");
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    creator
        .add_machine_with(|scope| {
            Accept::bind(&address, &ListenOptions::new(), seed, accept, scope)
        })
        .expect("a listener");
    let mut instance = creator.instantiate(Log::new());
    let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
    (instance, address.expect("the listener has an address"))
}

#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
pub(crate) fn connect(address: SocketAddr) -> StdStream {
    let client = StdStream::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    client
}

/// Runs turns until `is_so` holds.
pub(crate) fn turn_until<M: Machine>(
    instance: &mut LoopInstance<M>,
    mut is_so: impl FnMut(&mut LoopInstance<M>) -> bool,
) {
    for _ in 0..100_000 {
        if is_so(instance) {
            return;
        }
        instance.turn(Some(PATIENCE)).expect("the loop goes on");
    }
    panic!("it does not come to that");
}

/// Runs turns until the other end has received this many bytes or, for `None`, everything up to
/// EOF.
pub(crate) fn receive<M: Machine>(
    instance: &mut LoopInstance<M>,
    client: &mut impl Read,
    count: Option<usize>,
) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    let mut chunk = vec![0; 256 * 1024];
    let mut patience = 1_000;
    while count.is_none_or(|count| got.len() < count) {
        match client.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => got.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock && patience > 0 => {
                patience -= 1;
                instance.turn(Some(Duration::from_millis(10)))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Sends a line and waits for its echo.
pub(crate) fn assert_echoes<M: Machine>(
    instance: &mut LoopInstance<M>,
    client: &mut (impl Read + Write),
) {
    client.write_all(b"hello\n").expect("it fits");
    assert_eq!(receive(instance, client, Some(6)).expect("an answer"), b"hello\n");
}
