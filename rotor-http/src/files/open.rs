//! Opens files inside a directory, and nothing else: the only system calls of this module, made on
//! other threads.
//!
//! **A file that is returned is a regular file inside the directory.** A FIFO, a device or a socket
//! is never opened, not even to find out its type: that is checked before. If the kernel has
//! `openat2`, it keeps the whole look-up inside the directory ([`KernelLookup`]); otherwise
//! [`walk`] goes through the path component by component.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;

use super::entry::{DIRECTORY_FLAGS, Entry, OpenError};
use super::kernel_lookup::KernelLookup;
use super::walk;

/// A directory that is kept open. A directory that replaces it later has no effect, and nothing
/// outside of it can be reached (path traversal).
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    follow_links: bool,
}

impl Root {
    /// Opens the directory; links on the way to it are followed.
    pub(super) fn open(path: &Path, follow_links: bool) -> io::Result<Root> {
        let directory = rustix::fs::open(path, DIRECTORY_FLAGS, Mode::empty())?;
        Ok(Root { directory, follow_links })
    }

    /// Looks up `name`, and opens it if it is a file. The name consists of components separated by
    /// slashes, none of them `..`.
    pub(super) fn find(&self, name: &[u8]) -> Result<Entry, OpenError> {
        repeat_if_interrupted(|| match self.find_by_kernel(name) {
            KernelLookup::Done(found) => found,
            KernelLookup::Unsupported => self.find_by_walk(name),
        })
    }

    /// Looks the name up component by component.
    pub(super) fn find_by_walk(&self, name: &[u8]) -> Result<Entry, OpenError> {
        walk::find(self.directory.as_fd(), name, self.follow_links)
    }

    /// Looks the name up in one step.
    pub(super) fn find_by_kernel(&self, name: &[u8]) -> KernelLookup {
        KernelLookup::of(self.directory.as_fd(), name, self.follow_links)
    }
}

/// Looks a file up, and does so again if a signal has interrupted that (open(2): on a network's file
/// system, for example).
pub(super) fn repeat_if_interrupted(
    mut look_up: impl FnMut() -> Result<Entry, OpenError>,
) -> Result<Entry, OpenError> {
    loop {
        match look_up() {
            Err(OpenError::Failed(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            found => return found,
        }
    }
}
