//! `Spool`: the place for bodies that are too long for memory.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rotor_stream::{Block, BytesHeld};
use rustix::fs::Mode;

use crate::config::{SpoolConfig, SyncData};
use crate::content::Content;
use crate::disk;
use crate::memory_file::{Faults, MemoryFile};
use crate::spooling::Bounds;
use crate::stored::{FileManager, FileQuota, StoredFile};

/// The place for bodies that are too long for memory: a directory for files without names, with
/// limits for all of them together. Clones are the same spool, and loops may share it.
///
/// The directory is kept open, so if another directory takes its path later, that has no effect. No
/// files are left in it, whatever happens to a peer; nor if the process is killed, on file systems
/// that support files without names (open(2), `O_TMPFILE`). On other file systems a file has a name
/// until it is open, and a process that is killed just then leaves an empty `.body-*` file.
#[doc(alias = "temporary files")]
#[doc(alias = "tempfile")]
#[derive(Clone)]
pub struct Spool {
    shared: Arc<Shared>,
}

struct Shared {
    config: SpoolConfig,
    storage: Storage,
    manager: Arc<FileManager>,
    unwritten: Arc<BytesHeld>,
}

enum Storage {
    Disk(OwnedFd),
    Memory(Arc<Faults>),
}

impl SpoolConfig {
    /// Opens the directory, and creates a file in it to check that this is possible. This blocks,
    /// so call it before the loop runs.
    ///
    /// # Errors
    ///
    /// The system's error, with the directory's path in its message: the directory does not exist,
    /// or cannot be written to.
    pub fn open(self) -> io::Result<Spool> {
        let directory = disk::open_directory(&self.directory)?;
        disk::open_unnamed(directory.as_fd(), mode(self.mode)).map_err(|error| {
            let what = format!("cannot make files in {}: {error}", self.directory.display());
            io::Error::new(error.kind(), what)
        })?;
        Ok(Spool::new(self, Storage::Disk(directory)))
    }
}

impl Spool {
    /// Makes a spool for tests, whose files are in memory and fail according to `faults`. Writes go
    /// through [`Scope::offload`](rotor_core::Scope::offload), so that they take virtual time on a
    /// simulated loop. The limits of `config` apply, except those that only concern a disk; the
    /// directory is not used.
    pub fn in_memory(config: SpoolConfig, faults: Faults) -> Spool {
        Spool::new(config, Storage::Memory(Arc::new(faults)))
    }

    fn new(config: SpoolConfig, storage: Storage) -> Spool {
        let pool = matches!(storage, Storage::Disk(_)).then(|| config.pool_or_default());
        let manager =
            FileManager::new(pool, config.all_bytes_max, config.files_max, config.read_bytes);
        let unwritten = BytesHeld::new(config.unwritten_bytes_max);
        Spool { shared: Arc::new(Shared { config, storage, manager, unwritten }) }
    }

    /// Returns the number of bytes in all files now, including announced ones.
    pub fn bytes(&self) -> usize {
        self.shared.manager.bytes()
    }

    /// Returns the number of files now.
    pub fn files(&self) -> usize {
        self.shared.manager.files()
    }

    /// Returns how many bytes have arrived and are not written yet.
    pub fn unwritten_bytes(&self) -> usize {
        self.shared.unwritten.bytes()
    }

    pub(crate) fn manager(&self) -> &Arc<FileManager> {
        &self.shared.manager
    }

    pub(crate) fn unwritten(&self) -> &Arc<BytesHeld> {
        &self.shared.unwritten
    }

    /// Returns the limits for a body; `ram_max` and `body_max` are the receiver's.
    pub(crate) fn bounds(&self, ram_max: u64, body_max: u64) -> Bounds {
        let config = &self.shared.config;
        Bounds {
            ram_max: ram_max.min(config.ram_bytes_max as u64),
            body_max: body_max.min(config.body_bytes_max),
            piece_bytes: config.piece_bytes,
            pieces_max: config.pieces_under_way,
            has_files: true,
            syncs: config.sync == SyncData::BeforeHandedOver,
        }
    }

