//! `StartLock`: ensures that only one process opens the listeners if none runs yet.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::error::HandOverErrorKind as Kind;

/// A locked file beside the path. It is held from the moment when no process was found until this
/// one's socket can be found. If a process is killed, its lock is released (flock(2)) and its file
/// is used again.
#[derive(Debug)]
pub(super) struct StartLock {
    /// Open for as long as the lock is held.
    _locked: File,
    path: PathBuf,
}

impl StartLock {
    /// Takes the lock.
    pub(super) fn acquire(path: &Path) -> Result<StartLock, Kind> {
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let path = PathBuf::from(lock_path);
        let refused = Kind::refused("lock the file beside the path");
        loop {
            let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
            let file = options.open(&path).map_err(&refused)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(Kind::Busy),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(refused(error.into())),
            }
            // The former owner may have removed the file meanwhile; then it keeps no other process
            // out.
            if is_file_at(&file, &path).map_err(&refused)? {
                return Ok(StartLock { _locked: file, path });
            }
        }
    }
}

fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for StartLock {
    fn drop(&mut self) {
        // Before the lock is released, so that this cannot remove another process's file.
        let _ignored = fs::remove_file(&self.path);
    }
}
