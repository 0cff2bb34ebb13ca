//! The listeners with which a server begins: newly opened, or taken from an earlier process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rotor_core::BoxError;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::hand_over::{HandOver, HandOverErrorKind, RejectedSuccessors};
use rotor_core::net::{ListenOptions, TcpListeners};
use rotor_core::threads::LoopGroup;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rotor_core::with_causes;

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

/// Called once all loops run. Returns whether this process goes on instead of an earlier one.
pub(super) type StartedCallback = Box<dyn FnOnce(&LoopGroup) -> Result<bool, BoxError>>;

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
    (OpenListeners { queues, address }, Box::new(|_| Ok(false)))
}

/// Takes the listeners of this name from the process that serves at the path, or opens them if
/// there is none. That process drains once this one serves; `drain_time` is how long this one drains
/// once there is a next one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn take_over(
    (path, name, settings): (&Path, &str, &HandOverSettings),
    addresses: &[SocketAddr],
    options: &ListenOptions,
    threads: usize,
    drain_time: Duration,
) -> Result<(OpenListeners, StartedCallback), BoxError> {
    let mut hand_over = HandOver::at(path)?.counting(&settings.rejected_successors);
    let queues =
        open_first(addresses, |address| Ok(hand_over.tcp(name, *address, options, threads)?))?;
    let address = queues.local_address();
    let has_predecessor = hand_over.has_predecessor();
    let on_started = move |group: &LoopGroup| {
        match hand_over.ready(group.handle(), drain_time) {
            // No other process serves, so this one must go on.
            Err(error) if matches!(error.kind(), HandOverErrorKind::NoPath(_)) => {
                log::error!("{}", with_causes(&error));
            }
            result => result?,
        }
        Ok(has_predecessor)
    };
    Ok((OpenListeners { queues: queues.collect(), address }, Box::new(on_started)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn take_over(
    _: (&Path, &str, &HandOverSettings),
    _: &[SocketAddr],
    _: &ListenOptions,
    _: usize,
    _: Duration,
) -> Result<(OpenListeners, StartedCallback), BoxError> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
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
