//! `SpoolConfig`: the settings and limits of a spool.

use std::path::{Path, PathBuf};

use rotor_core::OffloadPool;

/// Whether a body is on the disk, or only in the system's cache, when it is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[doc(alias = "fsync")]
#[non_exhaustive]
pub enum SyncData {
    /// The system writes it to the disk at some time. A crash of the machine loses only a file that
    /// has no name anyway.
    #[default]
    Never,
    /// It is written to the disk before it is handed over (fdatasync(2)): 1 GiB takes more than a
    /// minute on a disk that writes 15 MB a second. Deadlines run during that time, such as the
    /// `handler_timeout` of an HTTP server.
    BeforeHandedOver,
}

/// The limits of a spool, and the directory of its files.
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
    /// Returns the defaults, with files in this directory. On a tmpfs the files are in memory,
    /// which the system may swap out.
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

    /// Sets how many bytes of a body are kept in memory, even if its receiver allows more; a longer
    /// body goes to a file. Default 192 KiB: most bodies are shorter, and a thousand of them need
    /// little memory.
    pub fn ram_bytes_max(mut self, bytes: usize) -> SpoolConfig {
        self.ram_bytes_max = bytes;
        self
    }

    /// Sets the maximum length of a body in bytes, even if its receiver allows more. Default 1 GiB.
    /// Beyond: [`TooLarge`](crate::SpoolError::TooLarge), as for a file that would be longer than
    /// the process may make one (`RLIMIT_FSIZE`).
    pub fn body_bytes_max(mut self, bytes: u64) -> SpoolConfig {
        self.body_bytes_max = bytes;
        self
    }

    /// Sets how many bytes are written at a time. Default 256 KiB, which is 16 blocks of a stream
    /// and one pwritev(2). At least 1.
    pub fn piece_bytes(mut self, bytes: usize) -> SpoolConfig {
        self.piece_bytes = bytes.max(1);
        self
    }

    /// Sets how many pieces of one body may be written at a time; beyond that, its peer has to
    /// wait. Default 2, so that one arrives while the other is written. At least 1.
    #[doc(alias = "backpressure")]
    pub fn pieces_under_way(mut self, pieces: usize) -> SpoolConfig {
        self.pieces_under_way = pieces.max(1);
        self
    }

    /// Sets how many bytes of all bodies together may have arrived without being written yet.
    /// Default 2 MiB: 4 bodies at full speed. Beyond that, each body writes what it has, however
    /// little, and its peer waits until that is done. So the limit is exceeded by at most what each
    /// body adds at once: with HTTP/1.1 at most 64 KiB, with HTTP/2 at most the window of a stream
    /// (by default 64 KiB for a server, 256 KiB for a client). A body that moves from memory to a
    /// file still counts as a body in memory until there is room for it under this limit.
    #[doc(alias = "backpressure")]
    pub fn unwritten_bytes_max(mut self, bytes: usize) -> SpoolConfig {
        self.unwritten_bytes_max = bytes;
        self
    }

    /// Sets how many bytes all files together may have. An announced length counts from the
    /// beginning, so that no body is refused in the middle. Therefore a few peers that announce
    /// much and send slowly may keep others out; limit them by
    /// [`body_bytes_max`](SpoolConfig::body_bytes_max). Default 8 GiB. Beyond:
    /// [`NoRoom`](crate::SpoolError::NoRoom).
    pub fn all_bytes_max(mut self, bytes: u64) -> SpoolConfig {
        self.all_bytes_max = bytes;
        self
    }

    /// Sets the maximum number of files at a time, each with a descriptor. Default 1,024. Beyond:
    /// [`NoRoom`](crate::SpoolError::NoRoom).
    ///
    /// A body that is announced longer than [`ram_bytes_max`](SpoolConfig::ram_bytes_max) has a file
    /// from its beginning. So peers that send as many bodies slowly keep others out; limit the
    /// connections of each peer ([`per_peer`](rotor_stream::AcceptConfig::per_peer)).
    pub fn files_max(mut self, files: usize) -> SpoolConfig {
        self.files_max = files;
        self
    }

    /// Sets how many bytes of the file system are left free for other programs. Default 256 MiB: a
    /// full disk stops more than uploads. Beyond: [`DiskFull`](crate::SpoolError::DiskFull). With 0
    /// nothing is kept free, and free space is not checked.
    pub fn keep_free_bytes(mut self, bytes: u64) -> SpoolConfig {
        self.keep_free_bytes = bytes;
        self
    }

    /// Sets how many bytes of a file a [`BodyReader`](crate::BodyReader) reads at a time. Default
    /// 256 KiB: with a fourth of that, reading costs a fifth more. At least 1.
    pub fn read_bytes(mut self, bytes: usize) -> SpoolConfig {
        self.read_bytes = bytes.max(1);
        self
    }

    /// Sets the permissions of the files, less the umask. They matter if a program gives a file a
    /// name itself ([`BodyFile::file`](crate::BodyFile::file));
    /// [`Body::store_in`](crate::Body::store_in) sets those of its
    /// [`StoreJob::mode`](crate::StoreJob::mode). Default `0o600`: only for the owner.
    pub fn mode(mut self, mode: u32) -> SpoolConfig {
        self.mode = mode & 0o7777;
        self
    }

    /// Sets whether to wait for the disk. Default [`SyncData::Never`].
    pub fn sync(mut self, sync: SyncData) -> SpoolConfig {
        self.sync = sync;
        self
    }

    /// Sets the threads that open, write and close the files. Default: a pool of two threads for
    /// this spool, with room for all the jobs of its files, so that a slow disk does not hold up
    /// other offloaded work.
    pub fn pool(mut self, pool: OffloadPool) -> SpoolConfig {
        self.pool = Some(pool);
        self
    }

    /// Returns the configured pool, or the default one.
    pub(crate) fn pool_or_default(&self) -> OffloadPool {
        // Opening, closing and syncing: no more jobs at a time than for one piece.
        let jobs = self
            .files_max
            .saturating_mul(self.pieces_under_way.saturating_add(1))
            .saturating_add(64);
        self.pool.clone().unwrap_or_else(|| OffloadPool::new(THREADS, jobs))
    }
}

/// The threads of a spool: while one waits for the disk, the other copies.
const THREADS: usize = 2;
