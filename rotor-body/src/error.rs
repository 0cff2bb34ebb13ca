//! `SpoolError`: why a body could not be kept.

use std::io;

use quick_error::quick_error;
use rotor_core::FutureError;

quick_error! {
    /// Why a body could not be kept. The body and its file are gone then, except for `AfterEnd`.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum SpoolError {
        /// The body is longer than its limit, or than a file may be (EFBIG, also by
        /// `RLIMIT_FSIZE`), or does not fit into memory and there is no spool. This is the peer's
        /// fault. A server responds with 413.
        TooLarge { display("the body is larger than its limit") }
        /// All bodies together hold as much as they may: [`all_bytes_max`], [`files_max`], or,
        /// without a spool, the limit for memory ([`Expected::memory`]); or the pool's queue of
        /// jobs is full. This is nobody's fault: another attempt may succeed later. A server
        /// responds with 503.
        ///
        /// [`Expected::memory`]: crate::Expected::memory
        /// [`all_bytes_max`]: crate::SpoolConfig::all_bytes_max
        /// [`files_max`]: crate::SpoolConfig::files_max
        NoRoom { display("all bodies together have reached their limit") }
        /// The file system is full, or less than [`keep_free_bytes`] would be left, or the user's
        /// quota is used up (ENOSPC, EDQUOT). A server responds with 507.
        ///
        /// [`keep_free_bytes`]: crate::SpoolConfig::keep_free_bytes
        DiskFull(error: io::Error) {
            display("no space is left on the disk for the body")
            source(error)
        }
        /// The process, or the system, has no descriptor left (EMFILE, ENFILE). A server responds
        /// with 503.
        NoDescriptor(error: io::Error) {
            display("no file descriptor is left for the file of a body")
            source(error)
        }
        /// The disk failed (EIO), or the directory cannot be written to. A server responds with
        /// 500.
        Disk(error: io::Error) {
            display("the file of a body cannot be written")
            source(error)
        }
        /// More was added after the end of the body: the caller's mistake. Call [`end`] after the
        /// last [`add`], and begin another collector for another body. A server responds with 500.
        ///
        /// [`add`]: crate::Collector::add
        /// [`end`]: crate::Collector::end
        AfterEnd {
            display("data was added to a body after its end: call `end` once everything was added")
        }
        /// The thread that was to write has ended, or panicked. A server responds with 500.
        Lost(lost: FutureError) {
            from()
            display("the thread that writes bodies has ended")
            source(lost)
        }
    }
}

impl From<io::Error> for SpoolError {
    fn from(error: io::Error) -> SpoolError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                SpoolError::DiskFull(error)
            }
            io::ErrorKind::FileTooLarge => SpoolError::TooLarge,
            _ if is_no_descriptor(&error) => SpoolError::NoDescriptor(error),
            _ => SpoolError::Disk(error),
        }
    }
}

/// Returns whether no descriptor is left. std has no error kinds for that.
fn is_no_descriptor(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|no| error.raw_os_error() == Some(no.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn each_system_error_maps_to_its_spool_error() {
        for (errno, expected) in [
            (Errno::NOSPC, "no space is left on the disk for the body"),
            (Errno::DQUOT, "no space is left on the disk for the body"),
            (Errno::MFILE, "no file descriptor is left for the file of a body"),
            (Errno::NFILE, "no file descriptor is left for the file of a body"),
            (Errno::IO, "the file of a body cannot be written"),
            (Errno::ROFS, "the file of a body cannot be written"),
        ] {
            let error = SpoolError::from(io::Error::from(errno));
            assert_eq!(error.to_string(), expected, "{errno:?}");
            assert!(std::error::Error::source(&error).is_some(), "{errno:?}");
        }
        let error = SpoolError::from(io::Error::from(Errno::FBIG));
        assert!(matches!(error, SpoolError::TooLarge), "{error:?}");
    }
}
