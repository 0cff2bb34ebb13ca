//! `BodyReader`: a body as std reads it.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::body::Body;

/// Reads a body from its beginning to its end: [`Read`], [`BufRead`] and [`Seek`].
///
/// What is in memory is read where it is; of a file
/// [`read_bytes`](crate::SpoolConfig::read_bytes) at a time (256 KiB), which blocks: on another
/// thread, as a rule.
///
/// ```
/// # mod rotor { pub use rotor_body as body; }
/// use rotor::body::Body;
/// use std::io::BufRead;
///
/// let body = Body::from("one\ntwo\n");
/// let lines: Vec<String> = body.reader().lines().collect::<Result<_, _>>().unwrap();
/// assert_eq!(lines, ["one", "two"]);
/// ```
#[derive(Debug)]
pub struct BodyReader {
    body: Body,
    /// How much is read of a file at a time.
    read_bytes: usize,
    position: u64,
    /// What was read of a file.
    buffer: Vec<u8>,
    /// Where in the body that begins.
    buffer_at: u64,
}

impl Body {
    /// Returns a reader of its own place, at the beginning.
    pub fn reader(&self) -> BodyReader {
        let mut read_bytes = 0;
        if let Body::File(file) = self {
            file.read_ahead();
            read_bytes = file.read_bytes();
        }
        let body = self.clone();
        BodyReader { body, read_bytes, position: 0, buffer: Vec::new(), buffer_at: 0 }
    }
}

impl BodyReader {
    /// What of the buffer begins at the position.
    fn buffered(&self) -> &[u8] {
        let from = self.position.checked_sub(self.buffer_at);
        let from = from.and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.buffer.get(from..)).unwrap_or(&[])
    }
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // What would fill the buffer anyway needs no copy through it.
        let is_large = into.len() >= self.read_bytes && self.buffered().is_empty();
        let count = if is_large || self.body.is_in_memory() {
            self.body.read_at(self.position, into)?
        } else {
            let from = self.fill_buf()?;
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            count
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl BufRead for BodyReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.body.is_in_memory() {
            return Ok(self.body.memory_at(self.position));
        }
        if self.buffered().is_empty() {
            self.buffer.resize(self.read_bytes, 0);
            let read = self.body.read_at(self.position, &mut self.buffer);
            // Nothing is taken for read that was not.
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            self.buffer_at = self.position;
            read?;
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, count: usize) {
        self.position = self.position.saturating_add(count as u64);
    }
}

impl Seek for BodyReader {
    /// Behind the end is allowed; nothing is read there.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.body.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a place before the beginning of a body")
        })?;
        Ok(self.position)
    }
}
