//! A buffer compared with a model, and the memory that it holds.

use std::fs::File;
use std::io::Read;
use std::net::{Shutdown, SocketAddr};

use rotor_core::net::{ReadBuf, StreamSocket};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};
use rotor_test_kit::Directory;

use super::*;

fn buf(bytes: &[u8]) -> Buf {
    let mut buf = Buf::new();
    buf.extend(bytes);
    buf
}

#[test]
fn an_empty_buffer_holds_no_memory() {
    let mut buf = Buf::new();
    assert_eq!((buf.capacity(), buf.len(), buf.is_empty()), (0, 0, true));
    buf.extend(b"");
    assert_eq!(buf.capacity(), 0);
    buf.extend(b"x");
    assert_eq!((buf.capacity(), buf.len()), (BLOCK_BYTES, 1));
    buf.consume(1);
    assert_eq!((buf.capacity(), &buf[..]), (0, &b""[..]));
}

#[test]
fn consume_removes_from_the_front_and_is_clamped_to_the_length() {
    for (count, left) in [(0, "abc"), (1, "bc"), (2, "c"), (3, ""), (4, ""), (usize::MAX, "")] {
        let mut buf = buf(b"abc");
        buf.consume(count);
        assert_eq!(&buf[..], left.as_bytes(), "{count}");
        assert_eq!(buf.capacity() == 0, left.is_empty());
    }
}

#[test]
fn ranges_are_removed_anywhere() {
    let cases: [(usize, usize, &str); 9] = [
        (0, 0, "abcdef"),
        (0, 2, "cdef"),
        (2, 4, "abef"),
        (4, 6, "abcd"),
        (4, 99, "abcd"),
        (0, 6, ""),
        (6, 9, "abcdef"),
        (9, 9, "abcdef"),
        (3, 1, "abcdef"),
    ];
    for (from, to, left) in cases {
        let mut buf = buf(b"xxabcdef");
        buf.consume(2);
        buf.remove_range(from..to);
        assert_eq!(&buf[..], left.as_bytes(), "{from}..{to}");
    }
    let mut inclusive = buf(b"abcdef");
    inclusive.remove_range(1..=2);
    assert_eq!(&inclusive[..], b"adef");
    inclusive.remove_range(2..);
    assert_eq!(&inclusive[..], b"ad");
    inclusive.remove_range(..);
    assert_eq!(inclusive.capacity(), 0);
}

#[test]
fn long_contents_grow_by_doubling_and_keep_their_order() {
    let mut buf = Buf::new();
    let mut copies = 0;
    let mut capacity = 0;
    for number in 0..100_000u32 {
        buf.extend(&number.to_be_bytes());
        copies += usize::from(buf.capacity() != capacity);
        capacity = buf.capacity();
    }
    assert_eq!((buf.len(), copies), (400_000, 6));
    for number in 0..100_000u32 {
        assert_eq!(buf[..4], number.to_be_bytes());
        buf.consume(4);
    }
    assert_eq!(buf.capacity(), 0);
}

#[test]
fn pieces_are_appended_in_order_at_any_fill_level() {
    for before in [0, 1, BLOCK_BYTES - 7, BLOCK_BYTES - 6, BLOCK_BYTES - 5, BLOCK_BYTES] {
        let mut buf = buf(&vec![b'x'; before]);
        buf.extend_pieces(&[b"", b"ab", b"", b"cde", b"f"]);
        assert_eq!((buf.len(), &buf[before..]), (before + 6, &b"abcdef"[..]));
        buf.extend_pieces(&[]);
        assert_eq!(buf.len(), before + 6);
    }
    let mut empty = Buf::new();
    empty.extend_pieces(&[b"", b""]);
    assert_eq!(empty.capacity(), 0);
}

#[test]
fn a_queue_that_is_consumed_as_it_is_filled_does_not_grow() {
    let mut buf = buf(&[7; 5_000]);
    for _ in 0..1_000 {
        buf.extend(&[7; 5_000]);
        buf.consume(5_000);
    }
    assert!(buf.capacity() <= 2 * BLOCK_BYTES, "{buf:?}");
}

