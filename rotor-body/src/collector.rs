//! `Collector`: receives a body in pieces, and makes one value of it.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rotor_core::{Future, Outcome, Scope};
use rotor_stream::{Block, BytesHeld, Share};

use crate::blocks::Blocks;
use crate::body::Body;
use crate::body_file::BodyFile;
use crate::error::SpoolError;
use crate::spool::Spool;
use crate::spooling::{Action, Bounds, Spooling};
use crate::stored::StoredFile;

/// The limits of a body, and what is known about it before it arrives.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The maximum number of its bytes in memory; a longer body goes to a file.
    pub ram_max: usize,
    /// The maximum length of the body in bytes.
    pub bytes_max: u64,
    /// The announced length, if any. This many bytes count among the spool's bytes, and are
    /// reserved on its disk, from the beginning. Further bytes count as they arrive, and the body
    /// may also end earlier. The protocol decides whether a body may be shorter or longer than
    /// announced; HTTP refuses both.
    pub announced: Option<u64>,
    /// The memory that all bodies together may hold, not counting files.
    pub memory: Arc<BytesHeld>,
}

/// How the collection of a body goes on.
#[derive(Debug)]
#[must_use = "what comes while it is to be held may be lost"]
pub enum Progress {
    /// More may be added.
    More,
    /// Nothing more may be added before [`Collector::poll`] allows it: leave the rest with the
    /// peer.
    Hold,
    /// The body is complete.
    Done(Body),
}

/// Collects one body: in memory while it is short, otherwise in a file of a [`Spool`].
///
/// **It never blocks.** Slow operations are done by other threads, which wake the machine; then
/// call [`poll`](Collector::poll). If a collector is dropped, or has failed, nothing is left
/// behind.
///
/// HTTP servers and clients have one inside; this type is for other protocols.
///
/// ```no_run
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; pub use rotor_body as body; }
/// use rotor::body::{Body, Collector, Expected, Progress, Spool, SpoolError};
/// use rotor::Scope;
/// use rotor::stream::{Block, BytesHeld};
///
/// fn begin<C>(spool: &Spool, scope: &Scope<'_, C>) -> Result<Collector, SpoolError> {
///     let memory = BytesHeld::new(64 << 20);
///     let expected = Expected { ram_max: 64 << 10, bytes_max: 1 << 30, announced: None, memory };
///     Collector::begin(Some(spool), expected, scope)
/// }
///
/// fn came<C>(collector: &mut Collector, block: Block, scope: &Scope<'_, C>) -> Result<bool, SpoolError> {
///     Ok(matches!(collector.add(block, scope)?, Progress::More))
/// }
/// ```
pub struct Collector {
    spooling: Spooling,
    spool: Option<Spool>,
    /// The number of bytes that were counted when its file was requested: the announced length.
    announced: u64,
    /// The bytes in memory that are counted, as long as the body stays there.
    held: Share,
    /// The same for a body that goes to a file. The jobs that write share it, because bytes that
    /// wait for a thread are in memory even after the peer and the collector are gone.
    unwritten: Option<Arc<Mutex<Unwritten>>>,
    memory: Arc<BytesHeld>,
    /// The number of bytes that are being written.
    bytes_in_flight: usize,
    file: Option<Arc<StoredFile>>,
    jobs: Vec<Future<JobResult>>,
    finished_body: Option<Body>,
}

/// The counted bytes in memory of a body that goes to a file. They are in one of the two shares.
struct Unwritten {
    /// Among the bodies in memory, until the other total has room.
    held: Share,
    /// Among the bytes that wait for the disk.
    queued: Share,
}

/// The result of a job on another thread.
enum JobResult {
    Opened(io::Result<Arc<StoredFile>>),
    /// The blocks are returned, so that their memory goes back to the thread that lent it.
    Written(Vec<Block>, io::Result<()>),
    Synced(io::Result<()>),
}

