//! What the servers are given to serve, in a temporary directory that is removed with the value.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Bytes of the body that `/64k` answers with.
pub(super) const BODY_64K_BYTES: usize = 64 * 1024;

/// Bytes of the body that `/1m` answers with.
pub(super) const BODY_1M_BYTES: usize = 1024 * 1024;

/// Bytes of the file that `/file` answers with.
pub(super) const FILE_BYTES: usize = 1024 * 1024;

/// The alphabet over and over: two pieces in the wrong order show.
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

    /// The file for `/file`.
    pub(super) fn file(&self) -> PathBuf {
        self.0.join("file")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // In the system's directory for such files; one that stays there does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
