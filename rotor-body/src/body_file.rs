//! `BodyFile`: a body, or a part of one, that is in a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use crate::content::Content;
use crate::disk;
use crate::stored::StoredFile;

/// A part of a file. Clones share the file, which is closed with the last of them.
#[derive(Debug, Clone)]
pub struct BodyFile {
    stored: Arc<StoredFile>,
    offset: u64,
    len: u64,
}

impl BodyFile {
    pub(crate) fn from_file(file: Arc<File>, range: Range<u64>) -> BodyFile {
        let len = range.end.saturating_sub(range.start);
        BodyFile { stored: StoredFile::from_file(file), offset: range.start, len }
    }

    /// Makes one from everything that was written to a file of a spool.
    pub(crate) fn from_stored(stored: Arc<StoredFile>, len: u64) -> BodyFile {
        BodyFile { stored, offset: 0, len }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the file, and the offset in it at which the body begins, for `sendfile`. `None` for
    /// a spool in memory.
    pub fn file(&self) -> Option<(Arc<File>, u64)> {
        match self.stored.content() {
            Content::Disk(file) => Some((file.clone(), self.offset)),
            Content::Memory(_) | Content::Closed => None,
        }
    }

    /// Returns the file, if this is all of it, and it has no name and can be given one.
    pub(crate) fn unnamed_file(&self) -> Option<&File> {
        match self.stored.content() {
            Content::Disk(file) if self.stored.can_be_linked() && self.offset == 0 => {
                // A part is not the whole file.
                (file.metadata().ok()?.len() == self.len).then_some(file)
            }
            _ => None,
        }
    }

    /// Locks the naming of the file.
    pub(crate) fn lock_naming(&self) -> MutexGuard<'_, ()> {
        self.stored.lock_naming()
    }

    /// Reads like pread(2); see [`Body::read_at`](crate::Body::read_at).
    ///
    /// # Errors
    ///
    /// The system's error, and `UnexpectedEof` if the file has become shorter.
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

    /// Returns a part, which must be within its length.
    pub(crate) fn slice(&self, range: Range<u64>) -> BodyFile {
        let len = range.end - range.start;
        BodyFile { stored: self.stored.clone(), offset: self.offset + range.start, len }
    }

    /// Returns how many bytes to read from it at a time.
    pub(crate) fn read_bytes(&self) -> usize {
        self.stored.read_bytes()
    }

    /// Tells the system that the file will be read from its beginning to its end.
    pub(crate) fn read_ahead(&self) {
        if let Content::Disk(file) = self.stored.content() {
            disk::read_ahead(file);
        }
    }
}
