//! `MemoryFile`: a file of a spool in memory; `Faults`: how it fails.

use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

/// How the files of a spool in memory fail, to test a program with a full or failing disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Faults {
    write_bytes_max: Option<usize>,
    full_at: Option<u64>,
    broken_at: Option<u64>,
    without_descriptor: bool,
    without_directory: bool,
}

impl Faults {
    /// Makes faults without any failure.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Limits how many bytes a write takes at a time; at least 1.
    pub fn short_writes(mut self, bytes: usize) -> Faults {
        self.write_bytes_max = Some(bytes.max(1));
        self
    }

    /// Limits the length of each file: beyond it, writing or reserving returns ENOSPC.
    pub fn full_at(mut self, bytes: u64) -> Faults {
        self.full_at = Some(bytes);
        self
    }

    /// Makes a write that reaches this byte of its file fail with EIO.
    pub fn broken_at(mut self, byte: u64) -> Faults {
        self.broken_at = Some(byte);
        self
    }

    /// Makes opening files fail with EMFILE.
    pub fn without_descriptor(mut self) -> Faults {
        self.without_descriptor = true;
        self
    }

    /// Makes opening files fail with ENOENT, as if the directory were gone.
    pub fn without_directory(mut self) -> Faults {
        self.without_directory = true;
        self
    }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    faults: Arc<Faults>,
}

impl MemoryFile {
    /// Opens a file, with reserved space for so many bytes.
    pub(crate) fn open(faults: Arc<Faults>, reserved: u64) -> io::Result<MemoryFile> {
        if faults.without_descriptor {
            return Err(Errno::MFILE.into());
        }
        if faults.without_directory {
            return Err(Errno::NOENT.into());
        }
        if faults.full_at.is_some_and(|full| reserved > full) {
            return Err(Errno::NOSPC.into());
        }
        Ok(MemoryFile { bytes: Mutex::new(Vec::new()), faults })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes like pwritev(2).
    pub(crate) fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let Faults { write_bytes_max, full_at, broken_at, .. } = *self.faults;
        let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut count = wanted.min(write_bytes_max.unwrap_or(usize::MAX));
        if broken_at.is_some_and(|byte| (offset..offset + count as u64).contains(&byte)) {
            return Err(Errno::IO.into());
        }
        if let Some(full) = full_at {
            // The part that fits is written, as on a disk.
            count = count.min(usize::try_from(full.saturating_sub(offset)).unwrap_or(usize::MAX));
        }
        if count == 0 && wanted > 0 {
            return Err(Errno::NOSPC.into());
        }
        let mut bytes = self.lock();
        let from = offset as usize;
        if bytes.len() < from + count {
            bytes.resize(from + count, 0);
        }
        let mut left = &mut bytes[from..from + count];
        for slice in slices {
            let len = slice.len().min(left.len());
            let (now, later) = left.split_at_mut(len);
            now.copy_from_slice(&slice[..len]);
            left = later;
        }
        Ok(count)
    }

    /// Reads like pread(2).
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let bytes = self.lock();
        let from = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
        let from = from.unwrap_or(&[]);
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a write of two slices, five bytes in total, at this offset.
    fn write(faults: Faults, offset: u64) -> Result<usize, Errno> {
        let file = MemoryFile::open(Arc::new(faults), 0).expect("that is none of its faults");
        let slices = [IoSlice::new(b"ab"), IoSlice::new(b"cde")];
        let written = file.write_at(&slices, offset);
        let written = written.map_err(|error| Errno::from_io_error(&error).expect("the system's"));
        let mut read = [0; 10];
        let count = file.read_at(offset, &mut read);
        assert_eq!(&read[..count], &b"abcde"[..written.unwrap_or(0)]);
        written
    }

    #[test]
    fn a_write_fails_exactly_at_the_configured_fault() {
        for (faults, offset, expected) in [
            (Faults::none(), 7, Ok(5)),
            (Faults::none().short_writes(0), 0, Ok(1)),
            (Faults::none().short_writes(3), 7, Ok(3)),
            (Faults::none().short_writes(9), 0, Ok(5)),
            (Faults::none().full_at(5), 0, Ok(5)),
            (Faults::none().full_at(4), 0, Ok(4)),
            (Faults::none().full_at(7), 6, Ok(1)),
            (Faults::none().full_at(7), 7, Err(Errno::NOSPC)),
            (Faults::none().full_at(7), 8, Err(Errno::NOSPC)),
            (Faults::none().broken_at(5), 0, Ok(5)),
            (Faults::none().broken_at(4), 0, Err(Errno::IO)),
            (Faults::none().broken_at(4), 5, Ok(5)),
            (Faults::none().short_writes(2).broken_at(4), 0, Ok(2)),
        ] {
            assert_eq!(write(faults.clone(), offset), expected, "{faults:?} at {offset}");
        }
    }

    #[test]
    fn a_file_opens_only_if_its_reservation_fits() {
        let open = |faults, reserved| match MemoryFile::open(Arc::new(faults), reserved) {
            Ok(_) => None,
            Err(error) => Errno::from_io_error(&error),
        };
        assert_eq!(open(Faults::none().full_at(7), 7), None);
        assert_eq!(open(Faults::none().full_at(7), 8), Some(Errno::NOSPC));
        assert_eq!(open(Faults::none().without_descriptor(), 0), Some(Errno::MFILE));
        assert_eq!(open(Faults::none().without_directory(), 0), Some(Errno::NOENT));
    }
}