impl Collector {
    /// Begins to collect a body. Without a spool, a body that does not fit into memory is too
    /// large.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the announced length is; `NoRoom` if all bodies together hold too much.
    pub fn begin<C>(
        spool: Option<&Spool>,
        expected: Expected,
        scope: &Scope<'_, C>,
    ) -> Result<Collector, SpoolError> {
        let Expected { ram_max, bytes_max, announced, memory } = expected;
        let bounds = match spool {
            Some(spool) => spool.bounds(ram_max as u64, bytes_max),
            None => Bounds::memory(ram_max as u64, bytes_max),
        };
        let mut collector = Collector {
            spooling: Spooling::new(bounds, announced)?,
            spool: spool.cloned(),
            announced: announced.unwrap_or(0),
            held: Share::NONE,
            unwritten: None,
            memory,
            bytes_in_flight: 0,
            file: None,
            jobs: Vec::new(),
            finished_body: None,
        };
        collector.advance(scope)?;
        Ok(collector)
    }

    /// Returns whether more may be added now.
    pub fn takes_more(&self) -> bool {
        self.spooling.takes_more()
    }

    /// Returns whether the body will be in memory, according to its announced length or because
    /// there is no spool. Then it should be read in few turns.
    pub fn stays_in_memory(&self) -> bool {
        self.spooling.stays_in_memory()
    }

    /// Adds a block that has arrived. After [`Progress::Hold`] a block is accepted all the same,
    /// but costs memory.
    ///
    /// # Errors
    ///
    /// The body cannot be kept, and the collector has failed; drop it. Or `AfterEnd`, the caller's
    /// mistake: the body is unchanged since its [`end`](Collector::end), and goes on.
    pub fn add<C>(&mut self, block: Block, scope: &Scope<'_, C>) -> Result<Progress, SpoolError> {
        self.spooling.add(block)?;
        self.count_memory()?;
        self.advance(scope)?;
        Ok(self.progress())
    }

    /// Says that the body is complete.
    ///
    /// # Errors
    ///
    /// The body cannot be kept, and the collector has failed; drop it.
    pub fn end<C>(&mut self, scope: &Scope<'_, C>) -> Result<Progress, SpoolError> {
        self.spooling.end();
        self.advance(scope)?;
        Ok(self.progress())
    }

    /// Handles a wake-up of the machine: checks what other threads have finished, possibly nothing.
    ///
    /// # Errors
    ///
    /// As for [`end`](Collector::end).
    pub fn poll<C>(&mut self, scope: &Scope<'_, C>) -> Result<Progress, SpoolError> {
        for job in std::mem::take(&mut self.jobs) {
            match job.take() {
                Outcome::Pending(job) => self.jobs.push(job),
                Outcome::Value(result) => self.handle_job_result(result)?,
                Outcome::Lost(lost) => return Err(lost.into()),
            }
        }
        self.count_memory()?;
        self.advance(scope)?;
        Ok(self.progress())
    }

    fn handle_job_result(&mut self, result: JobResult) -> Result<(), SpoolError> {
        match result {
            JobResult::Opened(file) => {
                self.file = Some(file?);
                self.spooling.file_opened();
            }
            JobResult::Written(blocks, written) => {
                written?;
                self.bytes_in_flight -= blocks.iter().map(|block| block.len()).sum::<usize>();
                self.spooling.piece_written();
            }
            JobResult::Synced(synced) => {
                synced?;
                self.spooling.data_synced();
                self.finish_with_file(self.spooling.len());
            }
        }
        Ok(())
    }

    fn progress(&mut self) -> Progress {
        match self.finished_body.take() {
            Some(body) => Progress::Done(body),
            None if self.spooling.takes_more() => Progress::More,
            None => Progress::Hold,
        }
    }