    /// Opens a file, and reserves space for the announced length. Blocks.
    pub(crate) fn open_file(
        &self,
        quota: FileQuota,
        announced: Option<u64>,
    ) -> io::Result<Arc<StoredFile>> {
        let config = &self.shared.config;
        let announced = announced.unwrap_or(0);
        match &self.shared.storage {
            Storage::Disk(directory) => {
                disk::check_length(announced)?;
                disk::check_free(directory, announced, config.keep_free_bytes)?;
                let (file, can_link) = disk::open_unnamed(directory.as_fd(), mode(config.mode))?;
                let is_reserved =
                    announced > 0 && disk::reserve(&file, announced, config.keep_free_bytes)?;
                let reserved = if is_reserved { announced } else { 0 };
                Ok(StoredFile::new(Content::Disk(Arc::new(file)), can_link, reserved, quota))
            }
            Storage::Memory(faults) => {
                let file = MemoryFile::open(faults.clone(), announced)?;
                Ok(StoredFile::new(Content::Memory(file), false, announced, quota))
            }
        }
    }

    /// Writes a piece of a body. Blocks.
    pub(crate) fn write(
        &self,
        stored: &StoredFile,
        blocks: &[Block],
        offset: u64,
    ) -> io::Result<()> {
        let len: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        if let Storage::Disk(directory) = &self.shared.storage
            && offset + len > stored.reserved()
        {
            disk::check_length(offset + len)?;
            disk::check_free(directory, len, self.shared.config.keep_free_bytes)?;
        }
        stored.content().write_blocks(blocks, offset)
    }
}

#[allow(
    clippy::useless_conversion,
    clippy::cast_possible_truncation,
    reason = "modes have 32 bits on some systems and 16 on others"
)]
fn mode(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as rustix::fs::RawMode)
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = match &self.shared.storage {
            Storage::Disk(_) => self.shared.config.directory.display().to_string(),
            Storage::Memory(_) => "memory".into(),
        };
        write!(f, "Spool({} files, {} bytes in {storage})", self.files(), self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn unreserved_bytes_are_written_only_if_enough_space_stays_free() {
        let config = SpoolConfig::new(std::env::temp_dir()).keep_free_bytes(u64::MAX);
        let spool = config.open().expect("it can be written");
        let blocks = [Block::from(vec![7; 1_000])];
        for (reserved, offset, is_ok) in
            [(0, 0, false), (999, 0, false), (1_000, 0, true), (1_999, 1_000, false)]
        {
            let directory = File::open(std::env::temp_dir()).expect("there is one");
            let mode = Mode::RUSR | Mode::WUSR;
            let (file, _) = disk::open_unnamed(directory.as_fd(), mode).expect("it can be made");
            let quota = spool.manager().acquire(2_000).expect("there is room");
            let stored = StoredFile::new(Content::Disk(Arc::new(file)), false, reserved, quota);
            let written = spool.write(&stored, &blocks, offset);
            assert_eq!(written.is_ok(), is_ok, "{reserved} {offset}");
        }
    }

    #[test]
    fn announced_bytes_are_reserved_if_the_file_system_supports_it() {
        let config = SpoolConfig::new(std::env::temp_dir()).keep_free_bytes(0);
        let spool = config.open().expect("it can be written");
        for announced in [None, Some(0), Some(100_000)] {
            let quota = spool.manager().acquire(announced.unwrap_or(0)).expect("there is room");
            let stored = spool.open_file(quota, announced).expect("it can be made");
            let Content::Disk(file) = stored.content() else { panic!("it is on a disk") };
            let len = file.metadata().expect("it is open").len();
            assert_eq!(len, stored.reserved(), "{announced:?}");
            assert!([0, announced.unwrap_or(0)].contains(&len), "{announced:?}");
        }
    }
}
