//! `SocketHandle`: a machine's handle of a socket, with the id by which the driver knows it.

use std::cell::RefMut;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use rotor_core::{BackendHandle, Interest, Scope, Token};

use crate::backend::{SharedDriver, UringHandle};
use crate::driver::{Driver, SocketKind};
use crate::key::Id;

/// A socket of a ring. Dropping it closes the socket.
pub(crate) struct SocketHandle {
    shared: SharedDriver,
    id: Id,
}

impl SocketHandle {
    /// Passes a socket to the loop's ring; error messages call it `what`.
    pub(crate) fn new<C>(
        fd: OwnedFd,
        kind: SocketKind,
        what: &str,
        scope: &Scope<'_, C>,
    ) -> io::Result<SocketHandle> {
        let shared = UringHandle::of(scope, what)?.shared().clone();
        let id = shared.driver().insert(fd, kind);
        Ok(SocketHandle { shared, id })
    }

    /// Passes a socket to the same ring.
    pub(crate) fn on_same_ring(&self, fd: OwnedFd, kind: SocketKind) -> SocketHandle {
        let id = self.shared.driver().insert(fd, kind);
        SocketHandle { shared: self.shared.clone(), id }
    }

    #[inline]
    pub(crate) fn driver(&self) -> RefMut<'_, Driver> {
        self.shared.driver()
    }

    #[inline]
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn register(
        &self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
        what: &str,
    ) -> io::Result<()> {
        self.check_ring(backend, what)?;
        self.driver().register(self.id, token, interest)
    }

    pub(crate) fn deregister(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        self.check_ring(backend, what)?;
        self.driver().deregister(self.id)
    }

    /// A socket works only with the ring that it was made for, whose operations refer to it.
    fn check_ring(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        let handle: &UringHandle = backend.expect(what)?;
        if handle.shared().is_same(&self.shared) {
            return Ok(());
        }
        let message = format!("{what} of one io_uring cannot be used on a loop of another");
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

impl Drop for SocketHandle {
    fn drop(&mut self) {
        self.driver().drop_socket(self.id);
    }
}

impl fmt::Debug for SocketHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}
