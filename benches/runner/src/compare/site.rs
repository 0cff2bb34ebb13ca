//! The files that the servers serve, in a temporary directory that is removed when the value is
//! dropped.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// The length of the body of `/64k`.
pub(super) const BODY_64K_BYTES: usize = 64 * 1024;

/// The length of the body of `/1m`.
pub(super) const BODY_1M_BYTES: usize = 1024 * 1024;

/// The length of the file of `/file`.
pub(super) const FILE_BYTES: usize = 1024 * 1024;

/// Returns the alphabet, repeated, so that pieces in the wrong order are detected.
pub(super) fn letters(bytes: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(bytes).collect()
}

/// The directory.
#[derive(Debug)]
pub(super) struct Site(PathBuf);

impl Site {
    pub(super) fn create() -> io::Result<Site> {
        let site = Site(env::temp_dir().join(format!("rotor-bench-site-{}", process::id())));
        fs::create_dir(&site.0)?;
        fs::write(site.file(), letters(FILE_BYTES))?;
        // For servers that keep no body in memory.
        fs::write(site.0.join("64k"), letters(BODY_64K_BYTES))?;
        fs::write(site.0.join("1m"), letters(BODY_1M_BYTES))?;
        Ok(site)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the file for `/file`.
    pub(super) fn file(&self) -> PathBuf {
        self.0.join("file")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It is in the system's temporary directory; if it stays there, that does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
