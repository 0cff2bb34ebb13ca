//! Sources that are not rotor's: whatever mio can register.
//!
//! **No other module has a type of mio, or of any other crate but std, in a public signature.**
//! Those here are of version 1 of mio, which is [`mio`] itself, so that a program that needs it for
//! a source can do without a dependency, and a version, of its own.
//!
//! A descriptor of something else, say a timer of the system's, as a source of a machine:
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

/// A source of mio's, or of a crate that implements mio's trait, as one of a loop on the kernel's
/// backend.
///
/// It is deregistered by being closed, if its descriptor is the only one of what it names; see
/// [`Source`] for when to deregister it by hand. On a loop of another backend it is
/// [`Unsupported`](io::ErrorKind::Unsupported).
#[doc(alias = "SourceFd")]
#[doc(alias = "event::Source")]
#[derive(Debug)]
pub struct MioSource<S> {
    source: S,
}

impl<S: mio::event::Source> MioSource<S> {
    /// Takes what mio can register.
    pub fn from_mio(source: S) -> MioSource<S> {
        MioSource { source }
    }

    /// Returns what is inside, to be read from or asked.
    pub fn inner(&self) -> &S {
        &self.source
    }

    /// Returns what is inside, to be read from or written to.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Gives back what is inside, registered or not as it was.
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
