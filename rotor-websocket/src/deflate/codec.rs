//! Compression and decompression of messages (RFC 7692 §7.2).
//!
//! A message is a deflate stream without its last four bytes, which are an empty block.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::frame::fault::Fault;

/// The end of a deflate stream, which is not sent.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The same and an empty block that is marked as the last one.
const TAIL_AND_LAST: [u8; 6] = [0, 0, 0xff, 0xff, 0x03, 0];

/// How many decompressors a thread keeps. One is enough unless messages are decompressed in parts.
const DECOMPRESSORS_MAX: usize = 4;

/// By how many bytes the room for decompressed data grows at least.
const GROWTH_MIN: usize = 1024;

thread_local! {
    static COMPRESSORS: RefCell<Vec<SharedCompressor>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSORS: RefCell<Vec<Decompress>> = const { RefCell::new(Vec::new()) };
    /// A buffer for the result of a decompression that is needed only during a call.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How large a buffer may be that a thread keeps between two messages.
const SCRATCH_MAX: usize = 64 << 10;

struct SharedCompressor {
    level: u32,
    bits: u8,
    codec: Compress,
}

/// Makes a compressor.
pub(crate) fn compressor(level: u32, bits: u8) -> Compress {
    Compress::new_with_window_bits(Compression::new(level), false, bits)
}

/// Returns how many bytes a compressor with this window takes; measured with zlib-rs.
pub(crate) fn compressor_bytes(bits: u8) -> usize {
    248_960 + (4 << bits)
}

/// How many bytes a decompressor takes; measured.
pub(crate) const DECOMPRESSOR_BYTES: usize = 47_552;

/// Takes a decompressor, for a message or for a connection.
pub(crate) fn take_decompressor() -> Decompress {
    let pool = DECOMPRESSORS.with_borrow_mut(Vec::pop);
    // The largest window can read data that was written with any other.
    pool.unwrap_or_else(|| Decompress::new_with_window_bits(false, 15))
}

/// Returns a decompressor to the thread.
pub(crate) fn return_decompressor(mut codec: Decompress) {
    if codec.total_in() > 0 {
        codec.reset(false);
    }
    DECOMPRESSORS.with_borrow_mut(|pool| {
        if pool.len() < DECOMPRESSORS_MAX {
            pool.push(codec);
        }
    });
}

/// Lends the thread's buffer, empty.
pub(crate) fn with_scratch<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // Taken, not borrowed, because `f` may need one as well.
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let result = f(&mut scratch);
    if scratch.capacity() <= SCRATCH_MAX {
        SCRATCH.set(scratch);
    }
    result
}

/// Compresses a message by itself, with a compressor of the thread.
pub(crate) fn compress_message(level: u32, bits: u8, message: &[u8], to: &mut Vec<u8>) {
    COMPRESSORS.with_borrow_mut(|all| {
        let known = all.iter().position(|shared| shared.level == level && shared.bits == bits);
        let at = known.unwrap_or_else(|| {
            all.push(SharedCompressor { level, bits, codec: compressor(level, bits) });
            all.len() - 1
        });
        let codec = &mut all[at].codec;
        codec.reset();
        compress(codec, message, to);
    });
}

/// Compresses a message, which may refer to those that the codec has compressed before.
pub(crate) fn compress(codec: &mut Compress, message: &[u8], to: &mut Vec<u8>) {
    let before = codec.total_in();
    loop {
        let done = (codec.total_in() - before) as usize;
        to.reserve((message.len() - done) / 2 + 64);
        // It fails only after the end of a stream, and no stream is ended here.
        let _ = codec.compress_vec(&message[done..], to, FlushCompress::Sync);
        let is_taken = (codec.total_in() - before) as usize == message.len();
        // If there is room left, there is no more output.
        if is_taken && to.len() < to.capacity() {
            break;
        }
    }
    if to.ends_with(&TAIL) {
        to.truncate(to.len() - TAIL.len());
    }
    // An empty message would be sent as nothing, which decompressors need not accept (RFC 7692
    // §7.2.3.6).
    if to.is_empty() {
        to.push(0);
    }
}

