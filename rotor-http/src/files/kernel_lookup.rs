//! `KernelLookup`: a look-up inside a directory in one system call, if the kernel supports it.

use super::entry::{Entry, OpenError};

/// The result of such a look-up.
#[derive(Debug)]
pub(super) enum KernelLookup {
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "no other kernel has such a look-up")
    )]
    Done(Result<Entry, OpenError>),
    /// The kernel does not support it, or a filter forbids it: walk through the directories
    /// instead.
    Unsupported,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl KernelLookup {
    pub(super) fn of(_: std::os::fd::BorrowedFd<'_>, _: &[u8], _: bool) -> KernelLookup {
        KernelLookup::Unsupported
    }
}

/// The look-up with openat2(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
mod beneath {
    use std::ffi::OsStr;
    use std::os::fd::BorrowedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
    use rustix::io::Errno;

    use super::KernelLookup;
    use crate::files::entry::{Entry, FILE_FLAGS, OpenError, require_regular};

    impl KernelLookup {
        pub(in crate::files) fn of(
            directory: BorrowedFd<'_>,
            name: &[u8],
            follow_links: bool,
        ) -> KernelLookup {
            match find(directory, OsStr::from_bytes(name), follow_links) {
                // The kernel is too old; a filter refuses unknown calls; or links change all the
                // time.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => KernelLookup::Unsupported,
                Err(error) => KernelLookup::Done(Err(error.into())),
                Ok(found) => KernelLookup::Done(found),
            }
        }
    }

    fn find(
        directory: BorrowedFd<'_>,
        name: &OsStr,
        follow_links: bool,
    ) -> Result<Result<Entry, OpenError>, Errno> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut last = OFlags::empty();
        if !follow_links {
            resolve |= ResolveFlags::NO_SYMLINKS;
            last = OFlags::NOFOLLOW;
        }
        // This handle opens nothing, so that a driver or the writer of a FIFO does not notice.
        let probe = openat2(
            directory,
            name,
            OFlags::PATH | OFlags::CLOEXEC | last,
            Mode::empty(),
            resolve,
        )?;
        match FileType::from_raw_mode(fstat(&probe)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Ok(Entry::Directory)),
            // Not 403, which would reveal that something is there.
            _ => return Ok(Err(OpenError::NotFound)),
        }
        let flags = FILE_FLAGS.difference(OFlags::NOFOLLOW) | last;
        // Opened by name again, with all checks, because a handle of this kind cannot be read from,
        // and the file may have been replaced by now.
        Ok(require_regular(openat2(directory, name, flags, Mode::empty(), resolve)?))
    }
}
