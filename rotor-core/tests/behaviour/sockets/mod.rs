//! The kernel's sockets, made through the scope by machines that are generic over them.

mod connecting;
mod conversing;
mod datagrams;
mod dropping;
mod files;
mod listeners;
mod properties;
mod wrapped;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use rotor_core::net::Listener;
use rotor_core::{Config, EarlyScope, Loop, Response};
use socket2::{Domain, Socket, Type};

use crate::actor::{Actor, idle};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog";

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A directory of one test, which is removed with all that is in it when the test ends, well or
/// badly.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rotor-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst));
        // Short: the path of a Unix socket has about a hundred bytes.
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("nobody else has such a number");
        Directory(path)
    }

    /// The path of this name, with nothing there.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn address(&self, name: &str) -> unix::SocketAddr {
        unix::SocketAddr::from_pathname(self.path(name)).expect("it is a path")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs something with the scope of a machine on the default backend.
fn with_scope<T>(ask: impl FnOnce(&mut EarlyScope<'_>) -> T) -> T {
    let mut answer = None;
    let mut creator = Loop::<Actor<()>>::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(idle())
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

/// An address where nobody listens, and what keeps its port from others, who might.
fn closed() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("descriptors are left");
    socket.bind(&local().into()).expect("a port is free");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    (socket, address.expect("it is bound"))
}

/// The next connection of a listener that somebody is connecting to.
fn accept<L: Listener>(listener: &mut L) -> L::Socket {
    loop {
        match listener.accept() {
            Ok((socket, _)) => return socket,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}
