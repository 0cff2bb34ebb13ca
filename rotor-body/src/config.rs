//! `SpoolConfig`: the limits of a spool, said once.

use std::path::{Path, PathBuf};

use rotor_core::OffloadPool;

/// Whether a body is on the disk itself when it is handed over, or in the system's memory still.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[doc(alias = "fsync")]
#[non_exhaustive]
pub enum SyncData {
    /// When the system finds the time: a crash of the machine loses what nobody has a name for
    /// anyway.
    #[default]
    Never,
    /// Before it is handed over (fdatasync(2)): 1 GiB takes more than a minute on a disk that writes
    /// 15 MB in a second. Deadlines run in that time, as the `handler_timeout` of an HTTP server.
    BeforeHandedOver,
}

/// The limits of a spool, and where its files are.
///
/// ```
/// # mod rotor { pub use rotor_body as body; }
/// use rotor::body::SpoolConfig;
///
/// # fn main() -> std::io::Result<()> {
/// let spool = SpoolConfig::new(std::env::temp_dir()).all_bytes_max(1 << 30).open()?;
/// assert_eq!(spool.files(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is spooled before `open`"]
pub struct SpoolConfig {
    pub(crate) directory: PathBuf,
    pub(crate) ram_bytes_max: usize,
    pub(crate) body_bytes_max: u64,
    pub(crate) piece_bytes: usize,
    pub(crate) pieces_under_way: usize,
    pub(crate) unwritten_bytes_max: usize,
    pub(crate) all_bytes_max: u64,
    pub(crate) files_max: usize,
    pub(crate) keep_free_bytes: u64,
    pub(crate) read_bytes: usize,
    pub(crate) mode: u32,
    pub(crate) sync: SyncData,
    pub(crate) pool: Option<OffloadPool>,
}

impl SpoolConfig {
    /// The defaults, with files in this directory. On a tmpfs they are in memory that the system
    /// may swap out.
    pub fn new(directory: impl AsRef<Path>) -> SpoolConfig {
        SpoolConfig {
            directory: directory.as_ref().to_owned(),
            ram_bytes_max: 192 << 10,
            body_bytes_max: 1 << 30,
            piece_bytes: 256 << 10,
            pieces_under_way: 2,
            unwritten_bytes_max: 2 << 20,
            all_bytes_max: 8 << 30,
            files_max: 1024,
            keep_free_bytes: 256 << 20,
            read_bytes: 256 << 10,
            mode: 0o600,
            sync: SyncData::Never,
            pool: None,
        }
    }

    /// Bytes of a body that are kept in memory, whatever its receiver allows; a longer one goes to a
    /// file. Default 192 KiB: most bodies are shorter, and a thousand of them are no load.
    pub fn ram_bytes_max(mut self, bytes: usize) -> SpoolConfig {
        self.ram_bytes_max = bytes;
        self
    }

    /// Bytes of a body, whatever its receiver allows. Default 1 GiB. Beyond:
    /// [`TooLarge`](crate::SpoolError::TooLarge).
    pub fn body_bytes_max(mut self, bytes: u64) -> SpoolConfig {
        self.body_bytes_max = bytes;
        self
    }

    /// Bytes that are written at a time. Default 256 KiB, which are 16 blocks of a stream and one
    /// pwritev(2). At least 1.
    pub fn piece_bytes(mut self, bytes: usize) -> SpoolConfig {
        self.piece_bytes = bytes.max(1);
        self
    }

    /// Pieces of one body that are being written at a time; beyond, its peer has to wait. Default 2,
    /// so that one comes while the other is written. At least 1.
    #[doc(alias = "backpressure")]
    pub fn pieces_under_way(mut self, pieces: usize) -> SpoolConfig {
        self.pieces_under_way = pieces.max(1);
        self
    }

    /// Bytes of all bodies together that have come and are not written yet. Default 2 MiB: 4 bodies
    /// at full speed. Beyond, each writes what it has, however little, and its peer waits until that
    /// is done; so it is passed by no more than one block of each body, which has 64 KiB at most. A
    /// body that outgrows memory counts there until there is room for it here.
    #[doc(alias = "backpressure")]
    pub fn unwritten_bytes_max(mut self, bytes: usize) -> SpoolConfig {
        self.unwritten_bytes_max = bytes;
        self
    }

    /// Bytes of all files together; what was announced counts from the beginning, so that nobody is
    /// refused in the middle: a few peers that announce much and send slowly may keep others out,
    /// who had better be bounded by [`body_bytes_max`](SpoolConfig::body_bytes_max). Default 8 GiB.
    /// Beyond: [`NoRoom`](crate::SpoolError::NoRoom).
    pub fn all_bytes_max(mut self, bytes: u64) -> SpoolConfig {
        self.all_bytes_max = bytes;
        self
    }

    /// Files at a time, each with a descriptor. Default 1,024. Beyond:
    /// [`NoRoom`](crate::SpoolError::NoRoom).
    pub fn files_max(mut self, files: usize) -> SpoolConfig {
        self.files_max = files;
        self
    }

    /// Bytes of the file system that are left to others. Default 256 MiB: a full disk stops more
    /// than uploads. Beyond: [`DiskFull`](crate::SpoolError::DiskFull). 0: none, and nothing is
    /// asked.
    pub fn keep_free_bytes(mut self, bytes: u64) -> SpoolConfig {
        self.keep_free_bytes = bytes;
        self
    }

    /// Bytes that a [`BodyReader`](crate::BodyReader) reads of a file at a time. Default 256 KiB: a
    /// fourth of that costs a fifth more. At least 1.
    pub fn read_bytes(mut self, bytes: usize) -> SpoolConfig {
        self.read_bytes = bytes.max(1);
        self
    }

    /// Permissions of the files, less the umask, for who gives one a name himself
    /// ([`BodyFile::file`](crate::BodyFile::file)): [`Body::store_in`](crate::Body::store_in) sets
    /// those of its [`StoreJob::mode`](crate::StoreJob::mode). Default `0o600`: its owner's alone.
    pub fn mode(mut self, mode: u32) -> SpoolConfig {
        self.mode = mode & 0o7777;
        self
    }

    /// Whether the disk is waited for. Default [`SyncData::Never`].
    pub fn sync(mut self, sync: SyncData) -> SpoolConfig {
        self.sync = sync;
        self
    }

    /// The threads that open, write and close the files. Default: two of the spool's own, and as
    /// many jobs as its files can have; so a slow disk does not hold up what else is offloaded.
    pub fn pool(mut self, pool: OffloadPool) -> SpoolConfig {
        self.pool = Some(pool);
        self
    }

    /// The pool that was said, or the default one.
    pub(crate) fn pool_or_default(&self) -> OffloadPool {
        // Opening, closing, syncing: not more at a time than a piece.
        let jobs = self
            .files_max
            .saturating_mul(self.pieces_under_way.saturating_add(1))
            .saturating_add(64);
        self.pool.clone().unwrap_or_else(|| OffloadPool::new(THREADS, jobs))
    }
}

/// Threads of a spool: while one waits for the disk another copies.
const THREADS: usize = 2;
