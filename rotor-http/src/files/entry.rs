//! What a name leads to, why it may lead to nothing, and how it is opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::semantics::status::Status;

/// What a name leads to.
#[derive(Debug)]
pub(super) enum Entry {
    /// A regular file, open for reading, and what it was when it was opened.
    File(File, Metadata),
    Directory,
}

/// Why there is no file to send.
#[derive(Debug)]
pub(super) enum OpenError {
    /// Nothing of this name, or nothing that is served: a FIFO, a device, a link that is not to be
    /// followed.
    NotFound,
    /// The system refuses it to us.
    Forbidden,
    /// The system is out of something for a while: descriptors, memory.
    Busy(io::Error),
    /// The system has failed.
    Failed(io::Error),
}

impl OpenError {
    /// Returns the status of the response.
    pub(super) fn status(&self) -> Status {
        match self {
            OpenError::NotFound => Status::NOT_FOUND,
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
            // `openat2`: beyond the root.
            | Errno::XDEV
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            // A socket, or a device without a driver, that took the place of the file.
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

/// How a file is opened for reading: a FIFO that takes its place in between does not hold us up, a
/// terminal does not become ours.
pub(super) const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How a directory is opened to look beneath it: where there are such handles, without the right to
/// list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) const DIRECTORY_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Returns the file, if it is a regular one.
pub(super) fn regular(file: OwnedFd) -> Result<Entry, OpenError> {
    let file = File::from(file);
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok(Entry::File(file, metadata)) } else { Err(OpenError::NotFound) }
}
