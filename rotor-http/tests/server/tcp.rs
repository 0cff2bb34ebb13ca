//! The server on the kernel's sockets, in the thread of the test: a client writes, the loop gets a
//! turn.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopInstance, Response};
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};

use crate::probe::{Probe, Seen};

pub(crate) struct TcpServer {
    pub(crate) instance: LoopInstance<HttpAccept<Probe, TcpListener>>,
    pub(crate) address: SocketAddr,
}

impl TcpServer {
    pub(crate) fn new(config: ServerConfig) -> TcpServer {
        let of_loop = Config::new().machines_max(5_000);
        let mut creator = Loop::<HttpAccept<Probe, TcpListener>>::new(&of_loop).expect("a loop");
        let mut address = None;
        let seed = HttpSeed::new((), config);
        creator
            .add_machine_with(|scope| {
                Response::attempt(|| {
                    let listener =
                        TcpListener::bind(&"127.0.0.1:0".parse()?, &ListenOptions::new(), scope)?;
                    address = listener.local_address();
                    Ok(server::listen(listener, seed, scope))
                })
            })
            .expect("a listener");
        let address = address.expect("a TCP listener has an address");
        TcpServer { instance: creator.instantiate(Seen::default()), address }
    }

    pub(crate) fn connect(&mut self) -> StdStream {
        let client = StdStream::connect(self.address).expect("the listener listens");
        client.set_nonblocking(true).expect("a socket that does not block");
        client.set_nodelay(true).expect("an option");
        client
    }

    pub(crate) fn turn(&mut self, wait: Duration) {
        self.instance.turn(Some(wait)).expect("a turn");
    }

    /// Writes in pieces of so many bytes, with a turn of the loop after each. A server that has
    /// closed takes no more.
    pub(crate) fn write(&mut self, client: &mut StdStream, mut bytes: &[u8], piece: usize) {
        while !bytes.is_empty() {
            match client.write(&bytes[..piece.min(bytes.len())]) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
            self.turn(Duration::ZERO);
        }
    }

    /// Ends the client's side and reads to the end of the server's.
    pub(crate) fn finish(&mut self, client: &mut StdStream) -> Vec<u8> {
        let _closed_already = client.shutdown(Shutdown::Write);
        self.read_to_end(client)
    }

    pub(crate) fn read_to_end(&mut self, client: &mut StdStream) -> Vec<u8> {
        let mut got = Vec::new();
        let mut chunk = [0; 16_384];
        loop {
            match client.read(&mut chunk) {
                Ok(0) => return got,
                Ok(count) => got.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.turn(Duration::from_millis(5))
                }
                Err(error) => panic!("{error} after {}", got.escape_ascii()),
            }
        }
    }

    /// What the server answers to these bytes and the end of the stream.
    pub(crate) fn ask(&mut self, bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut client = self.connect();
        self.write(&mut client, bytes, piece);
        self.finish(&mut client)
    }
}
