//! What only kernel sockets have: paths, descriptors, files sent by the kernel.

mod connecting;
mod datagrams;
mod dropping;
mod files;
mod into_std;
mod listeners;
mod properties;
mod streams;
mod wrapped;

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::ffi::OsString;
use std::io;
use std::os::unix::net as unix;
use std::path::PathBuf;

use rotor_core::net::Listener;
use rotor_core::{Config, EarlyScope, Response};
use rotor_test_kit::Directory;

use crate::actor::{Actor, idle};
use crate::loops::{OnKernel, TestMachine};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog";

/// A directory for the sockets of one test.
struct Paths(Directory);

impl Paths {
    fn new() -> Paths {
        Paths(Directory::create())
    }

    /// The path of this name; nothing exists there.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path that stands for a name in the abstract namespace, which no other test uses.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn abstract_path(&self, name: &str) -> PathBuf {
        let mut path = OsString::from("\0");
        path.push(self.path(name));
        path.into()
    }

    fn address(&self, name: &str) -> unix::SocketAddr {
        unix::SocketAddr::from_pathname(self.path(name)).expect("it is a path")
    }
}

/// Runs a closure with the scope of a machine.
fn with_scope<L: OnKernel, T>(ask: impl FnOnce(&mut EarlyScope<'_>) -> T) -> T {
    let mut answer = None;
    let mut creator = new_loop::<L, Actor<()>>();
    let made = creator.add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(idle())
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

fn new_loop<L: OnKernel, M: TestMachine>() -> rotor_core::Loop<M, <L as OnKernel>::Backend> {
    L::new_loop(&Config::new()).expect("there are descriptors")
}

/// Accepts the next connection, which must be on its way.
fn accept<L: Listener>(listener: &mut L) -> L::Socket {
    loop {
        match listener.accept() {
            Ok((socket, _)) => return socket,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}
