//! Sources that are not rotor's own: everything that mio can register.
//!
//! **No other module has a type of mio, or of any other crate but std, in a public signature.** The
//! types here are those of mio 1, which is re-exported as [`mio`], so that a program that needs it
//! for a source can do without a dependency of its own.
//!
//! A descriptor of something else, such as a timer of the system, as a source of a machine:
//!
//! ```
//! # use rotor_core as rotor;
//! use rotor::foreign::MioSource;
//! use rotor::foreign::mio::unix::SourceFd;
//! use rotor::{Interest, Scope};
//! use std::os::fd::RawFd;
//!
//! fn watch<C>(descriptor: RawFd, scope: &Scope<'_, C>) -> std::io::Result<()> {
//!     scope.register(&mut MioSource::from_mio(SourceFd(&descriptor)), Interest::Readable)
//! }
//! ```

use std::io;

#[doc(no_inline)]
pub use mio;

use crate::backend::{BackendHandle, Source};
use crate::event_set::Interest;
use crate::mio_backend::MioHandle;
use crate::token::Token;

/// A source of mio, or of a crate that implements mio's trait, for a loop on the kernel's backend.
///
/// It is deregistered when it is closed, provided that no other descriptor refers to the same
/// object; [`Source`] says when to deregister it by hand. On a loop of another backend, registering
/// it returns [`Unsupported`](io::ErrorKind::Unsupported).
#[doc(alias = "SourceFd")]
#[doc(alias = "event::Source")]
#[derive(Debug)]
pub struct MioSource<S> {
    source: S,
}

impl<S: mio::event::Source> MioSource<S> {
    /// Wraps a source that mio can register.
    pub fn from_mio(source: S) -> MioSource<S> {
        MioSource { source }
    }

    /// Returns a reference to the wrapped source.
    pub fn inner(&self) -> &S {
        &self.source
    }

    /// Returns a mutable reference to the wrapped source, for reading or writing.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the wrapped source. If it is registered, it stays so.
    pub fn into_inner(self) -> S {
        self.source
    }
}

impl<S: mio::event::Source> Source for MioSource<S> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let backend = backend.expect::<MioHandle>("a source of mio")?;
        backend.register(&mut self.source, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        backend.expect::<MioHandle>("a source of mio")?.deregister(&mut self.source)
    }
}
