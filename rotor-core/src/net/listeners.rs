//! One TCP address, opened for several loops.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

use super::kernel::listen;
use super::listen_options::ListenOptions;

/// Listeners on one address, one for each of several loops.
///
/// Each has a queue of its own where the system offers that (`SO_REUSEPORT`), so that the loops
/// never contend; elsewhere they share one. A connection belongs to the loop whose listener the
/// system chose: a loop that is full keeps its own connections waiting and holds up no other.
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
    /// As for [`Listener::bind`](super::Listener::bind): for example the address is in use, or not
    /// this machine's, or no descriptor is left; and `OutOfMemory` for a count beyond all memory.
    pub fn bind(
        address: SocketAddr,
        options: &ListenOptions,
        count: usize,
    ) -> io::Result<TcpListeners> {
        let own_queues = options.clone().reuse_port(true);
        match listen(address, &own_queues) {
            Ok(first) => TcpListeners::spread(first, &own_queues, count),
            // A system without `SO_REUSEPORT`: one queue for all is better than none.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                TcpListeners::from_std(listen(address, options)?, count)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives one open listener to `count` loops, which share its queue: for a listener that was
    /// passed to the process.
    ///
    /// # Errors
    ///
    /// The system's error: for example no descriptor is left; and `OutOfMemory` for a count beyond
    /// all memory.
    #[doc(alias = "share")]
    pub fn from_std(first: TcpListener, count: usize) -> io::Result<TcpListeners> {
        let address = first.local_addr()?;
        let mut listeners = Vec::new();
        // Before the first descriptor is taken.
        listeners.try_reserve_exact(count.max(1))?;
        for _ in 1..count {
            listeners.push(first.try_clone()?);
        }
        // After its copies: listeners are taken from the end, so the first loop gets the one passed
        // in.
        listeners.push(first);
        Ok(TcpListeners { listeners, address })
    }

    fn spread(
        first: TcpListener,
        options: &ListenOptions,
        count: usize,
    ) -> io::Result<TcpListeners> {
        let address = first.local_addr()?;
        // At the address that the first one got: with port 0 each would get another port.
        let mut listeners = Vec::new();
        listeners.try_reserve_exact(count.max(1))?;
        listeners.push(first);
        while listeners.len() < count {
            listeners.push(listen(address, options)?);
        }
        Ok(TcpListeners { listeners, address })
    }

    /// Returns the address that is open, with the port that the system chose.
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

/// Returns the listeners, one for each loop;
/// [`TcpListener::from_std`](super::TcpListener::from_std) turns each into a socket of its loop.
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
