//! `Spare`: memory of streams that were at work, to be reused by others.

use super::stream_buffers::StreamBuffers;

/// The largest memory that is kept, in bytes: enough for responses to small requests.
const CACHED_BYTES_MAX: usize = 4 * 1024;
/// How many bytes are kept in all: 1 MiB.
const TOTAL_BYTES_MAX: usize = 1024 * 1024;
/// How many bytes are allocated if no memory is kept.
const NEW_BYTES: usize = 512;

/// How many [`StreamBuffers`] are kept. 1,024: as many as complete in a turn by default; some 80
/// KiB.
const STREAM_BUFFERS_MAX: usize = 1_024;

pub(super) struct Spare {
    memory: Vec<Vec<u8>>,
    bytes: usize,
    #[expect(clippy::vec_box, reason = "they are handed on as they are, without a copy")]
    stream_buffers: Vec<Box<StreamBuffers>>,
}

impl Spare {
    pub(super) fn new() -> Spare {
        Spare { memory: Vec::new(), bytes: 0, stream_buffers: Vec::new() }
    }

    /// Returns the `StreamBuffers` for a stream that begins.
    pub(super) fn take_buffers(&mut self) -> Box<StreamBuffers> {
        self.stream_buffers.pop().unwrap_or_default()
    }

    /// Takes back the `StreamBuffers` of a stream that is done.
    pub(super) fn recycle_buffers(&mut self, buffers: Box<StreamBuffers>) {
        debug_assert!(buffers.is_idle());
        if self.stream_buffers.len() < STREAM_BUFFERS_MAX {
            self.stream_buffers.push(buffers);
        }
    }

    pub(super) fn take_memory(&mut self) -> Vec<u8> {
        let Some(memory) = self.memory.pop() else { return Vec::with_capacity(NEW_BYTES) };
        self.bytes -= memory.capacity();
        memory
    }

    pub(super) fn recycle_memory(&mut self, mut memory: Vec<u8>) {
        let bytes = memory.capacity();
        if bytes <= CACHED_BYTES_MAX && self.bytes + bytes <= TOTAL_BYTES_MAX {
            memory.clear();
            self.bytes += bytes;
            self.memory.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_buffers_are_kept_up_to_a_maximum() {
        let mut spare = Spare::new();
        for _ in 0..=STREAM_BUFFERS_MAX {
            spare.recycle_buffers(Box::default());
        }
        assert_eq!(spare.stream_buffers.len(), STREAM_BUFFERS_MAX);
        spare.take_buffers();
        assert_eq!(spare.stream_buffers.len(), STREAM_BUFFERS_MAX - 1);
    }

    #[test]
    fn memory_is_kept_up_to_a_maximum() {
        let mut spare = Spare::new();
        assert!(spare.take_memory().capacity() >= NEW_BYTES);
        spare.recycle_memory(Vec::with_capacity(CACHED_BYTES_MAX + 1));
        assert_eq!((spare.memory.len(), spare.bytes), (0, 0));
        for _ in 0..2 * TOTAL_BYTES_MAX / CACHED_BYTES_MAX {
            spare.recycle_memory(vec![7; CACHED_BYTES_MAX]);
        }
        assert_eq!(spare.bytes, TOTAL_BYTES_MAX);
        for _ in 0..TOTAL_BYTES_MAX / CACHED_BYTES_MAX {
            let memory = spare.take_memory();
            assert!(memory.is_empty() && memory.capacity() == CACHED_BYTES_MAX);
        }
        assert_eq!((spare.memory.len(), spare.bytes), (0, 0));
    }
}
