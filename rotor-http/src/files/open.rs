//! Opening files beneath a directory, and nothing else: the only system calls of this module, made
//! on other threads.
//!
//! **What comes back is a regular file inside the directory.** A FIFO, a device, a socket is never
//! opened, not even to look at it: it is known by its type first. Where the kernel has `openat2`,
//! it keeps the whole look-up beneath the directory; elsewhere [`walk`] goes component by
//! component.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::entry::{DIRECTORY_FLAGS, Entry, FILE_FLAGS, OpenError, regular};
use super::walk;

/// A directory, held open; what is moved to its place later is not seen, and nothing outside of it
/// is reached (path traversal).
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    follow_links: bool,
}

/// What a look-up in one step comes to.
#[derive(Debug)]
pub(super) enum KernelLookup {
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "no other kernel has such a look-up")
    )]
    Done(Result<Entry, OpenError>),
    /// The kernel cannot do that, or is not let: the directories are to be walked.
    Unsupported,
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
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn find_by_kernel(&self, name: &[u8]) -> KernelLookup {
        match self.find_beneath(OsStr::from_bytes(name)) {
            // Too old a kernel; a filter that refuses what it does not know; links that change all
            // the time.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => KernelLookup::Unsupported,
            Err(error) => KernelLookup::Done(Err(error.into())),
            Ok(done) => done,
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn find_by_kernel(&self, _: &[u8]) -> KernelLookup {
        KernelLookup::Unsupported
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn find_beneath(&self, name: &OsStr) -> Result<KernelLookup, Errno> {
        use rustix::fs::{FileType, ResolveFlags, fstat, openat2};

        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut last = OFlags::empty();
        if !self.follow_links {
            resolve |= ResolveFlags::NO_SYMLINKS;
            last = OFlags::NOFOLLOW;
        }
        // A handle that opens nothing: what a driver or the writer of a FIFO would notice is left
        // alone.
        let probe = openat2(
            &self.directory,
            name,
            OFlags::PATH | OFlags::CLOEXEC | last,
            Mode::empty(),
            resolve,
        )?;
        match FileType::from_raw_mode(fstat(&probe)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(KernelLookup::Done(Ok(Entry::Directory))),
            // Not 403: what it is stays unsaid.
            _ => return Ok(KernelLookup::Done(Err(OpenError::NotFound))),
        }
        let flags = FILE_FLAGS.difference(OFlags::NOFOLLOW) | last;
        // By its name again, and checked again: a handle of this kind cannot be read from, and what
        // is there may be another by now.
        let file = openat2(&self.directory, name, flags, Mode::empty(), resolve)?;
        Ok(KernelLookup::Done(regular(file)))
    }
}
