//! `StoredFile`: a file that holds a body; `FileManager`: what all files of a spool share, which
//! also closes them.

use std::fmt;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::backend::OffloadJob;
use rotor_core::{Future, OffloadPool, Port, Scope};
use rotor_stream::{BytesHeld, NoRoom, Share};

use crate::content::Content;

/// How many bytes are read at a time from a file that is not a spool's.
const READ_BYTES: usize = 256 << 10;

/// A file that holds a body, in a spool or provided by the caller. It is closed with the last part
/// of the body, by another thread, because freeing a large file takes a while.
pub(crate) struct StoredFile {
    content: Content,
    can_be_linked: bool,
    /// How many bytes from its beginning have reserved space, whatever else is written.
    reserved: u64,
    /// Held while the file is being given a name.
    naming: Mutex<()>,
    quota: Option<FileQuota>,
}

/// What a file holds of its spool.
#[derive(Debug)]
pub(crate) struct FileQuota {
    manager: Arc<FileManager>,
    /// Its part of the bytes of all files, which grows while the body arrives.
    bytes: Mutex<Share>,
    /// Its part of the number of files.
    slot: Share,
}

/// What the files of a spool share.
#[derive(Debug)]
pub(crate) struct FileManager {
    /// The threads that work on the files; without it, the loop's own pool does.
    pool: Option<OffloadPool>,
    all_bytes: Arc<BytesHeld>,
    files: Arc<BytesHeld>,
    read_bytes: usize,
    /// Files whose body is gone, but that an output still sends.
    still_open: Mutex<Vec<PendingClose>>,
}

/// A file that must be closed, and what it holds of its spool until then.
#[derive(Debug)]
struct PendingClose {
    file: Arc<File>,
    bytes: Share,
    slot: Share,
}

impl StoredFile {
    /// Makes one from a file that is not a spool's.
    pub(crate) fn from_file(file: Arc<File>) -> Arc<StoredFile> {
        let content = Content::Disk(file);
        let (can_be_linked, reserved, naming) = (false, 0, Mutex::new(()));
        Arc::new(StoredFile { content, can_be_linked, reserved, naming, quota: None })
    }

    pub(crate) fn new(
        content: Content,
        can_be_linked: bool,
        reserved: u64,
        quota: FileQuota,
    ) -> Arc<StoredFile> {
        let (naming, quota) = (Mutex::new(()), Some(quota));
        Arc::new(StoredFile { content, can_be_linked, reserved, naming, quota })
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Returns whether the file has no name and can be given one.
    pub(crate) fn can_be_linked(&self) -> bool {
        self.can_be_linked
    }

    /// Locks the naming of the file, because all its names have the same permissions.
    pub(crate) fn lock_naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many bytes from its beginning have reserved space, whatever else is written.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Sets how many bytes the file takes of the total.
    pub(crate) fn set_bytes(&self, bytes: u64) -> Result<(), NoRoom> {
        self.quota.as_ref().map_or(Ok(()), |quota| quota.set_bytes(bytes))
    }

    /// Returns how many bytes are read from it at a time.
    pub(crate) fn read_bytes(&self) -> usize {
        self.quota.as_ref().map_or(READ_BYTES, |quota| quota.manager.read_bytes)
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        let Some(FileQuota { manager, bytes, slot }) = self.quota.take() else { return };
        // Moved out of here: dropping the last reference closes the file.
        if let Content::Disk(file) = std::mem::replace(&mut self.content, Content::Closed) {
            let bytes = bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
            manager.close(PendingClose { file, bytes, slot });
        }
    }
}

impl FileQuota {
    fn set_bytes(&self, bytes: u64) -> Result<(), NoRoom> {
        let bytes = usize::try_from(bytes).map_err(|_| NoRoom)?;
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .set(bytes, &self.manager.all_bytes)
    }
}

impl FileManager {
    pub(crate) fn new(
        pool: Option<OffloadPool>,
        all_bytes_max: u64,
        files_max: usize,
        read_bytes: usize,
    ) -> Arc<FileManager> {
        Arc::new(FileManager {
            pool,
            all_bytes: BytesHeld::new(usize::try_from(all_bytes_max).unwrap_or(usize::MAX)),
            files: BytesHeld::new(files_max),
            read_bytes,
            still_open: Mutex::default(),
        })
    }

    /// Takes a place for a file, with as many bytes as are known.
    pub(crate) fn acquire(self: &Arc<Self>, bytes: u64) -> Result<FileQuota, NoRoom> {
        self.close_unused();
        let mut slot = Share::NONE;
        slot.set(1, &self.files)?;
        let quota = FileQuota { manager: self.clone(), bytes: Mutex::default(), slot };
        quota.set_bytes(bytes)?;
        Ok(quota)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.all_bytes.bytes()
    }

    pub(crate) fn files(&self) -> usize {
        self.files.bytes()
    }

    /// Runs `work` on another thread; its result wakes the machine.
    ///
    /// # Errors
    ///
    /// The work, if no thread has room for it.
    pub(crate) fn run<C, T, F>(&self, work: F, scope: &Scope<'_, C>) -> Result<Future<T>, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let Some(pool) = &self.pool else {
            return scope.offload(work).map_err(|full| full.into_job());
        };
        let mut state = Err(work);
        pool.offer(&mut || {
            let (port, future) = scope.create_future();
            match std::mem::replace(&mut state, Ok(future)) {
                Err(work) => offload_job(work, port),
                // If a pool calls `make` twice, it gets a job that does nothing.
                Ok(_) => Box::new(|| {}),
            }
        });
        state
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PendingClose>> {
        self.still_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, closing: PendingClose) {
        if Arc::strong_count(&closing.file) > 1 {
            self.lock().push(closing);
        } else {
            self.close_on_pool(closing);
        }
        self.close_unused();
    }

    /// Closes the files that no output sends any more. Their places are free at once: a new file
    /// that takes one is opened by a job that is queued behind the closing.
    fn close_unused(&self) {
        let unused: Vec<PendingClose> = {
            let mut still_open = self.lock();
            if still_open.is_empty() {
                return;
            }
            still_open.extract_if(.., |closing| Arc::strong_count(&closing.file) == 1).collect()
        };
        for PendingClose { file, bytes, slot } in unused {
            drop((bytes, slot));
            self.close_on_pool(file);
        }
    }

    /// Lets another thread drop `closing`, and with it close its file.
    fn close_on_pool<T: Send + 'static>(&self, closing: T) {
        let mut closing = Some(closing);
        if let Some(pool) = &self.pool {
            pool.offer(&mut || {
                let closing = closing.take();
                Box::new(move || drop(closing))
            });
        }
        // If no thread has room, it is closed here: late is better than never.
    }
}

fn offload_job<T, F>(work: F, port: Port<T>) -> OffloadJob
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Box::new(move || {
        // If the machine has ended, the result is not needed.
        if !port.is_cancelled() {
            let _nobody_waits = port.set(work());
        }
    })
}

impl fmt::Debug for StoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("content", &self.content).finish_non_exhaustive()
    }
}
