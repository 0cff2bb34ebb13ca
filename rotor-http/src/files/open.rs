//! Opening files beneath a directory, and nothing else: the only system calls of this module, made
//! on other threads.
//!
//! **What comes back is a regular file inside the directory.** A FIFO, a device, a socket is never
//! opened, not even to look at it: it is known by its type first. Where the kernel has `openat2`,
//! it keeps the whole look-up beneath the directory ([`KernelLookup`]); elsewhere [`walk`]
//! goes component by component.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;

use super::entry::{DIRECTORY_FLAGS, Entry, OpenError};
use super::kernel_lookup::KernelLookup;
use super::walk;

/// A directory, held open; what is moved to its place later is not seen, and nothing outside of it
/// is reached (path traversal).
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

    /// Opens what `name` leads to: components with slashes between them, none of them `..`.
    pub(super) fn find(&self, name: &[u8]) -> Result<Entry, OpenError> {
        match self.find_by_kernel(name) {
            KernelLookup::Done(found) => found,
            KernelLookup::Unsupported => self.find_by_walk(name),
        }
    }

    /// Component by component.
    pub(super) fn find_by_walk(&self, name: &[u8]) -> Result<Entry, OpenError> {
        walk::find(self.directory.as_fd(), name, self.follow_links)
    }

    /// In one step.
    pub(super) fn find_by_kernel(&self, name: &[u8]) -> KernelLookup {
        KernelLookup::of(self.directory.as_fd(), name, self.follow_links)
    }
}