#[test]
fn shrinking_moves_few_bytes_out_of_a_block_and_leaves_many() {
    for (read, len, capacity) in [
        (0, 1, 64),
        (0, 64, 64),
        (0, 65, 128),
        (0, 2_048, 2_048),
        (0, 2_049, BLOCK_BYTES),
        (40_000, 8_192, 8_192),
        (40_000, 8_193, 4 * BLOCK_BYTES),
    ] {
        let mut buf = buf(&vec![b'x'; read + len]);
        buf.consume(read);
        buf.shrink();
        assert_eq!((buf.len(), buf.capacity()), (len, capacity));
        assert!(buf.iter().all(|byte| *byte == b'x'));
        buf.extend(b"more");
        assert_eq!(&buf[len..], b"more");
    }
}

struct OverlongReader;

impl Read for OverlongReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(buffer.len() + 1)
    }
}

#[test]
fn a_reader_that_claims_too_much_is_an_error() {
    let mut buf = Buf::new();
    assert!(buf.read_from(&mut OverlongReader, 1).is_err());
    assert_eq!(buf.capacity(), 0);
    let filled = buf.read_from(&mut &b"abc"[..], 1).expect("three bytes");
    assert_eq!(filled, Filled { count: 3, asked: BLOCK_BYTES });
    assert!(buf.read_from(&mut OverlongReader, 1).is_err());
    assert_eq!(&buf[..], b"abc");
    assert_eq!(buf.read_from(&mut io::empty(), 1).expect("nothing").count, 0);
    assert_eq!(Vec::from(buf), b"abc");
}

#[test]
fn a_vector_holds_at_most_twice_its_bytes() {
    for (len, is_copied) in [
        (0, false),
        (1, true),
        (BLOCK_BYTES / 2 - 1, true),
        (BLOCK_BYTES / 2, false),
        (BLOCK_BYTES, false),
    ] {
        let buf = buf(&vec![b'x'; len]);
        let place = buf.as_ptr();
        let bytes = buf.into_vec();
        assert_eq!(bytes, vec![b'x'; len]);
        assert_eq!(bytes.as_ptr() != place, is_copied, "{len}");
        assert!(bytes.capacity() <= 2 * len, "{} for {len}", bytes.capacity());
    }
}

#[test]
fn a_read_that_asks_for_no_room_still_reads_bytes() {
    for held in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES] {
        let mut buf = buf(&vec![b'x'; held]);
        assert!(buf.read_from(&mut &b"abc"[..], 0).expect("three bytes").count > 0, "{held}");
    }
}

#[test]
fn kernel_reads_get_all_the_room_and_other_reads_at_most_a_block() {
    const B: usize = BLOCK_BYTES;
    for (held, room, asked, asked_of_others) in [
        (0, 1, B, B),
        (0, B, B, B),
        (0, B + 1, 2 * B, B),
        (100, 1, B - 100, B - 100),
        (B, B, B, B),
        (B, B + 1, 3 * B, B),
        (B, 3 * B, 3 * B, B),
    ] {
        for is_here in [true, false] {
            let mut buf = buf(&vec![b'x'; held]);
            let (mut reader, asked) = (&b"abc"[..], if is_here { asked } else { asked_of_others });
            let read = if is_here { Buf::read_direct } else { Buf::read_from };
            let filled = read(&mut buf, &mut reader, room).expect("three bytes");
            assert_eq!((filled.asked, buf.len()), (asked, held + 3), "{held} {room} {is_here}");
            assert_eq!(&buf[held..], b"abc");
            assert!(buf[..held].iter().all(|byte| *byte == b'x'));
        }
    }
}

/// Claims to have filled the buffer it was lent, but has written one byte.
struct OverclaimingReader;

impl Read for OverclaimingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer[0] = b'!';
        Ok(buffer.len())
    }
}

/// Returns whether these are the bytes that a read of an [`OverclaimingReader`] exposes.
fn is_overclaimed_read(bytes: &[u8]) -> bool {
    bytes[0] == b'!' && bytes[1..].iter().all(|byte| *byte == 0)
}

/// The room offered to a read that expects little, and to one that expects much.
const ROOMS: [usize; 2] = [4_096, 4 * BLOCK_BYTES];

#[test]
fn a_reader_that_claims_more_than_it_wrote_exposes_only_zeros() {
    for room in ROOMS {
        // Data that the thread's other connections leave in their blocks.
        for len in [BLOCK_BYTES, 4 * BLOCK_BYTES] {
            drop(buf(&vec![b'p'; len]));
        }
        let mut buf = Buf::new();
        for round in 0..5 {
            // In a fresh block, in the rest of a block, in a block that has grown.
            let filled = buf.read_from(&mut OverclaimingReader, room).expect("it never fails");
            assert_eq!(filled.count, filled.asked);
            let last = buf.len() - filled.count;
            assert!(is_overclaimed_read(&buf[last..]), "{room} {round}");
            buf.consume(100);
        }
        // Data of the previous reader is not exposed either.
        buf.clear();
        buf.read_from(&mut io::repeat(b'p'), room).expect("it never ends");
        buf.clear();
        buf.read_from(&mut OverclaimingReader, room).expect("it never fails");
        assert!(is_overclaimed_read(&buf), "{room}");
    }
}

