//! `Ring`: the only unsafe part: operations, and the memory that the kernel has meanwhile.
//!
//! The safe methods are sound, whatever their caller does. Memory that an operation writes to or
//! reads from belongs to the ring until the operation's last completion was taken; and the ring
//! does not end before the kernel has let go of all of it, or leaves it allocated. The caller has
//! one duty: a [`Piece`] is read in the ring that it came from, and given back to it. A driver has
//! one ring, and only its sockets have pieces.

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

pub(crate) use self::completion::{Completion, Payload};
use self::provided::{GROUP, ProvidedBuffers};
use crate::buffer_table::Piece;
use crate::inbox::Lender;
use crate::key::{Id, Key, Kind};
use crate::slots::Slots;
use crate::stats::UringStats;

/// How long the end of a ring waits for the kernel each time.
const END_WAIT: Duration = Duration::from_millis(50);
/// How often the end of a ring waits for the kernel at most.
const END_ATTEMPTS_MAX: u32 = 40;

/// How long to wait for a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Do not wait.
    Poll,
    /// Do not wait, but let the kernel do work that it has left over.
    RunTaskWork,
    AtMost(Duration),
    Forever,
}

/// What to poll for. Its key is never that of a send, whose completion frees memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watch {
    /// Each wake-up of the loop.
    Waker,
    /// Each time that the socket has something to read, or urgent data.
    Readable(Id),
    /// Once: something has arrived for the stream.
    ReadableOnce(Id),
    /// Once: the socket has room. The kernel also reports, unasked, that the peer has ended its
    /// side, and then reports nothing more.
    Room(Id),
    /// Each time that the socket has room, also after that.
    EachRoom(Id),
    /// Both sides have ended, or the socket has failed, which the kernel always reports. It also
    /// reports, likewise unasked, that the peer has ended its side.
    Closed(Id),
}

pub(crate) struct Ring {
    // The first field: it is closed before the memory that it refers to is freed.
    ring: IoUring,
    kernel: KernelState,
    /// Operations for which the submission queue had no room, in order.
    backlog: VecDeque<squeue::Entry>,
}

/// The memory that the kernel has meanwhile.
struct KernelState {
    /// Present until the ring ends.
    provided: Option<ProvidedBuffers>,
    /// The memory of sends.
    sends: Slots<InFlightSend>,
    /// Submitted operations whose last completion was not taken yet.
    outstanding: usize,
    /// The kernel has accepted a call; before that it has none of our memory.
    was_entered: bool,
    stats: UringStats,
}

struct InFlightSend {
    memory: Vec<u8>,
    owner: Id,
}

impl Ring {
    fn new(ring: IoUring, provided: ProvidedBuffers) -> Ring {
        let kernel = KernelState {
            provided: Some(provided),
            sends: Slots::new(),
            outstanding: 0,
            was_entered: false,
            stats: UringStats::default(),
        };
        Ring { ring, kernel, backlog: VecDeque::new() }
    }

    pub(crate) fn stats(&mut self) -> &mut UringStats {
        &mut self.kernel.stats
    }

