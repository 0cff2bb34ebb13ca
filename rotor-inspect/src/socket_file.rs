//! `SocketFile`: removes the file of a Unix socket at its end.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file of a Unix socket. It is removed when this is dropped, unless the path then belongs to
/// another file.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The device and the inode.
    identity: (u64, u64),
}

impl SocketFile {
    /// Takes the file that was just created at this path.
    pub(crate) fn new(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.to_owned(), identity: identity(path)? })
    }
}

/// Returns the identity of the file at the path itself; links are not followed.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _gone = fs::remove_file(&self.path);
        }
    }
}
