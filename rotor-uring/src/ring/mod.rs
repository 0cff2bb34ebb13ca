//! `Ring`: the one part that is not safe: operations, and the memory that the kernel has meanwhile.
//!
//! What is safe to call here is sound, whatever the caller does: memory that an operation writes to
//! or reads from belongs to the ring until the operation's last completion was taken, and the ring
//! does not end before the kernel has let go of all of it, or leaves it allocated. One thing is the
//! caller's: a [`Piece`] is read in the ring that it came from, and goes back to it. A driver has one
//! ring, and pieces are in its sockets alone.

mod completion;
mod provided;
mod region;
mod setup;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

pub(crate) use self::completion::{Carried, Completion};
use self::provided::{GROUP, Provided};
use crate::books::Piece;
use crate::inbox::Lender;
use crate::key::{Id, Key, Kind};
use crate::slots::Slots;
use crate::stats::UringStats;

/// `MSG_WAITALL` (send(2) has no such flag; io_uring takes it to go on after a part has left).
const WAIT_ALL: u32 = 0x100;
/// For how long the end of a ring waits for the kernel.
const END_PATIENCE: Duration = Duration::from_millis(50);
/// How often it does.
const END_TRIES: u32 = 40;

/// How long to wait for a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    Poll,
    /// Not at all; but what the kernel has left from before is done.
    Again,
    AtMost(Duration),
    Forever,
}

/// What is to be told of readiness, and what for. Its key never is that of memory that is sent, which
/// a completion would free.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watch {
    /// Each time that the loop is woken.
    Waker,
    /// Each time that the socket has something, or something urgent.
    Readable(Id),
    /// Once, when something came for the stream.
    Arrived(Id),
    /// Once, when the socket has room.
    Room(Id),
    /// When both sides have ended, or the socket has failed: the kernel tells that unasked. It tells
    /// first, as unasked, that the peer has ended its side.
    Gone(Id),
}

pub(crate) struct Ring {
    // First: it is closed before the memory is freed that it knew of.
    ring: IoUring,
    held: Held,
    /// What the submission queue had no room for, in order.
    backlog: VecDeque<squeue::Entry>,
}

/// What the kernel has meanwhile.
struct Held {
    /// Always there, until the ring ends.
    provided: Option<Provided>,
    /// What the kernel sends from.
    sends: Slots<InFlight>,
    /// Operations that were handed over, and whose last completion was not taken.
    outstanding: usize,
    /// The kernel has taken a call: before that it has none of our memory.
    was_entered: bool,
    stats: UringStats,
}

struct InFlight {
    memory: Vec<u8>,
    from: usize,
    owner: Id,
}

impl Ring {
    fn new(ring: IoUring, provided: Provided) -> Ring {
        let held = Held {
            provided: Some(provided),
            sends: Slots::new(),
            outstanding: 0,
            was_entered: false,
            stats: UringStats::default(),
        };
        Ring { ring, held, backlog: VecDeque::new() }
    }

    pub(crate) fn stats(&mut self) -> &mut UringStats {
        &mut self.held.stats
    }