/// Writes to this range of the buffer, and returns a different result.
struct ScriptedReader(std::ops::Range<usize>, fn() -> io::Result<usize>);

impl Read for ScriptedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer[self.0.clone()].fill(b'p');
        (self.1)()
    }
}

#[test]
fn unclaimed_bytes_of_one_reader_are_not_exposed_by_the_next() {
    let rows: [ScriptedReader; 7] = [
        // As a reader that decrypts in place: it writes more than it claims, directly after the
        // claimed bytes.
        ScriptedReader(0..101, || Ok(100)),
        ScriptedReader(0..BLOCK_BYTES, || Ok(100)),
        ScriptedReader(0..BLOCK_BYTES, || Ok(BLOCK_BYTES - 1)),
        ScriptedReader(15..BLOCK_BYTES, || Err(io::ErrorKind::WouldBlock.into())),
        ScriptedReader(0..1, || Err(io::ErrorKind::Interrupted.into())),
        // A reader that fails, after it has written something.
        ScriptedReader(5_000..5_001, || Err(io::ErrorKind::InvalidData.into())),
        ScriptedReader(5_000..5_001, || Ok(BLOCK_BYTES + 1)),
    ];
    for (row, mut reader) in rows.into_iter().enumerate() {
        for room in ROOMS {
            let mut buf = Buf::new();
            let _ = buf.read_from(&mut reader, room);
            buf.clear();
            buf.read_from(&mut OverclaimingReader, room).expect("it never fails");
            assert!(is_overclaimed_read(&buf), "{row} {room}");
        }
    }
}

/// Reads into its own buffer, as a machine within a machine does, and returns only what was read.
struct Nested(u32);

impl Read for Nested {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            buffer[0] = b'.';
            return Ok(1);
        }
        buffer[0] = b'(';
        let mut inner = Buf::new();
        inner.read_from(&mut Nested(self.0 - 1), 1)?;
        buffer[1..=inner.len()].copy_from_slice(&inner);
        buffer[inner.len() + 1] = b')';
        Ok(inner.len() + 2)
    }
}

#[test]
fn a_nested_reader_gets_its_own_scratch_memory() {
    for room in ROOMS {
        let mut buf = Buf::new();
        for _ in 0..3 {
            buf.read_from(&mut Nested(3), room).expect("it never fails");
        }
        assert_eq!(&buf[..], b"(((.)))(((.)))(((.)))", "{room}");
        buf.clear();
        buf.read_from(&mut OverclaimingReader, room).expect("it never fails");
        assert!(is_overclaimed_read(&buf), "{room}");
    }
}

#[test]
fn bytes_of_a_panicked_reader_are_not_exposed_by_the_next() {
    struct PanickingReader;
    impl Read for PanickingReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'p');
            panic!("after it has written");
        }
    }
    for room in ROOMS {
        let mut buf = Buf::new();
        let spilled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            buf.read_from(&mut PanickingReader, room)
        }));
        assert!(spilled.is_err() && buf.is_empty());
        buf.read_from(&mut OverclaimingReader, room).expect("it never fails");
        assert!(is_overclaimed_read(&buf), "{room}");
    }
}

/// Is never lent memory: its data is put into a buffer that it does not see.
struct Unseen(io::Result<Vec<u8>>);

impl Read for Unseen {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        unreachable!("it is read in another way")
    }
}

impl Write for Unseen {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        unreachable!("nobody writes")
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Unseen {
    fn register(&mut self, _: &dyn BackendHandle, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }
    fn deregister(&mut self, _: &dyn BackendHandle) -> io::Result<()> {
        Ok(())
    }
}

impl StreamSocket for Unseen {
    type Target = ();
    const READS_UNSEEN: bool = true;

    fn connect<C>((): &(), _: &Scope<'_, C>) -> io::Result<Unseen> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        match &mut self.0 {
            Ok(bytes) => {
                let count = buf.put_slice(bytes);
                bytes.drain(..count);
                Ok(())
            }
            Err(error) => Err(error.kind().into()),
        }
    }
    fn shutdown(&mut self, _: Shutdown) -> io::Result<()> {
        Ok(())
    }
    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }
    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

