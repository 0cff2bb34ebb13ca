//! `BodyReader`: reads a body through std's traits.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::body::Body;

/// Reads a body from its beginning to its end: [`Read`], [`BufRead`] and [`Seek`].
///
/// A body in memory is read without a buffer. A file is read
/// [`read_bytes`](crate::SpoolConfig::read_bytes) at a time (256 KiB), which blocks, so it is
/// usually read on another thread.
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
    /// How many bytes of a file are read at a time.
    read_bytes: usize,
    position: u64,
    /// The bytes that were read from a file, followed by old contents: the memory is zeroed once,
    /// and not before each read.
    buffer: Vec<u8>,
    /// How many bytes of the buffer were read.
    filled: usize,
    /// The position in the body at which the buffer begins.
    buffer_at: u64,
}

impl Body {
    /// Returns a reader at the beginning of the body; each reader has a position of its own.
    pub fn reader(&self) -> BodyReader {
        let mut read_bytes = 0;
        if let Body::File(file) = self {
            file.read_ahead();
            read_bytes = file.read_bytes();
        }
        let body = self.clone();
        BodyReader { body, read_bytes, position: 0, buffer: Vec::new(), filled: 0, buffer_at: 0 }
    }
}

impl BodyReader {
    /// Returns the part of the buffer that begins at the position.
    fn buffered(&self) -> &[u8] {
        let from = self.position.checked_sub(self.buffer_at);
        let from = from.and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.buffer[..self.filled].get(from..)).unwrap_or(&[])
    }

    /// Returns how much to read from a file now: at most the rest of the body.
    fn next_read_len(&self) -> usize {
        let left = self.body.len().saturating_sub(self.position);
        self.read_bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
    }
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // A read that would fill the buffer anyway does not use it, which saves a copy.
        let is_large = into.len() >= self.next_read_len() && self.buffered().is_empty();
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
            let wanted = self.next_read_len();
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            // If the read fails, the buffer is empty.
            self.filled = 0;
            self.filled = self.body.read_at(self.position, &mut self.buffer[..wanted])?;
            self.buffer_at = self.position;
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, count: usize) {
        self.position = self.position.saturating_add(count as u64);
    }
}

impl Seek for BodyReader {
    /// Sets the position. It may be after the end; nothing is read there.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use super::*;

    /// A body of `len` bytes in a file.
    fn body_of(len: usize) -> Body {
        let directory = rotor_test_kit::Directory::create();
        let path = directory.join("body");
        let file = File::options().create_new(true).read(true).write(true).open(path);
        let file = file.expect("a file can be made");
        file.write_all_at(&vec![b'x'; len], 0).expect("there is space");
        Body::from_file(Arc::new(file), 0..len as u64)
    }

    #[test]
    fn the_buffer_is_no_larger_than_the_body() {
        for len in [1, 100, 256 << 10, (256 << 10) + 1, 1 << 20] {
            let mut reader = body_of(len).reader();
            let mut read = 0;
            loop {
                let count = reader.fill_buf().expect("it can be read").len();
                if count == 0 {
                    break;
                }
                reader.consume(count);
                read += count;
            }
            assert_eq!(read, len);
            // A buffer of 64 bytes is small enough for any length.
            assert!(reader.buffer.capacity() <= len.clamp(64, 256 << 10), "of {len} bytes");
        }
    }

    #[test]
    fn a_read_of_the_whole_rest_uses_no_buffer() {
        let mut reader = body_of(100).reader();
        let mut into = [0; 100];
        assert_eq!(reader.read(&mut into[..99]).expect("it can be read"), 99);
        assert_eq!(reader.buffer.len(), 100);
        let mut reader = body_of(100).reader();
        assert_eq!(reader.read(&mut into).expect("it can be read"), 100);
        assert_eq!(reader.read(&mut into).expect("it is the end"), 0);
        assert_eq!(reader.buffer.len(), 0);
    }

    #[test]
    fn stale_buffer_contents_are_not_returned() {
        let mut reader = body_of(10).reader();
        assert_eq!(reader.fill_buf().expect("it can be read").len(), 10);
        reader.seek(SeekFrom::End(0)).expect("it is a place");
        assert!(reader.fill_buf().expect("it is the end").is_empty());
        reader.seek(SeekFrom::Start(7)).expect("it is a place");
        assert_eq!(reader.fill_buf().expect("it can be read"), b"xxx");
        reader.consume(usize::MAX);
        assert!(reader.fill_buf().expect("it is behind the end").is_empty());
    }
}
