//! `SealedRecords`: records that are about to be written, in a block of the thread that has
//! only ever held records.
//!
//! Room in a [`Buf`] is filled with zeros each time it is lent, because it may have held plaintext
//! of other connections. This block has only ever held bytes that are sent over the network anyway,
//! so it is zeroed once for each thread.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::mem;

use rotor_core::net::StreamSocket;
use rotor_stream::Buf;

use crate::engine::records_bytes;
use crate::record_sink::RecordSink;

/// The maximum number of bytes of plaintext that one write takes: four records, so that a long body
/// needs few system calls and little memory.
pub(crate) const WRITE_BYTES_MAX: usize = 64 * 1024;

/// The size of the block, in bytes: enough for the records of one write, and for records before
/// them (tickets, a new key).
const SEALED_BYTES: usize = records_bytes(WRITE_BYTES_MAX) + WAITING_BYTES_MAX;

/// Up to this many waiting bytes are written first, with the same write.
const WAITING_BYTES_MAX: usize = 4 * 1024;

thread_local! {
    /// Absent before the first use, and while it is in use.
    static BLOCK: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Records after those that wait already. Unsent ones are added to the waiting ones.
pub(crate) struct SealedRecords<'a> {
    /// Once this is not empty, all further records are added to it.
    waiting: &'a mut Buf,
    block: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<'a> SealedRecords<'a> {
    #[inline]
    pub(crate) fn after(waiting: &'a mut Buf) -> SealedRecords<'a> {
        // It may be gone while the thread ends.
        let cached = BLOCK.try_with(Cell::take).ok().flatten();
        let mut block = cached.unwrap_or_else(new_block);
        let mut end = 0;
        if !waiting.is_empty() && waiting.len() <= WAITING_BYTES_MAX {
            end = waiting.len();
            block[..end].copy_from_slice(waiting);
            waiting.clear();
        }
        SealedRecords { waiting, block, start: 0, end }
    }

    /// Writes the block, as far as the socket takes it. The block is empty if anything waits.
    ///
    /// # Errors
    ///
    /// The socket's error; `WriteZero` if it takes nothing.
    #[inline]
    pub(crate) fn send<S: StreamSocket>(mut self, inner: &mut S) -> io::Result<()> {
        while self.start < self.end {
            match inner.write(&self.block[self.start..self.end])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.start = self.end.min(self.start + count),
            }
        }
        inner.flush()
    }

    /// Moves the block's records to the waiting ones.
    fn move_to_waiting(&mut self) {
        if self.start < self.end {
            self.waiting.extend(&self.block[self.start..self.end]);
        }
        (self.start, self.end) = (0, 0);
    }
}

impl RecordSink for SealedRecords<'_> {
    #[inline]
    fn append<E>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        if self.waiting.is_empty() && room <= self.block.len() - self.end {
            let count = write(&mut self.block[self.end..self.end + room])?;
            self.end += count.min(room);
            return Ok(());
        }
        self.move_to_waiting();
        self.waiting.append(room, write)
    }
}

impl Drop for SealedRecords<'_> {
    #[inline]
    fn drop(&mut self) {
        self.move_to_waiting();
        let block = mem::take(&mut self.block);
        let _ = BLOCK.try_with(|place| place.set(Some(block)));
    }
}

#[cold]
fn new_block() -> Box<[u8]> {
    vec![0; SEALED_BYTES].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use rotor_stream::testing::{World, pair};

    use super::*;

    fn put(sealed: &mut SealedRecords<'_>, bytes: &[u8]) {
        let appended = sealed.append(bytes.len() + 10, |room| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok::<usize, ()>(bytes.len())
        });
        assert_eq!(appended, Ok(()));
    }

    #[test]
    fn waiting_records_are_sent_first_and_unsent_ones_wait() {
        for waits in [0, 1, WAITING_BYTES_MAX, WAITING_BYTES_MAX + 1] {
            for room in [0, 1, waits, waits + 3, waits + 100] {
                let mut waiting = Buf::new();
                waiting.extend(&vec![b'w'; waits]);
                let (mut socket, peer) = pair::<true>(&World::new());
                peer.limit_room(room);
                let mut sealed = SealedRecords::after(&mut waiting);
                put(&mut sealed, b"one");
                put(&mut sealed, b"two");
                let sent = sealed.send(&mut socket);
                let mut all = peer.take_received();
                if waits <= WAITING_BYTES_MAX {
                    assert_eq!(sent.is_ok(), room >= waits + 6, "{waits} {room}");
                    assert_eq!(all.len(), room.min(waits + 6));
                } else {
                    assert!(sent.is_ok() && all.is_empty());
                }
                all.extend_from_slice(&waiting);
                assert_eq!(all, [&vec![b'w'; waits][..], b"onetwo"].concat(), "{waits} {room}");
            }
        }
    }

    #[test]
    fn records_that_do_not_fit_wait_after_those_in_the_block() {
        let mut waiting = Buf::new();
        let mut sealed = SealedRecords::after(&mut waiting);
        put(&mut sealed, b"first");
        put(&mut sealed, &[b'x'; SEALED_BYTES]);
        put(&mut sealed, b"last");
        drop(sealed);
        assert_eq!(waiting.len(), 5 + SEALED_BYTES + 4);
        assert!(waiting.starts_with(b"firstx") && waiting.ends_with(b"xlast"));
    }

    #[test]
    fn a_block_is_reused_without_being_zeroed_again() {
        let mut waiting = Buf::new();
        let mut sealed = SealedRecords::after(&mut waiting);
        let place = sealed.block.as_ptr();
        put(&mut sealed, b"record");
        drop(sealed);
        let sealed = SealedRecords::after(&mut waiting);
        assert_eq!((sealed.block.as_ptr(), &sealed.block[..6]), (place, &b"record"[..]));
    }

    #[test]
    fn a_failed_write_appends_nothing() {
        let mut waiting = Buf::new();
        let mut sealed = SealedRecords::after(&mut waiting);
        assert_eq!(sealed.append(10, |_| Err("no")), Err("no"));
        put(&mut sealed, b"yes");
        drop(sealed);
        assert_eq!(&waiting[..], b"yes");
    }
}
