//! `Member`: a machine's handle of a socket, with the id by which the stack knows it.

use std::fmt;
use std::io;
use std::sync::MutexGuard;

use rotor_core::{BackendHandle, Interest, Scope, Token};

use crate::backend::{Shared, SmoltcpHandle};
use crate::slots::Id;
use crate::stack::{Kind, Stack};

/// A socket of a stack. Dropping it closes the socket.
pub(crate) struct Member {
    shared: Shared,
    kind: Kind,
    id: Id,
}

impl Member {
    /// Makes a socket of the loop's stack; error messages call it `what`.
    pub(crate) fn new<C>(
        kind: Kind,
        what: &str,
        scope: &Scope<'_, C>,
        make: impl FnOnce(&mut Stack) -> io::Result<Id>,
    ) -> io::Result<Member> {
        let shared = SmoltcpHandle::of(scope, what)?.shared().clone();
        let id = make(&mut shared.stack())?;
        Ok(Member { shared, kind, id })
    }

    /// Returns a stream that the same stack has made.
    pub(crate) fn beside(&self, id: Id) -> Member {
        Member { shared: self.shared.clone(), kind: Kind::Stream, id }
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
        self.check(backend, what)?;
        self.stack().register(self.kind, self.id, token, interest)
    }

    pub(crate) fn deregister(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        self.check(backend, what)?;
        self.stack().deregister(self.kind, self.id)
    }

    /// A socket works only with the stack that made it.
    fn check(&self, backend: &dyn BackendHandle, what: &str) -> io::Result<()> {
        let handle: &SmoltcpHandle = backend.expect(what)?;
        if handle.shared().is(&self.shared) {
            return Ok(());
        }
        let message = format!("{what} of one stack cannot be used on a loop of another");
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stack().drop_socket(self.kind, self.id);
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}