    /// Counts the memory of the body; if all bodies together hold too much, it goes to a file.
    fn count_memory(&mut self) -> Result<(), SpoolError> {
        let holds = self.spooling.waiting() + self.bytes_in_flight;
        if self.spooling.is_in_memory() {
            if self.held.set(holds, &self.memory).is_err() && !self.spooling.move_to_file() {
                return Err(SpoolError::NoRoom);
            }
            return Ok(());
        }
        if let Some(spool) = &self.spool {
            let held = &mut self.held;
            let begin = || {
                let held = std::mem::take(held);
                Arc::new(Mutex::new(Unwritten { held, queued: Share::NONE }))
            };
            let unwritten = self.unwritten.get_or_insert_with(begin);
            let mut unwritten = unwritten.lock().unwrap_or_else(PoisonError::into_inner);
            let has_room = unwritten.queued.set(holds, spool.unwritten()).is_ok();
            if has_room {
                unwritten.held = Share::NONE;
            }
            drop(unwritten);
            self.spooling.set_memory_short(!has_room);
        }
        Ok(())
    }

    /// Starts everything that can be done next.
    fn advance<C>(&mut self, scope: &Scope<'_, C>) -> Result<(), SpoolError> {
        loop {
            match self.spooling.next_action() {
                Action::Wait => return Ok(()),
                Action::Open(announced) => self.open_file(announced, scope)?,
                Action::Write(offset, blocks) => self.write(offset, blocks, scope)?,
                Action::Sync => {
                    let file = self.file.clone();
                    self.start_job(scope, move || {
                        JobResult::Synced(file.map_or(Ok(()), |file| file.content().sync()))
                    })?;
                }
                Action::InMemory(blocks) => {
                    self.held = Share::NONE;
                    self.finished_body = Some(Body::from(Blocks::from_iter(blocks)));
                }
                Action::InFile(len) => self.finish_with_file(len),
            }
        }
    }

    fn open_file<C>(
        &mut self,
        announced: Option<u64>,
        scope: &Scope<'_, C>,
    ) -> Result<(), SpoolError> {
        let Some(spool) = self.spool.clone() else { return Err(SpoolError::TooLarge) };
        let known = announced.unwrap_or(self.spooling.waiting() as u64);
        let quota = spool.manager().acquire(known).map_err(|_| SpoolError::NoRoom)?;
        self.start_job(scope, move || JobResult::Opened(spool.open_file(quota, announced)))
    }

    fn write<C>(
        &mut self,
        offset: u64,
        blocks: Vec<Block>,
        scope: &Scope<'_, C>,
    ) -> Result<(), SpoolError> {
        let (Some(spool), Some(file)) = (self.spool.clone(), self.file.clone()) else {
            return Err(SpoolError::TooLarge);
        };
        let len = blocks.iter().map(|block| block.len()).sum::<usize>();
        let end = offset + len as u64;
        if end > self.announced {
            file.set_bytes(end).map_err(|_| SpoolError::NoRoom)?;
        }
        self.bytes_in_flight += len;
        // In the order in which they are released if the job is dropped.
        let writing = (self.unwritten.clone(), file, spool);
        self.start_job(scope, move || {
            let (_, file, spool) = &writing;
            let written = spool.write(file, &blocks, offset);
            // Before the machine is woken: otherwise it might be the one that closes the file.
            drop(writing);
            JobResult::Written(blocks, written)
        })
    }

    fn start_job<C>(
        &mut self,
        scope: &Scope<'_, C>,
        work: impl FnOnce() -> JobResult + Send + 'static,
    ) -> Result<(), SpoolError> {
        let Some(spool) = &self.spool else { return Err(SpoolError::TooLarge) };
        let job = spool.manager().run(work, scope).map_err(|_| SpoolError::NoRoom)?;
        self.jobs.push(job);
        Ok(())
    }

    fn finish_with_file(&mut self, len: u64) {
        (self.held, self.unwritten) = (Share::NONE, None);
        self.finished_body =
            self.file.take().map(|file| Body::from(BodyFile::from_stored(file, len)));
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("takes_more", &self.takes_more())
            .field("in_memory", &self.spooling.is_in_memory())
            .finish_non_exhaustive()
    }
}
