//! `Spooling`: decides, without a disk, what happens with a body as it arrives: when to open a
//! file, what to write next, and when to accept nothing more.
//!
//! ```text
//!              beyond ram_max, or so long    file_opened()             end(), all written
//!   Memory ────────────────────────────▶ Opening ────────▶ Open ─────────────────────────┐
//!     │                                                     ▲ │ piece_written()          │
//!     │ end()                                               └─┘                          ▼
//!     └───────────────────────────────────────────────────▶ Ended ◀─data_synced()─ Syncing
//! ```

use rotor_stream::Block;

use crate::blocks::BlocksBuilder;
use crate::error::SpoolError;

/// The limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The maximum number of its bytes in memory, if it does not go to a file.
    pub(crate) ram_max: u64,
    /// The maximum length of the body in bytes.
    pub(crate) body_max: u64,
    /// How many bytes are written at a time.
    pub(crate) piece_bytes: usize,
    /// The maximum number of pieces that are written at a time.
    pub(crate) pieces_max: usize,
    /// Whether there are files.
    pub(crate) has_files: bool,
    /// Whether the data is written to the disk itself at the end.
    pub(crate) syncs: bool,
}

impl Bounds {
    /// Returns the limits of a body that can only be in memory.
    pub(crate) fn memory(ram_max: u64, body_max: u64) -> Bounds {
        let (piece_bytes, pieces_max) = (usize::MAX, 1);
        Bounds { ram_max, body_max, piece_bytes, pieces_max, has_files: false, syncs: false }
    }
}

/// One body as it arrives.
pub(crate) struct Spooling {
    bounds: Bounds,
    announced: Option<u64>,
    state: State,
    /// Blocks that have arrived and were not passed on to be written.
    waiting: BlocksBuilder,
    received: u64,
    /// How many bytes were passed on to be written.
    bytes_submitted: u64,
    pieces_under_way: usize,
    /// There is no memory for more: existing blocks must be written, however little they are.
    is_memory_short: bool,
    is_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Memory,
    /// The file must be opened next.
    MustOpen,
    Opening,
    Open,
    Syncing,
    Ended,
}

/// The next thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Nothing, until more has arrived or something is finished.
    Wait,
    /// Open a file, with space for this many bytes if that is known; then call
    /// [`file_opened`](Spooling::file_opened).
    Open(Option<u64>),
    /// Write these blocks at this offset; then call [`piece_written`](Spooling::piece_written).
    Write(u64, Vec<Block>),
    /// Write the data to the disk itself; then call [`data_synced`](Spooling::data_synced).
    Sync,
    /// The body is complete, in memory.
    InMemory(Vec<Block>),
    /// The body is complete, in the file; this is its length in bytes.
    InFile(u64),
}

impl Spooling {
    /// Makes the state of a body of which nothing has arrived, with its announced length.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the announced length is not allowed.
    pub(crate) fn new(bounds: Bounds, announced: Option<u64>) -> Result<Spooling, SpoolError> {
        let mut spooling = Spooling {
            bounds,
            announced,
            state: State::Memory,
            waiting: BlocksBuilder::default(),
            received: 0,
            bytes_submitted: 0,
            pieces_under_way: 0,
            is_memory_short: false,
            is_ended: false,
        };
        // The file comes first: if there is no space for it, the peer is told before it has sent
        // anything.
        spooling.check_length(announced.unwrap_or(0))?;
        Ok(spooling)
    }

    /// Returns whether the body will be in memory, according to its announced length or because
    /// there are no files.
    pub(crate) fn stays_in_memory(&self) -> bool {
        let is_known = self.announced.is_some() || !self.bounds.has_files;
        self.state == State::Memory && is_known
    }