#[test]
fn an_unseen_read_uses_all_the_room_and_exposes_only_received_bytes() {
    // Data of earlier buffers stays in this thread's memory.
    drop(buf(&[b'!'; 4 * BLOCK_BYTES]));
    drop(buf(&[b'!'; BLOCK_BYTES]));
    let mut socket = Unseen(Ok(vec![b'a'; 5 * BLOCK_BYTES]));
    let mut buf = Buf::new();
    for (room, count, asked) in [
        // A room of 0 would look like EOF.
        (0, BLOCK_BYTES, BLOCK_BYTES),
        (4 * BLOCK_BYTES, 4 * BLOCK_BYTES, 4 * BLOCK_BYTES),
        (100, 0, BLOCK_BYTES),
    ] {
        let filled = buf.read_from_socket(&mut socket, room).expect("there is something");
        assert_eq!((filled.count, filled.asked), (count, asked), "{room}");
        assert!(buf.len() == count && buf.iter().all(|byte| *byte == b'a'), "{room}");
        assert_eq!(buf.capacity(), if count == 0 { 0 } else { asked });
        buf.clear();
    }
    // After the existing bytes, up to the end of the block.
    socket.0 = Ok(vec![b'b'; 100]);
    buf.extend(b"a");
    let filled = buf.read_from_socket(&mut socket, 4_096).expect("there is something");
    assert_eq!((filled.count, filled.asked, buf.len()), (100, BLOCK_BYTES - 1, 101));
    assert_eq!((&buf[..3], buf[100]), (&b"abb"[..], b'b'));
    // An error keeps the existing bytes, and an empty buffer keeps no memory.
    socket.0 = Err(io::ErrorKind::WouldBlock.into());
    assert!(buf.read_from_socket(&mut socket, 4_096).is_err() && buf.len() == 101);
    buf.clear();
    assert!(buf.read_from_socket(&mut socket, 4_096).is_err() && buf.capacity() == 0);
}

#[test]
fn a_buffer_is_four_words() {
    assert_eq!(size_of::<Buf>(), 32);
}

#[test]
fn lent_room_is_zeroed_and_appended_only_once_committed() {
    let mut other = Buf::new();
    other.extend(&[b's'; BLOCK_BYTES]);
    drop(other);
    let mut buf = Buf::new();
    for (asked, committed) in
        [(0, 0), (100, 0), (100, 3), (3, 4), (BLOCK_BYTES, 7), (9, usize::MAX)]
    {
        let before = buf.to_vec();
        let mut room = buf.room(asked);
        assert_eq!(&room[..], vec![0; asked], "nothing of another connection");
        room.fill(b'x');
        room.commit(committed);
        let added = committed.min(asked);
        assert_eq!(&buf[..], [&before[..], &vec![b'x'; added]].concat(), "{asked} {committed}");
    }
    buf.clear();
    drop(buf.room(100));
    assert_eq!(buf.capacity(), 0, "an empty buffer holds no memory");
    buf.extend(b"kept");
    buf.room(100).fill(b'y');
    assert_eq!((&buf[..], buf.len()), (&b"kept"[..], 4));
}

#[test]
fn read_file_at_appends_only_the_requested_range() {
    let directory = Directory::create();
    let path = directory.file("text", b"0123456789");
    let file = File::open(&path).expect("it is there");
    for room in ROOMS {
        // Whatever the memory contained before.
        let mut other = Buf::new();
        other.extend(&vec![b's'; room]);
        drop(other);
        let mut buf = Buf::new();
        let count = |read: io::Result<usize>| read.expect("it can be read");
        assert_eq!(count(buf.read_file_at(&file, 2, 3)), 3);
        assert_eq!(count(buf.read_file_at(&file, 8, room)), 2);
        assert_eq!(&buf[..], b"23489");
        for (offset, most) in [(10, room), (u64::from(u32::MAX), room), (0, 0)] {
            assert_eq!(count(buf.read_file_at(&file, offset, most)), 0);
            let mut empty = Buf::new();
            assert_eq!(count(empty.read_file_at(&file, offset, most)), 0);
            assert_eq!(empty.capacity(), 0, "an empty buffer holds no memory");
        }
        let unreadable = File::options().write(true).open(&path).expect("it may be written");
        buf.read_file_at(&unreadable, 0, room).expect_err("it was opened to be written");
        assert_eq!(&buf[..], b"23489");
    }
}
