//! `Outbox`: the data that a stream has to send, and how much of it the kernel has; as a table of
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
///                      ▲                          │
///                      └──────────────────────────┘
///                        a part was sent, and the rest waits for room;
///                        or it was sent, and more was written
/// ```
#[derive(Default)]
pub(crate) struct Outbox {
    /// Written, and not yet with the kernel.
    queue: Vec<u8>,
    /// The send that the kernel has.
    in_flight: Option<Key>,
    /// How many bytes the kernel has; at most two full queues.
    sending: u32,
    /// Why nothing more will be sent.
    error: i32,
    /// `take_error` has returned the error.
    error_was_taken: bool,
    /// The machine waits for room.
    wants_room: bool,
    /// It was given up with more data than the kernel had.
    is_truncated: bool,
    end: End,
}

/// How our side of the stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum End {
    #[default]
    Open,
    /// To be sent after everything that was written.
    Requested,
    Sent,
}

/// What to do when a send has completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// So many bytes were sent; the rest needs room, and is to be [put back](Outbox::put_back).
    Partial(usize),
    /// Everything was sent.
    All {
        /// Send what was written meanwhile.
        send_more: bool,
        /// Send the end of our side.
        shut_down: bool,
        /// Tell the machine, which waits for room.
        notify: bool,
    },
    /// The connection has failed, with this error.
    Failed(i32),
    /// The send was cancelled.
    Cancelled {
        /// Not everything that was written has been sent.
        is_truncated: bool,
    },
}

impl Outbox {
    /// Whether it is in its initial state: there is nothing to send, and nothing to remember.
    #[inline]
    pub(crate) fn is_initial(&self) -> bool {
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
        // The rest of a send comes back into the queue, so both have their bound together.
        let held = self.queue.len() + self.sending as usize;
        let mut room = (2 * QUEUE_BYTES_MAX)
            .saturating_sub(held)
            .min(QUEUE_BYTES_MAX.saturating_sub(self.queue.len()));
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
    pub(crate) fn check_open(&self) -> io::Result<()> {
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
        self.queue.is_empty() && self.in_flight.is_none()
    }

    /// Takes the data to be sent now, unless a send is under way. The caller must submit it.
    pub(crate) fn take_next(&mut self) -> Option<Vec<u8>> {
        let is_next = self.in_flight.is_none() && !self.queue.is_empty() && self.error == 0;
        is_next.then(|| {
            self.sending = self.queue.len() as u32;
            mem::take(&mut self.queue)
        })
    }

    /// Takes back the memory of a send of which the kernel has taken only the first `sent` bytes. The
    /// rest goes before what was written meanwhile.
    pub(crate) fn put_back(&mut self, mut memory: Vec<u8>, sent: usize) {
        memory.drain(..sent.min(memory.len()));
        memory.append(&mut self.queue);
        self.queue = memory;
    }

    /// Records the send that was submitted.
    pub(crate) fn set_in_flight(&mut self, key: Key) {
        self.in_flight = Some(key);
    }

    /// Discards what is not with the kernel. Returns the key of the send under way, which the
    /// caller must cancel.
    pub(crate) fn abandon(&mut self) -> Option<Key> {
        self.is_truncated = !self.queue.is_empty();
        self.queue = Vec::new();
        self.error = ECANCELED;
        self.in_flight
    }

    /// Returns why nothing more is sent, once; each write reports it, too.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        let was_taken = self.error == 0 || mem::replace(&mut self.error_was_taken, true);
        (!was_taken).then(|| io::Error::from_raw_os_error(self.error))
    }

    pub(crate) fn in_flight(&self) -> Option<Key> {
        self.in_flight
    }

    /// Handles the completion of a send of `len` bytes; `result` is how many were sent, or a
    /// negative error.
    pub(crate) fn on_sent(&mut self, result: i32, len: usize) -> SendOutcome {
        self.in_flight = None;
        self.sending = 0;
        if self.error != 0 {
            // It was given up: before the cancellation, some or all of the data may have been sent.
            let all_was_sent = usize::try_from(result).is_ok_and(|count| count >= len);
            return SendOutcome::Cancelled { is_truncated: self.is_truncated || !all_was_sent };
        }
        match usize::try_from(result) {
            // Sockets never send 0 of some bytes; to try again might spin.
            Ok(0) if len > 0 => self.fail(EPIPE),
            Ok(count) if count < len => SendOutcome::Partial(count),
            Ok(_) => self.all_sent(),
            Err(_) if result == -EINTR || result == -EAGAIN => SendOutcome::Partial(0),
            Err(_) => self.fail(-result),
        }
    }

