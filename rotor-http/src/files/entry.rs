//! What is found at a name, the errors of a look-up, and the flags for opening files.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::semantics::status::Status;

/// What is found at a name.
#[derive(Debug)]
pub(super) enum Entry {
    /// A regular file, open for reading, and its metadata when it was opened.
    File(File, Metadata),
    Directory,
}

/// Why there is no file to send.
#[derive(Debug)]
pub(super) enum OpenError {
    /// There is nothing with this name, or nothing that is served: a FIFO, a device, a link that
    /// must not be followed.
    NotFound,
    /// The system denies access.
    Forbidden,
    /// The system lacks a resource at the moment: descriptors, memory.
    Busy(io::Error),
    /// The system has failed.
    Failed(io::Error),
    /// There is nothing with this name, and the page for that cannot be opened, either.
    NoPage(Box<OpenError>),
}

impl OpenError {
    /// Returns the status of the response.
    pub(super) fn status(&self) -> Status {
        match self {
            OpenError::NotFound | OpenError::NoPage(_) => Status::NOT_FOUND,
            OpenError::Forbidden => Status::FORBIDDEN,
            OpenError::Busy(_) => Status::SERVICE_UNAVAILABLE,
            OpenError::Failed(_) => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> OpenError {
        match error {
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::MLINK
            // `openat2`: the name leads out of the directory.
            | Errno::XDEV
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            // A socket, or a device without a driver, has replaced the file.
            | Errno::NXIO
            | Errno::NODEV => OpenError::NotFound,
            Errno::ACCESS | Errno::PERM => OpenError::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
                OpenError::Busy(error.into())
            }
            error => OpenError::Failed(error.into()),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => OpenError::Failed(error),
        }
    }
}

/// The flags for opening a file. If a FIFO has replaced the file meanwhile, opening it does not
/// block; a terminal does not become the controlling terminal.
pub(super) const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The flags for opening a directory in which to look up names. If the system supports it, the
/// right to list the directory is not needed.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) const DIRECTORY_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Returns the file, if it is a regular one.
pub(super) fn require_regular(file: OwnedFd) -> Result<Entry, OpenError> {
    let file = File::from(file);
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok(Entry::File(file, metadata)) } else { Err(OpenError::NotFound) }
}
