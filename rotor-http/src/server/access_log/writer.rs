//! `Writer`: the thread that writes lines, and where they go.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::Receiver;

use super::lost_lines::LostLines;

/// Where lines go.
pub(super) enum Destination {
    /// Its own buffer ends with each line, which would be a write each.
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
    /// Octets of the lines that wait, those that it has not written among them.
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

    /// Writes lines until there will be no more.
    pub(super) fn run(mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            let mut next = Some(line);
            while let Some(line) = next {
                self.write(&line);
                next = lines.try_recv().ok();
            }
            // The buffer keeps the part that could not be written, and tries again.
            if self.destination.out().flush().is_err() {
                self.lost.add();
            }
        }
    }

    fn write(&mut self, line: &str) {
        if self.is_stale.swap(false, Relaxed) {
            self.reopen();
        }
        // A disk that is full may have room again.
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
