//! `Outgo`: the data that a stream has to send, and how much of it the kernel has; as a table of
//! states.

use std::io::{self, IoSlice};
use std::mem;

use crate::key::Key;

/// How many bytes a stream takes before the kernel has taken any of them. 64 KiB: four times the
/// length from which on data is passed to the kernel at once.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024;

/// ```text
///          write                 the turn ends                  all of it sent
///  Empty ────────▶ queue has some ────────────▶ with the kernel ──────────────▶ Empty
///                      ▲                          │  ▲  │
///                      └──────────────────────────┘  └──┘ a part of it sent
///                        it was sent, and more was written
/// ```
#[derive(Default)]
pub(crate) struct Outgo {
    /// Written, and not yet with the kernel.
    queue: Vec<u8>,
    /// The send that the kernel has.
    sending: Option<Key>,
    /// Why nothing more will be sent.
    error: i32,
    /// `take_error` has returned the error.
    was_asked: bool,
    /// The machine waits for room.
    wants_room: bool,
    /// It was given up with more data than the kernel had.
    is_cut: bool,
    end: End,
}

/// How our side of the stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum End {
    #[default]
    Open,
    /// To be sent after everything that was written.
    Wanted,
    Told,
}

/// What to do when a send has completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Send the rest of the memory, from this position.
    Rest(usize),
    /// Everything was sent.
    All {
        /// Send what was written meanwhile.
        more: bool,
        /// Send the end of our side.
        end: bool,
        /// Tell the machine, which waits for room.
        tell: bool,
    },
    /// The connection has failed.
    Failed,
    /// The send was cancelled.
    Cancelled {
        /// Not everything that was written has been sent.
        is_cut: bool,
    },
}

