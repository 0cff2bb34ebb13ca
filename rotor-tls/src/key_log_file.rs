//! `KeyLogFile`: a file with the secrets of connections, for programs that decrypt recordings.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::KeyLog;

use crate::config_error::TlsConfigError;

pub(crate) struct KeyLogFile {
    file: File,
    has_failed: AtomicBool,
}

impl KeyLogFile {
    /// Opens the file to append to it; others cannot read a new one.
    pub(crate) fn open(path: &Path) -> Result<Arc<KeyLogFile>, TlsConfigError> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file =
            file.map_err(|error| TlsConfigError::Write(path.display().to_string(), error))?;
        Ok(Arc::new(KeyLogFile { file, has_failed: AtomicBool::new(false) }))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        // One call appends a line, so those of several threads and processes do not mix.
        if let Err(error) = (&self.file).write_all(line.as_bytes())
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            log::warn!("secrets of TLS connections are missing in their file: {error}");
        }
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogFile")
    }
}
