//! `Content`: the contents of a body's file, on a disk or in a test's memory.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use rotor_stream::Block;

use crate::disk;
use crate::memory_file::MemoryFile;

/// The maximum number of slices for one pwritev(2): a piece has 16 blocks, and few systems take
/// more than 1,024 slices.
const SLICES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) enum Content {
    Disk(Arc<File>),
    Memory(MemoryFile),
    /// The file is being dropped.
    Closed,
}

impl Content {
    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        match self {
            Content::Disk(file) => disk::write_at(file, slices, offset),
            Content::Memory(file) => file.write_at(slices, offset),
            Content::Closed => Err(closed()),
        }
    }

    /// Reads like pread(2).
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Disk(file) => disk::read_at(file, offset, into),
            Content::Memory(file) => Ok(file.read_at(offset, into)),
            Content::Closed => Err(closed()),
        }
    }

    /// Writes the data to the disk itself.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Content::Disk(file) => file.sync_data(),
            Content::Memory(_) | Content::Closed => Ok(()),
        }
    }

    /// Writes all blocks one after the other, beginning at `offset`.
    pub(crate) fn write_blocks(&self, blocks: &[Block], mut offset: u64) -> io::Result<()> {
        for blocks in blocks.chunks(SLICES_MAX) {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            for (slice, block) in slices.iter_mut().zip(blocks) {
                *slice = IoSlice::new(block);
            }
            let mut left = &mut slices[..blocks.len()];
            while left.iter().any(|slice| !slice.is_empty()) {
                match self.write_at(left, offset) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        IoSlice::advance_slices(&mut left, count);
                        offset += count as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the file of a body was closed")
}