    fn all_sent(&mut self) -> SendOutcome {
        if !self.queue.is_empty() {
            return SendOutcome::All { send_more: true, shut_down: false, notify: false };
        }
        let shut_down = self.end == End::Requested;
        if shut_down {
            self.end = End::Sent;
        }
        SendOutcome::All { send_more: false, shut_down, notify: mem::take(&mut self.wants_room) }
    }

    /// Discards what is not with the kernel, because the connection has failed.
    pub(crate) fn fail(&mut self, error: i32) -> SendOutcome {
        self.error = error;
        self.queue = Vec::new();
        SendOutcome::Failed(error)
    }

    /// Ends our side after everything that was written. Returns whether the end can be sent now; if
    /// not, it is sent later.
    pub(crate) fn request_end(&mut self) -> bool {
        match (self.end, self.is_empty()) {
            (End::Sent, _) => true,
            (_, true) => {
                self.end = End::Sent;
                true
            }
            (_, false) => {
                self.end = End::Requested;
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

    fn write(outbox: &mut Outbox, bytes: &[u8]) -> io::Result<usize> {
        outbox.write(&[IoSlice::new(bytes)], Vec::new)
    }

    /// An outbox whose first bytes are with the kernel.
    fn sending(bytes: &[u8]) -> Outbox {
        let mut outbox = Outbox::default();
        assert_eq!(write(&mut outbox, bytes).ok(), Some(bytes.len()));
        assert_eq!(outbox.take_next().as_deref(), Some(bytes));
        outbox.set_in_flight(Id::new(1, 2).key(Kind::Send));
        outbox
    }

    const QUIET: SendOutcome =
        SendOutcome::All { send_more: false, shut_down: false, notify: false };

    #[test]
    fn each_send_result_leads_to_the_outcome_of_the_table() {
        let cases = [
            (5, QUIET, 0),
            (6, QUIET, 0),
            (4, SendOutcome::Partial(4), 0),
            (1, SendOutcome::Partial(1), 0),
            (0, SendOutcome::Failed(EPIPE), EPIPE),
            (-EINTR, SendOutcome::Partial(0), 0),
            (-EAGAIN, SendOutcome::Partial(0), 0),
            // Not cancelled by us: these bytes would be missing from the middle of the stream.
            (-ECANCELED, SendOutcome::Failed(ECANCELED), ECANCELED),
            (-104, SendOutcome::Failed(104), 104),
        ];
        for (result, outcome, error) in cases {
            let mut outbox = sending(b"12345");
            assert_eq!((outbox.on_sent(result, 5), outbox.error), (outcome, error), "{result}");
            assert!(outbox.in_flight().is_none());
        }
    }

    #[test]
    fn bytes_written_during_a_send_go_out_in_the_next_one() {
        let mut outbox = sending(b"one");
        assert_eq!(outbox.take_next(), None, "nothing was written");
        for bytes in [b"two", b"333"] {
            assert_eq!(write(&mut outbox, bytes).ok(), Some(3));
        }
        assert_eq!(outbox.take_next(), None, "the kernel has some of it");
        assert_eq!(
            outbox.on_sent(3, 3),
            SendOutcome::All { send_more: true, shut_down: false, notify: false }
        );
        assert_eq!(outbox.take_next().as_deref(), Some(&b"two333"[..]));
    }

    #[test]
    fn the_rest_of_a_short_send_goes_out_before_later_bytes() {
        for (later, expected) in [(&b""[..], &b"ree"[..]), (b"444", b"ree444")] {
            let mut outbox = sending(b"three");
            assert_eq!(write(&mut outbox, later).ok(), Some(later.len()));
            assert_eq!(outbox.on_sent(2, 5), SendOutcome::Partial(2));
            outbox.put_back(b"three".to_vec(), 2);
            assert_eq!((outbox.is_empty(), outbox.queue.len()), (false, expected.len()));
            assert_eq!(outbox.take_next().as_deref(), Some(expected));
        }
    }

    #[test]
    fn short_sends_and_later_writes_together_keep_to_two_queues() {
        let mut outbox = Outbox::default();
        for _ in 0..10 {
            let _full = write(&mut outbox, &[b'x'; 60_000]);
            let memory = outbox.take_next().expect("there is something to send");
            outbox.set_in_flight(Id::new(0, 0).key(Kind::Send));
            let _full = write(&mut outbox, &[b'y'; 60_000]);
            assert!(memory.len() + outbox.queue.len() <= 2 * QUEUE_BYTES_MAX);
            assert_eq!(outbox.on_sent(20_000, memory.len()), SendOutcome::Partial(20_000));
            outbox.put_back(memory, 20_000);
        }
    }

    #[test]
    fn a_full_queue_rejects_writes_and_notifies_once_empty() {
        let mut outbox = sending(b"x");
        for (len, taken) in [(QUEUE_BYTES_MAX - 1, QUEUE_BYTES_MAX - 1), (2, 1)] {
            assert_eq!(write(&mut outbox, &vec![b'y'; len]).ok(), Some(taken));
        }
        let full = write(&mut outbox, b"z").map_err(|error| error.kind());
        assert_eq!(full, Err(io::ErrorKind::WouldBlock));
        assert_eq!(
            outbox.on_sent(1, 1),
            SendOutcome::All { send_more: true, shut_down: false, notify: false }
        );
        let queued = outbox.take_next().map(|bytes| bytes.len());
        assert_eq!(queued, Some(QUEUE_BYTES_MAX));
        outbox.set_in_flight(Id::new(1, 2).key(Kind::Send));
        let outcome = outbox.on_sent(QUEUE_BYTES_MAX as i32, QUEUE_BYTES_MAX);
        assert_eq!(outcome, SendOutcome::All { send_more: false, shut_down: false, notify: true });
    }

    #[test]
    fn the_end_follows_all_written_bytes_and_stops_writes() {
        let mut outbox = sending(b"1");
        assert_eq!(write(&mut outbox, b"2").ok(), Some(1));
        assert!(!outbox.request_end() && !outbox.request_end());
        assert_eq!(
            outbox.check_open().map_err(|error| error.kind()),
            Err(io::ErrorKind::BrokenPipe)
        );
        assert_eq!(
            outbox.on_sent(1, 1),
            SendOutcome::All { send_more: true, shut_down: false, notify: false }
        );
        assert_eq!(outbox.take_next().as_deref(), Some(&b"2"[..]));
        outbox.set_in_flight(Id::new(1, 2).key(Kind::Send));
        assert_eq!(
            outbox.on_sent(1, 1),
            SendOutcome::All { send_more: false, shut_down: true, notify: false }
        );
        assert!(outbox.request_end(), "it was told");
        assert!(Outbox::default().request_end(), "with nothing to wait for it is told at once");
    }

    #[test]
    fn an_abandoned_outbox_sends_nothing_whatever_the_result() {
        for (result, is_truncated) in
            [(1, true), (0, true), (3, false), (-ECANCELED, true), (-104, true)]
        {
            for more in [&b""[..], b"two"] {
                let mut outbox = sending(b"one");
                assert_eq!(write(&mut outbox, more).ok(), Some(more.len()));
                assert_eq!(outbox.abandon(), Some(Id::new(1, 2).key(Kind::Send)));
                let is_truncated = is_truncated || !more.is_empty();
                assert_eq!(
                    outbox.on_sent(result, 3),
                    SendOutcome::Cancelled { is_truncated },
                    "{result}"
                );
                assert!(
                    outbox.is_empty()
                        && outbox.take_next().is_none()
                        && outbox.check_open().is_err()
                );
            }
        }
    }

    #[test]
    fn a_failed_connection_takes_no_bytes_and_keeps_none() {
        let mut outbox = sending(b"one");
        assert_eq!(write(&mut outbox, b"two").ok(), Some(3));
        assert_eq!(outbox.on_sent(-104, 3), SendOutcome::Failed(104));
        assert!(outbox.is_empty() && outbox.take_next().is_none());
        for told in [Some(104), None] {
            let error = outbox.take_error().and_then(|error| error.raw_os_error());
            assert_eq!(error, told, "it is told once");
            assert_eq!(outbox.check_open().map_err(|error| error.raw_os_error()), Err(Some(104)));
        }
    }
}