/// Decompresses a part of a message, and appends the output to `to`, until `to` has `max` bytes.
/// Returns how much of the part was used: all of it, unless `to` has `max` bytes.
pub(crate) fn decompress_to(
    codec: &mut Decompress,
    part: &[u8],
    to: &mut Vec<u8>,
    max: usize,
) -> Result<usize, Fault> {
    let mut used = 0;
    let mut len = to.len();
    loop {
        if len >= max {
            to.truncate(len);
            return Ok(used);
        }
        // The room grows with the input, since a length that the peer announces cannot be trusted.
        // Room that was not used is kept for the next round: a message can cause as many rounds as
        // it has blocks that are marked as the last.
        if to.len() == len {
            let growth = GROWTH_MIN.max((part.len() - used) * 2).max(len).min(max - len);
            to.resize(len + growth, 0);
            #[cfg(test)]
            tests::GROWN.set(tests::GROWN.get() + growth);
        }
        let (read, written) = (codec.total_in(), codec.total_out());
        let status = codec
            .decompress(&part[used..], &mut to[len..], FlushDecompress::Sync)
            .map_err(|_| Fault::Deflate)?;
        let (read, written) = (codec.total_in() - read, codec.total_out() - written);
        used += read as usize;
        len += written as usize;
        match status {
            // This block is marked as the last one; the data after it begins a new stream (RFC 7692
            // §7.2.3.4).
            Status::StreamEnd => codec.reset(false),
            Status::Ok | Status::BufError => {}
        }
        if used == part.len() && len < to.len() {
            to.truncate(len);
            return Ok(used);
        }
        if read == 0 && written == 0 && status != Status::StreamEnd {
            return Err(Fault::Deflate);
        }
    }
}

/// Decompresses the end of a message after the message itself. `is_alone` is whether the codec reads
/// only this message. Returns whether the message is complete; if not, `to` has `max` bytes.
///
/// # Errors
///
/// The message has ended within a block. With context takeover, not each such message is recognized:
/// a last block would end the stream, and the codec would forget the earlier messages.
pub(crate) fn decompress_tail(
    codec: &mut Decompress,
    is_alone: bool,
    to: &mut Vec<u8>,
    max: usize,
) -> Result<bool, Fault> {
    let len = to.len();
    // If the output is full there may be more, even if all input was read.
    if len >= max {
        return Ok(false);
    }
    // A peer may have left out what has to follow a block that is marked as the last one (RFC 7692
    // §7.2.3.4).
    if is_alone && codec.total_in() == 0 {
        return Ok(true);
    }
    let tail = if is_alone { &TAIL_AND_LAST[..] } else { &TAIL };
    let used = decompress_to(codec, tail, to, max)?;
    // After the last block, the codec is at the beginning of a stream.
    let has_ended = !is_alone || codec.total_in() == 0;
    if used == tail.len() && to.len() == len && has_ended { Ok(true) } else { Err(Fault::Deflate) }
}

