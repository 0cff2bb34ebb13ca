//! `Spooling`: what becomes of one body as it comes, decided without a disk: when a file is to be
//! opened, what is to be written next, when to take no more.
//!
//! ```text
//!              beyond ram_max, or so long        opened()              end(), all written
//!   Memory ────────────────────────────▶ Opening ────────▶ Open ─────────────────────────┐
//!     │                                                     ▲ │ written()                │
//!     │ end()                                               └─┘                          ▼
//!     └────────────────────────────────────────────────────────────▶ Ended ◀──synced── Syncing
//! ```

use rotor_stream::Block;

use crate::blocks::BlocksBuilder;
use crate::error::SpoolError;

/// What bounds one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes that it may have in memory, where it does not go to a file.
    pub(crate) ram_max: u64,
    /// Bytes that it may have at all.
    pub(crate) body_max: u64,
    /// Bytes that are written at a time.
    pub(crate) piece_bytes: usize,
    /// Pieces that are being written at a time, at most.
    pub(crate) pieces_max: usize,
    /// Whether there are files.
    pub(crate) has_files: bool,
    /// Whether the disk is waited for in the end.
    pub(crate) syncs: bool,
}

impl Bounds {
    /// Of a body that is in memory or nowhere.
    pub(crate) fn memory(ram_max: u64, body_max: u64) -> Bounds {
        let (piece_bytes, pieces_max) = (usize::MAX, 1);
        Bounds { ram_max, body_max, piece_bytes, pieces_max, has_files: false, syncs: false }
    }
}

/// One body as it comes.
pub(crate) struct Spooling {
    bounds: Bounds,
    announced: Option<u64>,
    state: State,
    /// What has come and was not handed out to be written.
    waiting: BlocksBuilder,
    received: u64,
    /// How much was handed out to be written.
    handed_out: u64,
    pieces_under_way: usize,
    /// There is no memory for more: what there is is to be written, however little.
    is_pressed: bool,
    is_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Memory,
    /// The file is to be opened next.
    ToOpen,
    Opening,
    Open,
    Syncing,
    Ended,
}

/// What is to be done next.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Nothing, before more has come or has been done.
    Nothing,
    /// Open a file, with room for so many bytes if that is known; then
    /// [`opened`](Spooling::opened).
    Open(Option<u64>),
    /// Write these at this place; then [`written`](Spooling::written).
    Write(u64, Vec<Block>),
    /// Have the disk hold it; then [`synced`](Spooling::synced).
    Sync,
    /// All of it is there, in memory.
    InMemory(Vec<Block>),
    /// All of it is there, in the file: so many bytes.
    InFile(u64),
}

impl Spooling {
    /// A body of which nothing has come, and how long it was announced to be.
    ///
    /// # Errors
    ///
    /// `TooLarge`: so long as it may not be.
    pub(crate) fn new(bounds: Bounds, announced: Option<u64>) -> Result<Spooling, SpoolError> {
        let mut spooling = Spooling {
            bounds,
            announced,
            state: State::Memory,
            waiting: BlocksBuilder::default(),
            received: 0,
            handed_out: 0,
            pieces_under_way: 0,
            is_pressed: false,
            is_ended: false,
        };
        // The file first: where there is no space for it, the peer hears so before it has sent
        // anything.
        spooling.check(announced.unwrap_or(0))?;
        Ok(spooling)
    }

    /// Whether all of it will be in memory, by what was announced, or since there is nothing else.
    pub(crate) fn stays_in_memory(&self) -> bool {
        let is_known = self.announced.is_some() || !self.bounds.has_files;
        self.state == State::Memory && is_known
    }

    /// So many bytes are to be kept: is that allowed, and where?
    fn check(&mut self, bytes: u64) -> Result<(), SpoolError> {
        let Bounds { ram_max, body_max, has_files, .. } = self.bounds;
        if bytes > body_max || (bytes > ram_max && !has_files) {
            return Err(SpoolError::TooLarge);
        }
        if bytes > ram_max && self.state == State::Memory {
            self.state = State::ToOpen;
        }
        Ok(())
    }

    /// More has come.
    ///
    /// # Errors
    ///
    /// `TooLarge`: it is more than it may be. `AfterEnd`: it has ended, and is as it was.
    pub(crate) fn add(&mut self, block: Block) -> Result<(), SpoolError> {
        if self.is_ended {
            return Err(SpoolError::AfterEnd);
        }
        let received = self.received.saturating_add(block.len() as u64);
        self.check(received)?;
        self.received = received;
        self.waiting.push(block);
        Ok(())
    }

    /// All has come.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Whether there is memory for what comes next. Where there is none, what is in memory goes to
    /// the file, and no more is taken before it is written.
    pub(crate) fn press(&mut self, is_pressed: bool) {
        self.is_pressed = is_pressed;
    }

    /// Memory cannot keep it, long before `ram_max`: it goes to a file. Returns whether there is
    /// one.
    pub(crate) fn leave_memory(&mut self) -> bool {
        if self.state == State::Memory && self.bounds.has_files {
            self.state = State::ToOpen;
        }
        self.bounds.has_files
    }

    /// The file is open.
    pub(crate) fn opened(&mut self) {
        self.state = State::Open;
    }

    /// A piece was written.
    pub(crate) fn written(&mut self) {
        self.pieces_under_way = self.pieces_under_way.saturating_sub(1);
    }

    /// The disk has it.
    pub(crate) fn synced(&mut self) {
        self.state = State::Ended;
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.state == State::Memory
    }

    /// Bytes that have come and were not handed out to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether more may be added now. If not, then after the next thing that is done.
    pub(crate) fn takes_more(&self) -> bool {
        match self.state {
            _ if self.is_ended => false,
            State::Memory => true,
            // Of what would come now nobody knows whether there is space for it.
            State::ToOpen | State::Opening => false,
            State::Open if self.is_pressed => self.pieces_under_way == 0 && self.waiting() == 0,
            State::Open => self.pieces_under_way < self.bounds.pieces_max,
            State::Syncing | State::Ended => false,
        }
    }

    /// What is to be done next. It is asked until there is nothing.
    pub(crate) fn next(&mut self) -> Ask {
        match self.state {
            State::Memory if self.is_ended => {
                self.state = State::Ended;
                Ask::InMemory(self.waiting.take())
            }
            State::ToOpen => {
                self.state = State::Opening;
                Ask::Open(self.announced)
            }
            State::Open => self.next_of_file(),
            State::Memory | State::Opening | State::Syncing | State::Ended => Ask::Nothing,
        }
    }

    fn next_of_file(&mut self) -> Ask {
        let waiting = self.waiting.len();
        let is_due = waiting >= self.bounds.piece_bytes || self.is_ended || self.is_pressed;
        if waiting > 0 && is_due && self.pieces_under_way < self.bounds.pieces_max {
            let offset = self.handed_out;
            self.handed_out += waiting as u64;
            self.pieces_under_way += 1;
            return Ask::Write(offset, self.waiting.take());
        }
        if !self.is_ended || waiting > 0 || self.pieces_under_way > 0 {
            return Ask::Nothing;
        }
        if self.bounds.syncs {
            self.state = State::Syncing;
            return Ask::Sync;
        }
        self.state = State::Ended;
        Ask::InFile(self.handed_out)
    }

    /// How long it is, once [`synced`](Spooling::synced).
    pub(crate) fn len(&self) -> u64 {
        self.handed_out
    }
}

#[cfg(test)]
mod tests;
