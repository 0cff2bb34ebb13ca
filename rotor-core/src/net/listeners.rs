//! `TcpListeners`: one TCP address, opened for several loops.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

use super::kernel::listen;
use super::listen_options::ListenOptions;

/// Listeners on one address, one for each of several loops.
///
/// If the system supports it (`SO_REUSEPORT`), each listener has a queue of its own, so that the
/// loops never contend. Otherwise they share one queue. A connection belongs to the loop whose
/// listener the system chose: a loop that is full keeps its own connections waiting and does not
/// hold up the others.
///
/// With `SO_REUSEPORT`, the address is in use only for processes of other users, and for listeners
/// without that option. So a program that is started twice gets no error: each process gets a part
/// of the connections. With `hand_over`, the second process takes the place of the first one.
#[doc(alias = "SO_REUSEPORT")]
#[doc(alias = "thread-per-core")]
pub struct TcpListeners {
    listeners: Vec<TcpListener>,
    address: SocketAddr,
}

impl TcpListeners {
    /// Opens `address` for `count` loops (at least one). With port 0 the system chooses a port, the
    /// same for all.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`](super::Listener::bind): for example, the address is in use, or
    /// does not belong to this computer, or no descriptor is left. `OutOfMemory` if there is no
    /// memory for `count` listeners.
    pub fn bind(
        address: SocketAddr,
        options: &ListenOptions,
        count: usize,
    ) -> io::Result<TcpListeners> {
        let own_queues = options.clone().reuse_port(true);
        match listen(address, &own_queues) {
            Ok(first) => TcpListeners::open_own_queues(first, &own_queues, count),
            // On a system without `SO_REUSEPORT`, all loops share one queue.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                TcpListeners::from_std(listen(address, options)?, count)
            }
            Err(error) => Err(error),
        }
    }

    /// Shares one open listener, and its queue, among `count` loops (at least 1): for a listener
    /// that was passed to the process.
    ///
    /// # Errors
    ///
    /// The system's error: for example, no descriptor is left. `OutOfMemory` if there is no memory
    /// for `count` listeners.
    #[doc(alias = "share")]
    pub fn from_std(first: TcpListener, count: usize) -> io::Result<TcpListeners> {
        let address = first.local_addr()?;
        let mut listeners = Vec::new();
        // Reserved before the first descriptor is duplicated.
        listeners.try_reserve_exact(count.max(1))?;
        for _ in 1..count {
            listeners.push(first.try_clone()?);
        }
        // Pushed after its duplicates: listeners are taken from the end, so the first loop gets the
        // original one.
        listeners.push(first);
        Ok(TcpListeners { listeners, address })
    }

    fn open_own_queues(
        first: TcpListener,
        options: &ListenOptions,
        count: usize,
    ) -> io::Result<TcpListeners> {
        let address = first.local_addr()?;
        // All use the address of the first one: with port 0 each would get another port.
        let mut listeners = Vec::new();
        listeners.try_reserve_exact(count.max(1))?;
        listeners.push(first);
        while listeners.len() < count {
            listeners.push(listen(address, options)?);
        }
        Ok(TcpListeners { listeners, address })
    }

    /// Returns the address, with the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many listeners are left to be taken.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }

    /// Returns whether all listeners were taken.
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }
}

/// Yields the listeners, one for each loop. [`TcpListener::from_std`](super::TcpListener::from_std)
/// turns each into a socket of its loop.
impl Iterator for TcpListeners {
    type Item = TcpListener;

    fn next(&mut self) -> Option<TcpListener> {
        self.listeners.pop()
    }
}

impl fmt::Debug for TcpListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpListeners({} on {})", self.listeners.len(), self.address)
    }
}
