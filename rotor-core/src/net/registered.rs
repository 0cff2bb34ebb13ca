//! `RegisteredSource`: a source that deregisters itself before it is closed.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mio::Registry;
use mio::event::Source;

use crate::event_set::Interest;
use crate::guard::log_guarded;
use crate::mio_backend::MioHandle;
use crate::token::Token;

/// A source, and the queue with which it is registered.
///
/// Closing a descriptor ends its registration only if no other descriptor refers to the same
/// socket. Listeners and datagram sockets are shared: among loops (`TcpListeners::from_std`), and
/// with the process that handed them over, which keeps its own descriptors. The kernel would go on
/// waking the loop for their events, and the registration could not be removed any more, since that
/// needs the descriptor. This costs 8 bytes and a system call per socket. Streams are many and
/// hardly ever shared, so they do without.
pub(super) struct RegisteredSource<S: Source> {
    source: S,
    registry: Option<Arc<Registry>>,
}

impl<S: Source> RegisteredSource<S> {
    pub(super) fn register(
        &mut self,
        backend: &MioHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        backend.register(&mut self.source, token, interest)?;
        self.registry = Some(backend.registry());
        Ok(())
    }

    pub(super) fn deregister(&mut self, backend: &MioHandle) -> io::Result<()> {
        backend.deregister(&mut self.source)?;
        // Set only now: if deregistering fails, the drop tries again.
        self.registry = None;
        Ok(())
    }
}

impl<S: Source> From<S> for RegisteredSource<S> {
    fn from(source: S) -> RegisteredSource<S> {
        RegisteredSource { source, registry: None }
    }
}

impl<S: Source> Drop for RegisteredSource<S> {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.take()
            && let Err(error) = registry.deregister(&mut self.source)
        {
            // Only logged: the kernel removes the registration with the last descriptor (epoll(7)).
            log_guarded!(debug, "a socket that is closed was not deregistered: {error}");
        }
    }
}

impl<S: Source> Deref for RegisteredSource<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

impl<S: Source> DerefMut for RegisteredSource<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.source
    }
}