    /// Submits a multishot receive into provided buffers.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, owner: Id) {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        // SAFETY: it writes only into provided buffers, which belong to the ring.
        unsafe { self.push(entry, owner.key(Kind::Receive)) }
    }

    /// Submits a poll for readiness.
    pub(crate) fn poll(&mut self, fd: BorrowedFd<'_>, watch: Watch) {
        let (events, stays, key) = match watch {
            Watch::Waker => (PollFlags::IN, true, Key::WAKE),
            Watch::Readable(id) => (PollFlags::IN | PollFlags::PRI, true, id.key(Kind::Readable)),
            Watch::ReadableOnce(id) => (PollFlags::IN, false, id.key(Kind::ReadableOnce)),
            Watch::Room(id) => (PollFlags::OUT, false, id.key(Kind::Room)),
            Watch::EachRoom(id) => (PollFlags::OUT, true, id.key(Kind::Room)),
            Watch::Closed(id) => (PollFlags::empty(), true, id.key(Kind::Closed)),
        };
        let events = u32::from(events.bits());
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), events).multi(stays).build();
        // SAFETY: it uses no memory.
        unsafe { self.push(entry, key) }
    }

    /// Submits a send of as many of the bytes as there is room for. The ring keeps the memory until a
    /// completion of `owner` gives it back. Returns the key with which to cancel the send.
    ///
    /// It does not wait for room in the kernel (`MSG_DONTWAIT`). The kernel would poll for that, and
    /// with the end of the peer's side that poll completes at once, each time: after some attempts,
    /// the send would block a thread of the kernel until there is room (doc/decisions/0139).
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, memory: Vec<u8>, owner: Id) -> Key {
        let len = u32::try_from(memory.len()).unwrap_or(u32::MAX);
        let flags = (SendFlags::NOSIGNAL | SendFlags::DONTWAIT).bits() as i32;
        let entry =
            opcode::Send::new(Fd(socket.as_raw_fd()), memory.as_ptr(), len).flags(flags).build();
        let key = self.kernel.sends.insert(InFlightSend { memory, owner }).key(Kind::Send);
        // SAFETY: the bytes stay where they are, since moving a vector does not move its
        // allocation, and nothing changes or frees them: they are in `sends` until the last
        // completion.
        unsafe { self.push(entry, key) }
        key
    }

    /// Asks the kernel to end an operation, which then still completes.
    pub(crate) fn cancel(&mut self, key: Key) {
        let entry = opcode::AsyncCancel::new(key.user_data()).build();
        // SAFETY: it uses no memory.
        unsafe { self.push(entry.flags(squeue::Flags::SKIP_SUCCESS), Key::UNWATCHED) }
    }

    /// Closes a descriptor, after all operations that refer to it.
    pub(crate) fn close(&mut self, fd: OwnedFd) {
        let entry = opcode::Close::new(Fd(fd.into_raw_fd())).build();
        // SAFETY: it uses no memory. The descriptor was owned, so nobody else closes it; earlier
        // operations are in the queue before this one, and refer to the file, not to its number.
        unsafe { self.push(entry.flags(squeue::Flags::SKIP_SUCCESS), Key::UNWATCHED) }
    }

    /// Puts an operation into the queue, or behind those that wait for room in it.
    ///
    /// # Safety
    ///
    /// Until the last completion was taken, the memory that the operation names must stay, and
    /// nobody else may write to it (or, if the kernel writes to it, read it).
    unsafe fn push(&mut self, entry: squeue::Entry, key: Key) {
        let entry = entry.user_data(key.user_data());
        self.kernel.stats.submitted += 1;
        if key != Key::UNWATCHED {
            self.kernel.outstanding += 1;
        }
        // SAFETY: as the caller promises.
        if self.backlog.is_empty() && unsafe { self.ring.submission().push(&entry) }.is_ok() {
            return;
        }
        self.kernel.stats.submissions_overflowed += 1;
        self.backlog.push_back(entry);
    }

    /// Returns whether this many operations can be submitted by one call, with those that are in the
    /// queue already; or as many as a small queue has room for.
    pub(crate) fn has_room_for(&mut self, operations: usize) -> bool {
        let queue = self.ring.submission();
        let capacity = queue.capacity();
        self.backlog.is_empty() && capacity - queue.len() >= operations.min(capacity)
    }

    /// Moves waiting operations into the queue, as far as there is room. Returns whether none is
    /// left.
    fn flush_backlog(&mut self) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as the caller of `push` has promised for it.
            if unsafe { queue.push(entry) }.is_err() {
                return false;
            }
            self.backlog.pop_front();
        }
        true
    }

    /// Submits all operations, in one call if the queue has room for them, and waits in the same
    /// call.
    ///
    /// # Errors
    ///
    /// An error that makes it impossible to go on. A signal, the end of the time, and a kernel that
    /// wants its completions taken first are not errors.
    pub(crate) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        loop {
            if let Some(provided) = &mut self.kernel.provided {
                provided.publish();
            }
            let is_last = self.flush_backlog();
            let result = self.enter_once(if is_last { wait } else { Wait::Poll });
            self.kernel.was_entered |= result.is_ok();
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
            // Nothing to submit, and nothing that the kernel would do for us: no call is needed.
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
        }
        self.kernel.stats.enters += 1;
        let submitter = self.ring.submitter();
        let result = match wait {
            Wait::Poll => submitter.submit_and_wait(0),
            // A wait of no time: a call that waits does all work that is left, whether the flag is
            // set or not.
            Wait::RunTaskWork => {
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

    /// Returns the number of operations whose last completion was not taken yet.
    pub(crate) fn outstanding(&self) -> usize {
        self.kernel.outstanding
    }

    /// Whether the kernel has completions for us, in the queue or in its own memory.
    pub(crate) fn has_completions(&mut self) -> bool {
        self.has_overflowed() || !self.ring.completion().is_empty()
    }

    /// Whether the kernel has completions in its own memory, for which the queue has no room.
    pub(crate) fn has_overflowed(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }

    /// Takes the next completion; `Some(None)` for one that concerns nobody.
    #[inline]
    pub(crate) fn next_completion(&mut self) -> Option<Option<Completion>> {
        let entry = self.ring.completion().next()?;
        Some(self.kernel.decode(&entry))
    }

    /// Takes all completions, and what they give back.
    fn discard_completions(&mut self) {
        while self.next_completion().is_some() {}
    }

    /// Submits what waits, cancels all operations, and waits until the kernel has let go.
    fn shut_down(&mut self) {
        // This also sends what was written in the last turn.
        let mut tries = END_ATTEMPTS_MAX;
        while self.kernel.outstanding > 0 && tries > 0 {
            tries -= 1;
            if self.enter(Wait::Poll).is_err() {
                break;
            }
            // An error means that there is nothing to cancel: the operations complete by
            // themselves.
            let all = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
            log::trace!("a ring ends: {all:?}");
            self.discard_completions();
            if self.kernel.outstanding > 0 && self.enter(Wait::AtMost(END_WAIT)).is_err() {
                break;
            }
            self.discard_completions();
        }
        if self.enter(Wait::Poll).is_err() {
            log::debug!("a ring has ended with operations that were not handed over");
        }
    }
}

impl KernelState {
    fn decode(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let (mut key, result) = (Key::from_user_data(entry.user_data()), entry.result());
        let is_last = !cqueue::more(entry.flags());
        self.stats.completed += 1;
        if key.kind() == Kind::Unwatched {
            // Mostly, the operation to be cancelled had already ended.
            return None;
        }
        self.outstanding = self.outstanding.saturating_sub(usize::from(is_last));
        let payload = match key.kind() {
            Kind::Receive => self.take_piece(entry),
            Kind::Send => {
                let Some(sent) = self.sends.remove(key.id()) else {
                    self.stats.stale += 1;
                    return None;
                };
                key = sent.owner.key(Kind::Send);
                Payload::Memory(sent.memory)
            }
            _ => Payload::Nothing,
        };
        Some(Completion { key, result, is_last, payload })
    }

    fn take_piece(&mut self, entry: &cqueue::Entry) -> Payload {
        let Some(buffer) = cqueue::buffer_select(entry.flags()) else { return Payload::Nothing };
        let len = u32::try_from(entry.result()).unwrap_or(0);
        let has_more = cqueue::buffer_more(entry.flags());
        let taken = self.provided.as_mut().and_then(|own| own.take(buffer, len, has_more));
        taken.map_or_else(
            || {
                self.stats.stale += 1;
                Payload::Nothing
            },
            Payload::Piece,
        )
    }
}

impl Lender for Ring {
    #[inline]
    fn bytes(&self, piece: &Piece) -> &[u8] {
        self.kernel.provided.as_ref().map_or(&[], |provided| provided.bytes(piece))
    }

    fn release(&mut self, piece: Piece) {
        if let Some(provided) = &mut self.kernel.provided {
            provided.release(piece);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.shut_down();
        if self.kernel.outstanding > 0 && self.kernel.was_entered {
            log::error!(
                "the kernel did not let go of {} operations of a ring: their memory is not freed",
                self.kernel.outstanding
            );
            mem::forget(self.kernel.provided.take());
            mem::forget(mem::replace(&mut self.kernel.sends, Slots::new()));
        }
    }
}
