//! `Writer`: the thread that writes lines, and their destination.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::Receiver;

use super::lost_lines::LostLines;

/// Where lines are written.
pub(super) enum Destination {
    /// `Stdout` flushes its own buffer at each line end, which would be a system call per line.
    StandardOutput(BufWriter<Stdout>),
    File(PathBuf, BufWriter<File>),
    #[cfg(test)]
    Test(Box<dyn Write + Send>),
}

impl Destination {
    pub(super) fn open(path: PathBuf) -> io::Result<Destination> {
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        Ok(Destination::File(path, BufWriter::new(file)))
    }

    fn out(&mut self) -> &mut dyn Write {
        match self {
            Destination::StandardOutput(out) => out,
            Destination::File(_, out) => out,
            #[cfg(test)]
            Destination::Test(out) => out,
        }
    }
}

pub(super) struct Writer {
    destination: Destination,
    lost: LostLines,
    is_stale: Arc<AtomicBool>,
    /// Bytes of the lines that wait, including the line that is being written.
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    pub(super) fn new(
        destination: Destination,
        lost: LostLines,
        is_stale: Arc<AtomicBool>,
        waiting: Arc<AtomicUsize>,
    ) -> Writer {
        Writer { destination, lost, is_stale, waiting }
    }

    /// Writes lines until all senders are dropped.
    pub(super) fn run(mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            let mut next = Some(line);
            while let Some(line) = next {
                self.write(&line);
                next = lines.try_recv().ok();
            }
            // The buffer keeps what could not be written, and tries again at the next flush.
            if self.destination.out().flush().is_err() {
                self.lost.add();
            }
        }
    }

    fn write(&mut self, line: &str) {
        if self.is_stale.swap(false, Relaxed) {
            self.reopen();
        }
        // Tried again each time, because a full disk may have room by now.
        if self.destination.out().write_all(line.as_bytes()).is_err() {
            self.lost.add();
        }
        self.waiting.fetch_sub(line.len(), Relaxed);
    }

    fn reopen(&mut self) {
        let Destination::File(path, out) = &mut self.destination else { return };
        if out.flush().is_err() {
            self.lost.add();
        }
        match Destination::open(path.clone()) {
            Ok(opened) => self.destination = opened,
            Err(error) => log::error!("the access log {path:?} cannot be opened again: {error}"),
        }
    }
}