impl Outgo {
    /// Whether it is in its initial state: there is nothing to send, and nothing to remember.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_empty() && self.error == 0 && !self.wants_room && self.end == End::Open
    }

    /// Takes as many bytes as there is room for, and returns how many. The first ones of a turn are
    /// to be sent at its end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` without room: the machine is told when everything was sent.
    pub(crate) fn write(
        &mut self,
        slices: &[IoSlice<'_>],
        memory: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<usize> {
        let mut room = QUEUE_BYTES_MAX.saturating_sub(self.queue.len());
        if room == 0 {
            return Err(self.wait_for_room());
        }
        if self.queue.capacity() == 0 {
            self.queue = memory();
        }
        let before = self.queue.len();
        for slice in slices {
            let taken = slice.len().min(room);
            self.queue.extend_from_slice(&slice[..taken]);
            room -= taken;
        }
        Ok(self.queue.len() - before)
    }

    /// Checks that bytes may be written at all.
    ///
    /// # Errors
    ///
    /// Why the connection has failed, or that our side has ended.
    pub(crate) fn check(&self) -> io::Result<()> {
        match (self.error, self.end) {
            (0, End::Open) => Ok(()),
            (0, _) => Err(io::ErrorKind::BrokenPipe.into()),
            (error, _) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Notes that the machine is to be told when everything was sent. Returns the error to report.
    pub(crate) fn wait_for_room(&mut self) -> io::Error {
        self.wants_room = true;
        io::ErrorKind::WouldBlock.into()
    }

    /// Whether the kernel has taken everything that was written, so that the next data overtakes
    /// nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.sending.is_none()
    }

    /// Takes the data to be sent now, unless a send is under way. The caller must submit it.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let is_next = self.sending.is_none() && !self.queue.is_empty() && self.error == 0;
        is_next.then(|| mem::take(&mut self.queue))
    }

    /// Records the send that was submitted.
    pub(crate) fn set_sending(&mut self, key: Key) {
        self.sending = Some(key);
    }

    /// Discards what is not with the kernel. Returns the key of the send under way, which the
    /// caller must cancel.
    pub(crate) fn give_up(&mut self) -> Option<Key> {
        self.is_cut = !self.queue.is_empty();
        self.queue = Vec::new();
        self.error = ECANCELED;
        self.sending
    }

    /// Returns why nothing more is sent, once; each write reports it, too.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        let is_told = self.error == 0 || mem::replace(&mut self.was_asked, true);
        (!is_told).then(|| io::Error::from_raw_os_error(self.error))
    }

    pub(crate) fn sending(&self) -> Option<Key> {
        self.sending
    }

    /// Handles the completion of a send of `len` bytes; `result` is how many were sent, or a
    /// negative error.
    pub(crate) fn sent(&mut self, result: i32, len: usize) -> Sent {
        self.sending = None;
        if self.error != 0 {
            // It was given up: before the cancellation, some or all of the data may have been sent.
            let has_all_left = usize::try_from(result).is_ok_and(|count| count >= len);
            return Sent::Cancelled { is_cut: self.is_cut || !has_all_left };
        }
        match usize::try_from(result) {
            // Sockets never send 0 of some bytes; to try again might spin.
            Ok(0) if len > 0 => self.fail(EPIPE),
            Ok(count) if count < len => Sent::Rest(count),
            Ok(_) => self.all_sent(),
            Err(_) if result == -EINTR || result == -EAGAIN => Sent::Rest(0),
            Err(_) => self.fail(-result),
        }
    }

    fn all_sent(&mut self) -> Sent {
        if !self.queue.is_empty() {
            return Sent::All { more: true, end: false, tell: false };
        }
        let end = self.end == End::Wanted;
        if end {
            self.end = End::Told;
        }
        Sent::All { more: false, end, tell: mem::take(&mut self.wants_room) }
    }

    fn fail(&mut self, error: i32) -> Sent {
        self.error = error;
        self.queue = Vec::new();
        Sent::Failed
    }

    /// Ends our side after everything that was written. Returns whether the end can be sent now; if
    /// not, it is sent later.
    pub(crate) fn end(&mut self) -> bool {
        match (self.end, self.is_empty()) {
            (End::Told, _) => true,
            (_, true) => {
                self.end = End::Told;
                true
            }
            (_, false) => {
                self.end = End::Wanted;
                false
            }
        }
    }
}

