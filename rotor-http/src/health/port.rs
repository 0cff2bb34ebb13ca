//! `HealthPort`: a port only for probes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{
    BoxError, Config, Loop, LoopHandle, LoopInstance, Response as MachineResponse, with_causes,
};

use super::answers::{Health, HealthServer};
use crate::limits::Limits;
use crate::server::{HttpAccept, HttpSeed, ServerConfig, listen};

/// The maximum number of connections at a time; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may wait for a request. Usually each probe makes a new connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the last probes may take after the end of the service, if a successor has the port.
const LAST_PROBES_TIME_MAX: Duration = Duration::from_secs(1);

type Port = LoopInstance<HttpAccept<HealthServer<()>, TcpListener>>;

/// A port only for probes, with a thread and a loop of its own. It is closed when this value is
/// dropped.
///
/// It does not drain: until the end, probes are told that the process is about to end. Only if it
/// was [handed over](crate::server::Serve::health_at), it drains at once.
#[must_use = "the port is closed when it is dropped"]
pub struct HealthPort {
    address: SocketAddr,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Health {
    /// Responds to probes at an address, on a separate thread.
    ///
    /// In a hand-over both processes run for a while, so the next one cannot open the address of
    /// the last one: use [`Serve::health_at`](crate::server::Serve::health_at), which hands the
    /// port over.
    ///
    /// # Errors
    ///
    /// If the address is in use or does not belong to this computer, or if no thread or descriptor
    /// is left.
    // Inlined, like `open`, so that its server is compiled only where this is called, and not in
    // every program that uses HTTP (decision 54).
    #[inline]
    pub fn serve_at(&self, address: SocketAddr) -> io::Result<HealthPort> {
        self.serve_on(PortSource::Address(address))
    }

    #[inline]
    pub(crate) fn serve_on(&self, source: PortSource) -> io::Result<HealthPort> {
        let (sender, receiver) = mpsc::channel();
        let health = self.clone();
        let serve = move || match open(health, source) {
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

/// A port that [`Serve`](crate::server::Serve) is to open.
#[derive(Clone)]
pub(crate) struct PortSettings {
    pub(crate) health: Health,
    pub(crate) address: SocketAddr,
    /// So that the port's server is compiled only where a program asks for one.
    pub(crate) open: fn(&Health, PortSource) -> io::Result<HealthPort>,
}

impl PortSettings {
    /// Opens the port, for these probes.
    pub(crate) fn open(&self, health: &Health, source: PortSource) -> Result<HealthPort, BoxError> {
        (self.open)(health, source).map_err(|error| self.failure(&error))
    }

    /// Returns an error that names the port, since that of `Serve` names the server's address.
    pub(crate) fn failure(&self, error: &io::Error) -> BoxError {
        format!("no probes are answered at {}: {}", self.address, with_causes(error)).into()
    }
}

/// Where a port listens.
pub(crate) enum PortSource {
    Address(SocketAddr),
    /// It is open already: a process before this one has handed it over.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        expect(dead_code, reason = "listeners are handed over only where `hand_over` exists")
    )]
    Listener(std::net::TcpListener),
}

impl HealthPort {
    /// Returns the handle of its loop.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn handle(&self) -> LoopHandle {
        self.handle.clone()
    }

    /// Returns the address, with the actual port if the system chose it.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }
}

#[inline]
fn open(health: Health, source: PortSource) -> io::Result<(Port, SocketAddr)> {
    let limits = Limits::new().idle_timeout(IDLE_TIMEOUT);
    let seed = HttpSeed::new(health, ServerConfig::new().limits(limits));
    let mut creator = Loop::new(&Config::new().machines_max(CONNECTIONS_MAX + 1))?;
    let address = match &source {
        PortSource::Address(address) => *address,
        PortSource::Listener(listener) => listener.local_addr()?,
    };
    let mut bound = address;
    let created = creator.add_machine_with(|scope| {
        MachineResponse::attempt(|| -> Result<_, BoxError> {
            let listener = match source {
                PortSource::Address(address) => {
                    TcpListener::bind(&address, &ListenOptions::new(), scope)?
                }
                PortSource::Listener(listener) => TcpListener::from_std(listener, scope)?,
            };
            bound = listener.local_address().unwrap_or(address);
            Ok(listen(listener, seed, scope))
        })
    });
    created.map_err(io::Error::other)?;
    Ok((creator.instantiate(()), bound))
}

impl Drop for HealthPort {
    fn drop(&mut self) {
        match self.handle.is_ending() {
            // It drains, because a successor has its listener: the last probes are answered first.
            true => self.handle.drain(LAST_PROBES_TIME_MAX),
            false => self.handle.stop(),
        }
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
