//! `StackSocket`: a machine's handle of a socket, with the id by which the stack knows it.

use std::fmt;
use std::io;
use std::sync::MutexGuard;

use rotor_core::{BackendHandle, Interest, Scope, Token};

use crate::backend::{SharedStack, SmoltcpHandle};
use crate::slots::Id;
use crate::stack::{SocketKind, Stack};

/// A socket of a stack. Dropping it closes the socket.
pub(crate) struct StackSocket {
    shared: SharedStack,
    kind: SocketKind,
    id: Id,
}

impl StackSocket {
    /// Makes a socket of the loop's stack; error messages call it `what`.
    pub(crate) fn new<C>(
        kind: SocketKind,
        what: &str,
        scope: &Scope<'_, C>,
        make: impl FnOnce(&mut Stack) -> io::Result<Id>,
    ) -> io::Result<StackSocket> {
        let shared = SmoltcpHandle::of(scope, what)?.shared().clone();
        let id = make(&mut shared.stack())?;
        Ok(StackSocket { shared, kind, id })
    }

    /// Returns a stream that the same stack has made.
    pub(crate) fn on_same_stack(&self, id: Id) -> StackSocket {
        StackSocket { shared: self.shared.clone(), kind: SocketKind::Stream, id }
    }

    #[inline]
    pub(crate) fn stack(&self) -> MutexGuard<'_, Stack> {
        self.shared.stack()
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
        self.check_stack(backend, what)?;
        self.stack().register(self.kind, self.id, token, interest)
    }

    pub(crate) fn deregister(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        self.check_stack(backend, what)?;
        self.stack().deregister(self.kind, self.id)
    }

    /// A socket works only with the stack that made it.
    fn check_stack(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        let handle: &SmoltcpHandle = backend.expect(what)?;
        if handle.shared().is_same(&self.shared) {
            return Ok(());
        }
        let message = format!("{what} of one stack cannot be used on a loop of another");
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

impl Drop for StackSocket {
    fn drop(&mut self) {
        self.stack().drop_socket(self.kind, self.id);
    }
}

impl fmt::Debug for StackSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}