// errno(3), the same on all architectures of Linux that the crate io-uring supports.
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EPIPE: i32 = 32;
const ECANCELED: i32 = 125;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Id, Kind};

    fn write(outgo: &mut Outgo, bytes: &[u8]) -> io::Result<usize> {
        outgo.write(&[IoSlice::new(bytes)], Vec::new)
    }

    /// One whose first bytes are with the kernel.
    fn sending(bytes: &[u8]) -> Outgo {
        let mut outgo = Outgo::default();
        assert_eq!(write(&mut outgo, bytes).ok(), Some(bytes.len()));
        assert_eq!(outgo.next().as_deref(), Some(bytes));
        outgo.set_sending(Id::new(1, 2).key(Kind::Send));
        outgo
    }

    const QUIET: Sent = Sent::All { more: false, end: false, tell: false };

    #[test]
    fn what_the_kernel_says_of_five_bytes_leads_on_as_the_table_says() {
        let cases = [
            (5, QUIET, 0),
            (6, QUIET, 0),
            (4, Sent::Rest(4), 0),
            (1, Sent::Rest(1), 0),
            (0, Sent::Failed, EPIPE),
            (-EINTR, Sent::Rest(0), 0),
            (-EAGAIN, Sent::Rest(0), 0),
            // Not by us: what it had taken would be missing from the midst of the stream.
            (-ECANCELED, Sent::Failed, ECANCELED),
            (-104, Sent::Failed, 104),
        ];
        for (result, then, error) in cases {
            let mut outgo = sending(b"12345");
            assert_eq!((outgo.sent(result, 5), outgo.error), (then, error), "{result}");
            assert!(outgo.sending().is_none());
        }
    }

    #[test]
    fn what_is_written_meanwhile_goes_next_and_in_one() {
        let mut outgo = sending(b"one");
        assert_eq!(outgo.next(), None, "nothing was written");
        for bytes in [b"two", b"333"] {
            assert_eq!(write(&mut outgo, bytes).ok(), Some(3));
        }
        assert_eq!(outgo.next(), None, "the kernel has some of it");
        assert_eq!(outgo.sent(3, 3), Sent::All { more: true, end: false, tell: false });
        assert_eq!(outgo.next().as_deref(), Some(&b"two333"[..]));
    }

    #[test]
    fn a_queue_takes_what_it_has_room_for_and_tells_when_it_is_empty() {
        let mut outgo = sending(b"x");
        for (len, taken) in [(QUEUE_BYTES_MAX - 1, QUEUE_BYTES_MAX - 1), (2, 1)] {
            assert_eq!(write(&mut outgo, &vec![b'y'; len]).ok(), Some(taken));
        }
        let full = write(&mut outgo, b"z").map_err(|error| error.kind());
        assert_eq!(full, Err(io::ErrorKind::WouldBlock));
        assert_eq!(outgo.sent(1, 1), Sent::All { more: true, end: false, tell: false });
        let queued = outgo.next().map(|bytes| bytes.len());
        assert_eq!(queued, Some(QUEUE_BYTES_MAX));
        outgo.set_sending(Id::new(1, 2).key(Kind::Send));
        let all = outgo.sent(QUEUE_BYTES_MAX as i32, QUEUE_BYTES_MAX);
        assert_eq!(all, Sent::All { more: false, end: false, tell: true });
    }

    #[test]
    fn the_end_waits_for_what_was_written_and_nothing_is_written_behind_it() {
        let mut outgo = sending(b"1");
        assert_eq!(write(&mut outgo, b"2").ok(), Some(1));
        assert!(!outgo.end() && !outgo.end());
        assert_eq!(outgo.check().map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
        assert_eq!(outgo.sent(1, 1), Sent::All { more: true, end: false, tell: false });
        assert_eq!(outgo.next().as_deref(), Some(&b"2"[..]));
        outgo.set_sending(Id::new(1, 2).key(Kind::Send));
        assert_eq!(outgo.sent(1, 1), Sent::All { more: false, end: true, tell: false });
        assert!(outgo.end(), "it was told");
        assert!(Outgo::default().end(), "with nothing to wait for it is told at once");
    }

    #[test]
    fn what_was_given_up_goes_no_further_whatever_the_kernel_says_of_it() {
        for (result, is_cut) in [(1, true), (0, true), (3, false), (-ECANCELED, true), (-104, true)]
        {
            for more in [&b""[..], b"two"] {
                let mut outgo = sending(b"one");
                assert_eq!(write(&mut outgo, more).ok(), Some(more.len()));
                assert_eq!(outgo.give_up(), Some(Id::new(1, 2).key(Kind::Send)));
                let is_cut = is_cut || !more.is_empty();
                assert_eq!(outgo.sent(result, 3), Sent::Cancelled { is_cut }, "{result}");
                assert!(outgo.is_empty() && outgo.next().is_none() && outgo.check().is_err());
            }
        }
    }

    #[test]
    fn a_connection_that_is_gone_takes_nothing_and_keeps_nothing() {
        let mut outgo = sending(b"one");
        assert_eq!(write(&mut outgo, b"two").ok(), Some(3));
        assert_eq!(outgo.sent(-104, 3), Sent::Failed);
        assert!(outgo.is_empty() && outgo.next().is_none());
        for told in [Some(104), None] {
            let error = outgo.take_error().and_then(|error| error.raw_os_error());
            assert_eq!(error, told, "it is told once");
            assert_eq!(outgo.check().map_err(|error| error.raw_os_error()), Err(Some(104)));
        }
    }
}
