//! `HealthPort`: a port only for probes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{BoxError, Config, Loop, LoopHandle, LoopInstance, Response as MachineResponse};

use super::answers::{Health, HealthServer};
use crate::limits::Limits;
use crate::server::{HttpAccept, HttpSeed, ServerConfig, listen};

/// The maximum number of connections at a time; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may wait for a request. Usually each probe makes a new connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

type Port = LoopInstance<HttpAccept<HealthServer<()>, TcpListener>>;

/// A port only for probes, with a thread and a loop of its own. It is closed when this value is
/// dropped.
///
/// It does not drain: until the end, probes are told that the process is about to end.
#[must_use = "the port is closed when it is dropped"]
pub struct HealthPort {
    address: SocketAddr,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Health {
    /// Responds to probes at an address, on a separate thread.
    ///
    /// # Errors
    ///
    /// If the address is in use or does not belong to this computer, or if no thread or descriptor
    /// is left.
    // Inlined, like `open`, so that its server is compiled only where this is called, and not in
    // every program that uses HTTP (decision 54).
    #[inline]
    pub fn serve_at(&self, address: SocketAddr) -> io::Result<HealthPort> {
        let (sender, receiver) = mpsc::channel();
        let health = self.clone();
        let serve = move || match open(health, address) {
            Ok((mut port, address)) => {
                // The caller is still waiting for this.
                let _is_awaited = sender.send(Ok((address, port.handle())));
                drop(sender);
                if let Err(error) = port.run() {
                    log::error!("probes are not answered any more: {error}");
                }
            }
            Err(error) => {
                let _is_awaited = sender.send(Err(error));
            }
        };
        let thread = Builder::new().name("health".into()).spawn(serve)?;
        let (address, handle) =
            receiver.recv().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))?;
        Ok(HealthPort { address, handle, thread: Some(thread) })
    }
}

impl HealthPort {
    /// Returns the address, with the actual port if the system chose it.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }
}

#[inline]
fn open(health: Health, address: SocketAddr) -> io::Result<(Port, SocketAddr)> {
    let limits = Limits::new().idle_timeout(IDLE_TIMEOUT);
    let seed = HttpSeed::new(health, ServerConfig::new().limits(limits));
    let mut creator = Loop::new(&Config::new().machines_max(CONNECTIONS_MAX + 1))?;
    let mut bound = address;
    let created = creator.add_machine_with(|scope| {
        MachineResponse::attempt(|| -> Result<_, BoxError> {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            bound = listener.local_address().unwrap_or(address);
            Ok(listen(listener, seed, scope))
        })
    });
    created.map_err(io::Error::other)?;
    Ok((creator.instantiate(()), bound))
}

impl Drop for HealthPort {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed that.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for HealthPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HealthPort({})", self.address)
    }
}
