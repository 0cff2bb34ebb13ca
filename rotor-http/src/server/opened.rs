//! The listeners with which a server begins: newly opened, or taken from an earlier process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rotor_core::BoxError;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::hand_over::{HandOver, HandOverErrorKind, RejectedSuccessors};
use rotor_core::net::{ListenOptions, TcpListeners};
use rotor_core::service_manager::ServiceManager;
use rotor_core::threads::LoopGroup;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::with_causes;

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::health::PortSource;
use crate::health::{HealthPort, PortSettings};

/// The listeners of each thread, and their address.
pub(super) struct OpenListeners {
    pub(super) queues: Vec<Vec<std::net::TcpListener>>,
    pub(super) address: SocketAddr,
}

/// How a process takes over from another one, and hands over to the next.
#[derive(Clone, Default)]
pub(super) struct HandOverSettings {
    /// The path of the hand-over in both directions; `None` for neither.
    pub(super) path: Option<PathBuf>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) rejected_successors: RejectedSuccessors,
}

/// Called once all loops run.
pub(super) type StartedCallback = Box<dyn FnOnce(&LoopGroup) -> Result<Started, BoxError>>;

/// The result of the start.
#[derive(Default)]
pub(super) struct Started {
    /// Whether this process goes on instead of an earlier one.
    pub(super) is_successor: bool,
    /// The port for probes, if it is handed over as well.
    pub(super) port: Option<HealthPort>,
}

/// Opens the first address that can be opened, for this number of threads.
pub(super) fn open(
    addresses: &[SocketAddr],
    options: &ListenOptions,
    threads: usize,
) -> Result<(OpenListeners, StartedCallback), BoxError> {
    let bind = |address: &SocketAddr| Ok(TcpListeners::bind(*address, options, threads)?);
    Ok(one_per_thread(open_first(addresses, bind)?))
}

/// Uses a listener that is open already, for this number of threads.
pub(super) fn from_listener(
    listener: &std::net::TcpListener,
    threads: usize,
) -> Result<(OpenListeners, StartedCallback), BoxError> {
    Ok(one_per_thread(TcpListeners::from_std(listener.try_clone()?, threads)?))
}

fn one_per_thread(listeners: TcpListeners) -> (OpenListeners, StartedCallback) {
    let address = listeners.local_address();
    let queues = listeners.map(|listener| vec![listener]).collect();
    (OpenListeners { queues, address }, Box::new(|_| Ok(Started::default())))
}

/// What is taken over from an earlier process, or opened if there is none.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "listeners are handed over there only")
)]
pub(super) struct TakeOver<'a> {
    pub(super) path: &'a Path,
    /// The name of the listeners.
    pub(super) name: &'a str,
    pub(super) settings: &'a HandOverSettings,
    pub(super) addresses: &'a [SocketAddr],
    pub(super) options: &'a ListenOptions,
    pub(super) threads: usize,
    /// How long this process drains once there is a next one.
    pub(super) drain_time: Duration,
    /// Knows of this process before the earlier one drains.
    pub(super) manager: Option<&'a ServiceManager>,
    pub(super) port: Option<&'a PortSettings>,
}

/// The name of the listener for probes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PORT_NAME: &str = "health";

impl TakeOver<'_> {
    /// Takes the listeners from the process that serves at the path, or opens them if there is
    /// none. That process drains once this one serves.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn run(self) -> Result<(OpenListeners, StartedCallback), BoxError> {
        let TakeOver { name, options, threads, drain_time, .. } = self;
        let mut hand_over = HandOver::at(self.path)?.counting(&self.settings.rejected_successors);
        if let Some(manager) = self.manager {
            hand_over = hand_over.service_manager(manager);
        }
        let is_successor = hand_over.has_predecessor();
        // Inherited sockets without names are given out in the order of the calls, and the port for
        // probes comes after the service.
        let queues = open_first(self.addresses, |address| {
            Ok(hand_over.tcp(name, *address, options, threads)?)
        })?;
        let address = queues.local_address();
        let (mut port, mut waiting_port) = (None, None);
        if let Some(settings) = self.port {
            let listeners = hand_over.tcp(PORT_NAME, settings.address, &ListenOptions::new(), 1);
            let listeners = listeners.map_err(|error| settings.failure(&error))?;
            let listener = listeners.flatten().next().ok_or("there is no listener for probes")?;
            match is_successor {
                // The earlier process answers until this one serves.
                true => waiting_port = Some((settings.clone(), listener)),
                false => port = Some(open_port(settings, listener)?),
            }
        }
        let on_started = move |group: &LoopGroup| {
            let mut health = None;
            if let Some((settings, listener)) = waiting_port {
                // Ready before it is asked: its loops accept already.
                settings.health.set_ready(true);
                let opened = open_port(&settings, listener);
                port = Some(opened.inspect_err(|_| settings.health.set_ready(false))?);
                health = Some(settings.health);
            }
            if let Some(port) = &port {
                hand_over = hand_over.side_loops(port.handle());
            }
            match hand_over.ready(group.handle(), drain_time) {
                // No other process serves, so this one must go on.
                Err(error) if matches!(error.kind(), HandOverErrorKind::NoPath(_)) => {
                    log::error!("{}", with_causes(&error));
                }
                Ok(()) => {}
                Err(error) => {
                    if let Some(health) = health {
                        health.set_ready(false);
                    }
                    return Err(error.into());
                }
            }
            Ok(Started { is_successor, port })
        };
        Ok((OpenListeners { queues: queues.collect(), address }, Box::new(on_started)))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn run(self) -> Result<(OpenListeners, StartedCallback), BoxError> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }
}

/// Opens a port for probes that is handed over.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_port(
    settings: &PortSettings,
    listener: std::net::TcpListener,
) -> Result<HealthPort, BoxError> {
    settings.open(&settings.health.of_service(), PortSource::Listener(listener))
}

/// Calls `open` with each address until one succeeds; otherwise returns the last error.
pub(super) fn open_first<T>(
    addresses: &[SocketAddr],
    mut open: impl FnMut(&SocketAddr) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let mut failed: BoxError = "the name has no address".into();
    for address in addresses {
        match open(address) {
            Ok(opened) => return Ok(opened),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