/// Decompresses a whole message. It stops when the output exceeds `max`, so a longer message costs
/// no more than that.
pub(crate) fn decompress(
    codec: &mut Decompress,
    is_alone: bool,
    message: &[u8],
    to: &mut Vec<u8>,
    max: usize,
) -> Result<(), Fault> {
    // One byte more than allowed, to detect that there is more.
    let most = max.saturating_add(1);
    decompress_to(codec, message, to, most)?;
    if to.len() > max || !decompress_tail(codec, is_alone, to, most)? {
        return Err(Fault::TooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        /// The total number of bytes by which output buffers were enlarged.
        pub(super) static GROWN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    fn decompressed(message: &[u8], max: usize) -> Result<Vec<u8>, Fault> {
        let (mut codec, mut to) = (take_decompressor(), Vec::new());
        let result = decompress(&mut codec, true, message, &mut to, max);
        return_decompressor(codec);
        result.map(|()| to)
    }

    /// Bytes that do not compress, the same for each call.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn the_rfc_examples_are_decompressed() {
        let hello: [&[u8]; 5] = [
            // One block; two blocks; an uncompressed block; a block marked as the last one.
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00],
        ];
        for message in hello {
            assert_eq!(decompressed(message, 100).as_deref(), Ok(&b"Hello"[..]), "{message:x?}");
        }
        assert_eq!(decompressed(&[0], 100).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn a_round_trip_works_with_every_window_and_length() {
        for bits in 9..=15 {
            for len in [0, 1, 5, 300, 5_000, 70_000] {
                for message in [noise(len), b"all work and no play ".repeat(len / 21 + 1)] {
                    let mut to = Vec::new();
                    compress_message(1, bits, &message, &mut to);
                    assert_eq!(
                        decompressed(&to, message.len()).as_deref(),
                        Ok(&message[..]),
                        "{bits} {len}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_message_refers_to_the_previous_one_with_takeover() {
        let (mut from, mut back) = (compressor(1, 15), take_decompressor());
        let message = noise(1_000);
        let mut lens = Vec::new();
        for _ in 0..3 {
            let (mut to, mut read) = (Vec::new(), Vec::new());
            compress(&mut from, &message, &mut to);
            decompress(&mut back, false, &to, &mut read, 1_000).expect("it is in order");
            assert_eq!(read, message);
            lens.push(to.len());
        }
        assert!(lens[0] > 1_000 && lens[1] < 50 && lens[2] < 50, "{lens:?}");
        // An empty message is one byte, even if the codec has nothing to add (RFC 7692 §7.2.3.6).
        for _ in 0..2 {
            let mut to = Vec::new();
            compress(&mut from, b"", &mut to);
            assert_eq!(to, [0]);
        }
    }

    #[test]
    fn a_decompression_bomb_is_stopped_at_the_limit() {
        let mut bomb = Vec::new();
        compress_message(6, 15, &vec![0; 8 << 20], &mut bomb);
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        let (mut codec, mut to) = (take_decompressor(), Vec::new());
        assert_eq!(decompress(&mut codec, true, &bomb, &mut to, 1 << 20), Err(Fault::TooLong));
        assert!(to.capacity() <= 4 << 20, "{}", to.capacity());
        assert!(codec.total_in() < 3_000, "{}", codec.total_in());
    }

    /// Decompression restarts at each final block, so the cost of a block must not depend on the
    /// length of the rest.
    #[test]
    fn a_message_of_only_final_blocks_costs_as_much_as_its_length() {
        let last = [0x03, 0x00];
        for max in [0, 1 << 20] {
            let grown = GROWN.get();
            assert_eq!(decompressed(&last.repeat(5_000), max).as_deref(), Ok(&b""[..]));
            assert!(GROWN.get() - grown <= 20_000 + GROWTH_MIN, "{}", GROWN.get() - grown);
        }
        // The limit applies to the total output of all blocks.
        let one = [0x4b, 0x04, 0x00];
        assert_eq!(decompressed(&one.repeat(1_000), 1_000).as_deref(), Ok(&[b'a'; 1_000][..]));
        assert_eq!(decompressed(&one.repeat(1_000), 999), Err(Fault::TooLong));
    }

    #[test]
    fn the_limit_is_exact() {
        let mut to = Vec::new();
        compress_message(1, 15, &[b'x'; 10_000], &mut to);
        for (max, fits) in [(9_999, false), (10_000, true), (10_001, true)] {
            assert_eq!(decompressed(&to, max).is_ok(), fits, "{max}");
        }
    }

    #[test]
    fn garbage_is_refused_and_the_codec_still_works() {
        for message in [&b"\xff\xff\xff\xff\xff"[..], b"\x07garbage", &noise(100)] {
            assert_eq!(decompressed(message, 1 << 20), Err(Fault::Deflate), "{message:x?}");
        }
        assert!(decompressed(&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], 5).is_ok());
    }

    #[test]
    fn a_message_that_ends_within_a_block_is_refused() {
        let mut long = Vec::new();
        compress_message(
            6,
            15,
            format!("{:?}", (0..500).collect::<Vec<_>>()).as_bytes(),
            &mut long,
        );
        let hello = vec![0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        // What should follow a block that is marked as the last one may be missing.
        let last = vec![0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        for message in [hello, last, long] {
            assert!(decompressed(&message, 1 << 20).is_ok(), "{message:x?}");
            for len in 1..message.len() {
                let cut = decompressed(&message[..len], 1 << 20);
                assert_eq!(cut, Err(Fault::Deflate), "{len} of {}", message.len());
            }
        }
    }

    #[test]
    fn decompression_in_parts_gives_the_same_message() {
        let message = b"all work and no play ".repeat(5_000);
        let mut to = Vec::new();
        compress_message(1, 15, &message, &mut to);
        for size in [1, 7, 100, to.len()] {
            let (mut codec, mut all) = (take_decompressor(), Vec::new());
            for mut part in to.chunks(size).chain([&TAIL[..]]) {
                while {
                    let mut piece = Vec::new();
                    let used =
                        decompress_to(&mut codec, part, &mut piece, 1_000).expect("in order");
                    part = &part[used..];
                    all.extend_from_slice(&piece);
                    piece.len() == 1_000
                } {}
                assert!(part.is_empty());
            }
            assert!(all == message, "{size}");
            return_decompressor(codec);
        }
    }
}
