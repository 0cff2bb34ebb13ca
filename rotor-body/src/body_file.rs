//! `BodyFile`: a body, or a part of one, that is in a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use crate::content::Content;
use crate::disk;
use crate::stored::Stored;

/// A part of a file. Clones share the file, which is closed with the last of them.
#[derive(Debug, Clone)]
pub struct BodyFile {
    stored: Arc<Stored>,
    offset: u64,
    len: u64,
}

impl BodyFile {
    pub(crate) fn of_file(file: Arc<File>, range: Range<u64>) -> BodyFile {
        let len = range.end.saturating_sub(range.start);
        BodyFile { stored: Stored::of_file(file), offset: range.start, len }
    }

    /// All that was written to a file of a spool.
    pub(crate) fn of_stored(stored: Arc<Stored>, len: u64) -> BodyFile {
        BodyFile { stored, offset: 0, len }
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file, and where in it the body begins: for `sendfile`. A spool in memory has none.
    pub fn file(&self) -> Option<(Arc<File>, u64)> {
        match self.stored.content() {
            Content::Disk(file) => Some((file.clone(), self.offset)),
            Content::Memory(_) | Content::Closed => None,
        }
    }

    /// The whole file, where it has no name and can be given one.
    pub(crate) fn unnamed(&self) -> Option<&File> {
        match self.stored.content() {
            Content::Disk(file) if self.stored.can_be_linked() && self.offset == 0 => {
                // A part of it is not all of it.
                (file.metadata().ok()?.len() == self.len).then_some(file)
            }
            _ => None,
        }
    }

    /// Has the others wait who give the file a name.
    pub(crate) fn naming(&self) -> MutexGuard<'_, ()> {
        self.stored.naming()
    }

    /// Reads as pread(2) does; see [`Body::read_at`](crate::Body::read_at).
    ///
    /// # Errors
    ///
    /// What the system says, and `UnexpectedEof` where the file has become shorter.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let count = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(0);
        }
        match self.stored.content().read_at(self.offset + offset, &mut into[..count])? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file of a body is shorter than the body",
            )),
            count => Ok(count),
        }
    }

    /// A part, within its length.
    pub(crate) fn slice(&self, range: Range<u64>) -> BodyFile {
        let len = range.end - range.start;
        BodyFile { stored: self.stored.clone(), offset: self.offset + range.start, len }
    }

    /// Bytes that are to be read of it at a time.
    pub(crate) fn read_bytes(&self) -> usize {
        self.stored.read_bytes()
    }

    /// Tells the system that it will be read from its beginning to its end.
    pub(crate) fn read_ahead(&self) {
        if let Content::Disk(file) = self.stored.content() {
            disk::read_ahead(file);
        }
    }
}