    /// Checks whether a body of this length is allowed, and decides whether it goes to a file.
    fn check_length(&mut self, bytes: u64) -> Result<(), SpoolError> {
        let Bounds { ram_max, body_max, has_files, .. } = self.bounds;
        if bytes > body_max || (bytes > ram_max && !has_files) {
            return Err(SpoolError::TooLarge);
        }
        if bytes > ram_max && self.state == State::Memory {
            self.state = State::MustOpen;
        }
        Ok(())
    }

    /// Adds a block that has arrived.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the body becomes longer than allowed. `AfterEnd` if it has ended; it is
    /// unchanged then.
    pub(crate) fn add(&mut self, block: Block) -> Result<(), SpoolError> {
        if self.is_ended {
            return Err(SpoolError::AfterEnd);
        }
        let received = self.received.saturating_add(block.len() as u64);
        self.check_length(received)?;
        self.received = received;
        self.waiting.push(block);
        Ok(())
    }

    /// Says that the body is complete.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Sets whether memory is short. If it is, blocks in memory are written to the file, and
    /// nothing more is accepted before that is done.
    pub(crate) fn set_memory_short(&mut self, is_memory_short: bool) {
        self.is_memory_short = is_memory_short;
    }

    /// Moves the body to a file because memory is short, even if it is far below `ram_max`. Returns
    /// whether there are files.
    pub(crate) fn move_to_file(&mut self) -> bool {
        if self.state == State::Memory && self.bounds.has_files {
            self.state = State::MustOpen;
        }
        self.bounds.has_files
    }

    /// Says that the file is open.
    pub(crate) fn file_opened(&mut self) {
        self.state = State::Open;
    }

    /// Says that a piece was written.
    pub(crate) fn piece_written(&mut self) {
        self.pieces_under_way = self.pieces_under_way.saturating_sub(1);
    }

    /// Says that the data is on the disk.
    pub(crate) fn data_synced(&mut self) {
        self.state = State::Ended;
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.state == State::Memory
    }

    /// Returns how many bytes have arrived and were not passed on to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether more may be added now. If not, this may change when the current work is
    /// finished.
    pub(crate) fn takes_more(&self) -> bool {
        match self.state {
            _ if self.is_ended => false,
            State::Memory => true,
            // It is not known yet whether there is space for more.
            State::MustOpen | State::Opening => false,
            State::Open if self.is_memory_short => {
                self.pieces_under_way == 0 && self.waiting() == 0
            }
            State::Open => self.pieces_under_way < self.bounds.pieces_max,
            State::Syncing | State::Ended => false,
        }
    }

    /// Returns the next thing to do. Call it until there is nothing.
    pub(crate) fn next_action(&mut self) -> Action {
        match self.state {
            State::Memory if self.is_ended => {
                self.state = State::Ended;
                Action::InMemory(self.waiting.take())
            }
            State::MustOpen => {
                self.state = State::Opening;
                Action::Open(self.announced)
            }
            State::Open => self.next_file_action(),
            State::Memory | State::Opening | State::Syncing | State::Ended => Action::Wait,
        }
    }

    fn next_file_action(&mut self) -> Action {
        let waiting = self.waiting.len();
        let is_due = waiting >= self.bounds.piece_bytes || self.is_ended || self.is_memory_short;
        if waiting > 0 && is_due && self.pieces_under_way < self.bounds.pieces_max {
            let offset = self.bytes_submitted;
            self.bytes_submitted += waiting as u64;
            self.pieces_under_way += 1;
            return Action::Write(offset, self.waiting.take());
        }
        if !self.is_ended || waiting > 0 || self.pieces_under_way > 0 {
            return Action::Wait;
        }
        if self.bounds.syncs {
            self.state = State::Syncing;
            return Action::Sync;
        }
        self.state = State::Ended;
        Action::InFile(self.bytes_submitted)
    }

    /// Returns the length of the body, once [`data_synced`](Spooling::data_synced).
    pub(crate) fn len(&self) -> u64 {
        self.bytes_submitted
    }
}

#[cfg(test)]
mod tests;