    /// Receives again and again, into provided buffers.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, owner: Id) {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        // SAFETY: it writes into provided buffers alone, which are the ring's.
        unsafe { self.push(entry, owner.key(Kind::Receive)) }
    }

    /// Tells of readiness.
    pub(crate) fn poll(&mut self, fd: BorrowedFd<'_>, watch: Watch) {
        let (events, stays, key) = match watch {
            Watch::Waker => (PollFlags::IN, true, Key::WAKE),
            Watch::Readable(id) => (PollFlags::IN | PollFlags::PRI, true, id.key(Kind::Readable)),
            Watch::Arrived(id) => (PollFlags::IN, false, id.key(Kind::Arrived)),
            Watch::Room(id) => (PollFlags::OUT, false, id.key(Kind::Room)),
            Watch::Gone(id) => (PollFlags::empty(), true, id.key(Kind::Gone)),
        };
        let events = u32::from(events.bits());
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), events).multi(stays).build();
        // SAFETY: it has no memory.
        unsafe { self.push(entry, key) }
    }

    /// Sends the bytes from `from` on, all of them if it can, and keeps them until then: a
    /// completion of `owner`'s brings them back. Returns the key to cancel it by.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: Vec<u8>,
        from: usize,
        owner: Id,
    ) -> Key {
        let bytes = memory.get(from..).unwrap_or_default();
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let flags = (SendFlags::NOSIGNAL.bits() | WAIT_ALL) as i32;
        let entry =
            opcode::Send::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), len).flags(flags).build();
        let key = self.held.sends.insert(InFlight { memory, from, owner }).key(Kind::Send);
        // SAFETY: the bytes are where they were, as a vector that moves takes its allocation along,
        // and nobody changes or frees them: they are in `sends` until the last completion.
        unsafe { self.push(entry, key) }
        key
    }

    /// Asks the kernel to end an operation; that completes all the same.
    pub(crate) fn cancel(&mut self, key: Key) {
        let entry = opcode::AsyncCancel::new(key.number()).build();
        // SAFETY: it has no memory.
        unsafe { self.push(entry.flags(squeue::Flags::SKIP_SUCCESS), Key::UNWATCHED) }
    }

    /// Closes a descriptor, behind all operations that named it.
    pub(crate) fn close(&mut self, fd: OwnedFd) {
        let entry = opcode::Close::new(Fd(fd.into_raw_fd())).build();
        // SAFETY: it has no memory. The descriptor was owned, so nobody else closes it; operations
        // of before are in the queue before this one and hold on to the file, not to its number.
        unsafe { self.push(entry.flags(squeue::Flags::SKIP_SUCCESS), Key::UNWATCHED) }
    }

    /// Puts an operation into the queue, or behind those that wait for room in it.
    ///
    /// # Safety
    ///
    /// The memory that it names stays, and is nobody else's to write (or, where the kernel writes
    /// it, to read), until its last completion was taken.
    unsafe fn push(&mut self, entry: squeue::Entry, key: Key) {
        let entry = entry.user_data(key.number());
        self.held.stats.submitted += 1;
        if key != Key::UNWATCHED {
            self.held.outstanding += 1;
        }
        // SAFETY: as the caller promises.
        if self.backlog.is_empty() && unsafe { self.ring.submission().push(&entry) }.is_ok() {
            return;
        }
        self.held.stats.submissions_overflowed += 1;
        self.backlog.push_back(entry);
    }

    /// Moves what waits into the queue, as far as there is room; whether all of it was.
    fn refill(&mut self) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as whoever pushed it first promised.
            if unsafe { queue.push(entry) }.is_err() {
                return false;
            }
            self.backlog.pop_front();
        }
        true
    }

    /// Hands over all operations, with one call where the queue has room for them, and waits in it.
    ///
    /// # Errors
    ///
    /// What makes going on impossible. A signal, a time that is over and a kernel that wants its
    /// completions taken first are none.
    pub(crate) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        loop {
            if let Some(provided) = &mut self.held.provided {
                provided.publish();
            }
            let is_last = self.refill();
            let result = self.enter_once(if is_last { wait } else { Wait::Poll });
            self.held.was_entered |= result.is_ok();
            match result {
                Ok(()) if is_last => return Ok(()),
                Ok(()) => {}
                Err(Errno::INTR | Errno::TIME | Errno::BUSY | Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn enter_once(&mut self, wait: Wait) -> Result<(), Errno> {
        if wait == Wait::Poll {
            let queue = self.ring.submission();
            // Nothing to be handed over, nothing that the kernel would do for us: no call.
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
        }
        self.held.stats.enters += 1;
        let submitter = self.ring.submitter();
        let result = match wait {
            Wait::Poll => submitter.submit_and_wait(0),
            // For no time: a call that waits does what is left, whether it says so or not.
            Wait::Again => {
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&Timespec::new()))
            }
            Wait::Forever => submitter.submit_and_wait(1),
            Wait::AtMost(time) => {
                let time = Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos());
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        result.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Whether the kernel has completions for us, in the queue or beside it.
    pub(crate) fn has_completions(&mut self) -> bool {
        let is_over = self.ring.submission().cq_overflow();
        self.held.stats.completions_overflowed += u64::from(is_over);
        is_over || !self.ring.completion().is_empty()
    }

    /// Takes the next completion; `Some(None)` of one that concerns nobody.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Option<Completion>> {
        let entry = self.ring.completion().next()?;
        Some(self.held.understand(&entry))
    }

    /// Takes all that have completed, and what they carry.
    fn take_all(&mut self) {
        while self.take().is_some() {}
    }

    /// Hands over what waits, takes all operations back, and waits until the kernel has let go.
    fn end(&mut self) {
        // What was written in the last turn leaves with this.
        let mut tries = END_TRIES;
        while self.held.outstanding > 0 && tries > 0 {
            tries -= 1;
            if self.enter(Wait::Poll).is_err() {
                break;
            }
            // That there is none any more is no error: they complete by themselves.
            let all = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
            log::trace!("a ring ends: {all:?}");
            self.take_all();
            if self.held.outstanding > 0 && self.enter(Wait::AtMost(END_PATIENCE)).is_err() {
                break;
            }
            self.take_all();
        }
        if self.enter(Wait::Poll).is_err() {
            log::debug!("a ring has ended with operations that were not handed over");
        }
    }
}

impl Held {
    fn understand(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let (mut key, result) = (Key::from_number(entry.user_data()), entry.result());
        let is_last = !cqueue::more(entry.flags());
        self.stats.completed += 1;
        if key.kind() == Kind::Unwatched {
            // What was to be cancelled had ended by itself, mostly.
            return None;
        }
        self.outstanding = self.outstanding.saturating_sub(usize::from(is_last));
        let carried = match key.kind() {
            Kind::Receive => self.piece(entry),
            Kind::Send => {
                let Some(sent) = self.sends.remove(key.id()) else {
                    self.stats.stale += 1;
                    return None;
                };
                key = sent.owner.key(Kind::Send);
                Carried::Memory(sent.memory, sent.from)
            }
            _ => Carried::Nothing,
        };
        Some(Completion { key, result, is_last, carried })
    }

    fn piece(&mut self, entry: &cqueue::Entry) -> Carried {
        let Some(buffer) = cqueue::buffer_select(entry.flags()) else { return Carried::Nothing };
        let len = u32::try_from(entry.result()).unwrap_or(0);
        let goes_on = cqueue::buffer_more(entry.flags());
        let taken = self.provided.as_mut().and_then(|own| own.take(buffer, len, goes_on));
        taken.map_or_else(
            || {
                self.stats.stale += 1;
                Carried::Nothing
            },
            Carried::Piece,
        )
    }
}

impl Lender for Ring {
    #[inline]
    fn bytes(&self, piece: &Piece) -> &[u8] {
        self.held.provided.as_ref().map_or(&[], |provided| provided.bytes(piece))
    }

    fn give_back(&mut self, piece: Piece) {
        if let Some(provided) = &mut self.held.provided {
            provided.give_back(piece);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.end();
        if self.held.outstanding > 0 && self.held.was_entered {
            log::error!(
                "the kernel did not let go of {} operations of a ring: their memory is not freed",
                self.held.outstanding
            );
            mem::forget(self.held.provided.take());
            mem::forget(mem::replace(&mut self.held.sends, Slots::new()));
        }
    }
}
