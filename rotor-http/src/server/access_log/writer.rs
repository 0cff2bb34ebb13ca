//! `Writer`: the thread that writes lines, and their destination.

use std::fs::{File, OpenOptions};
use std::io::{self, Stdout, Write};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::Receiver;

use super::lost_lines::LostLines;

/// How many bytes of lines are collected before they are written, unless there is a pause earlier.
/// A longer line is written by itself.
const COLLECTED_BYTES_MAX: usize = 8 * 1024;

/// Where lines are written.
pub(super) enum Destination {
    StandardOutput(Stdout),
    File(LogFile),
    #[cfg(test)]
    Test(Box<dyn Write + Send>),
}

/// A file, and its path, at which it is opened again.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// How long the process may make a file (`RLIMIT_FSIZE`). Beyond, the system would send
    /// SIGXFSZ, which ends a process that does not handle it (setrlimit(2)).
    pub(super) bytes_max: Option<u64>,
}

impl LogFile {
    pub(super) fn open(path: PathBuf) -> io::Result<LogFile> {
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        let bytes_max = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        Ok(LogFile { path, file, bytes_max })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(max) = self.bytes_max else { return self.file.write(bytes) };
        let room = max.saturating_sub(self.file.metadata()?.len());
        match bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)) {
            0 => Err(io::ErrorKind::FileTooLarge.into()),
            len => self.file.write(&bytes[..len]),
        }
    }
}

impl Destination {
    pub(super) fn open(path: PathBuf) -> io::Result<Destination> {
        LogFile::open(path).map(Destination::File)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Destination::StandardOutput(out) => out.write(bytes),
            Destination::File(file) => file.write(bytes),
            #[cfg(test)]
            Destination::Test(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) {
        // It keeps the rest of a short write, and tries again at the next one.
        if let Destination::StandardOutput(out) = self {
            let _is_kept = out.flush();
        }
    }
}

pub(super) struct Writer {
    destination: Destination,
    /// Lines that are not written yet.
    collected: Vec<u8>,
    /// Whether the beginning of the first of them is written.
    begins_midline: bool,
    /// Bytes of lines that were taken since the last attempt to write.
    taken: usize,
    lost: LostLines,
    is_stale: Arc<AtomicBool>,
    /// Bytes of the lines that wait, including those that are being written.
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    pub(super) fn new(
        destination: Destination,
        lost: LostLines,
        is_stale: Arc<AtomicBool>,
        waiting: Arc<AtomicUsize>,
    ) -> Writer {
        let (collected, begins_midline, taken) = (Vec::new(), false, 0);
        Writer { destination, collected, begins_midline, taken, lost, is_stale, waiting }
    }

    /// Writes lines until all senders are dropped. Returns whether none is left then.
    pub(super) fn run(mut self, lines: &Receiver<String>) -> bool {
        while let Ok(line) = lines.recv() {
            let mut next = Some(line);
            while let Some(line) = next {
                self.add(&line);
                next = lines.try_recv().ok();
            }
            self.write();
        }
        let left = self.collected.iter().filter(|byte| **byte == b'\n').count();
        (0..left).for_each(|_| self.lost.add());
        left == 0
    }

    fn add(&mut self, line: &str) {
        if self.is_stale.swap(false, Relaxed) {
            self.reopen();
        }
        if self.collected.len() + line.len() > COLLECTED_BYTES_MAX {
            self.write();
        }
        self.taken += line.len();
        if self.collected.is_empty() || self.collected.len() + line.len() <= COLLECTED_BYTES_MAX {
            self.collected.extend_from_slice(line.as_bytes());
        } else {
            self.lost.add();
        }
    }

    /// Writes what was collected. What cannot be written is kept and tried again with the next
    /// line, because a full disk may have room by then.
    fn write(&mut self) {
        let mut written = 0;
        while written < self.collected.len() {
            match self.destination.write(&self.collected[written..]) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.destination.flush();
        if let Some(last) = self.collected[..written].last() {
            self.begins_midline = *last != b'\n';
        }
        self.collected.drain(..written);
        self.waiting.fetch_sub(mem::take(&mut self.taken), Relaxed);
    }

    fn reopen(&mut self) {
        self.write();
        let Destination::File(LogFile { path, .. }) = &self.destination else { return };
        match Destination::open(path.clone()) {
            Ok(opened) => self.destination = opened,
            Err(error) => {
                return log::error!("the access log {path:?} cannot be opened again: {error}");
            }
        }
        // The rest of this line belongs to the old file.
        if mem::take(&mut self.begins_midline) {
            let end = self.collected.iter().position(|byte| *byte == b'\n');
            self.collected.drain(..end.map_or(0, |end| end + 1));
            self.lost.add();
        }
    }
}
