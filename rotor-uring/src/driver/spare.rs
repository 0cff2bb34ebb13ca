//! `Spare`: memory of streams that were at work, to be reused by others.

use super::work::Work;

/// The largest memory that is kept, in bytes: enough for responses to small requests.
const KEPT_BYTES_MAX: usize = 4 * 1024;
/// How many bytes are kept in all: 1 MiB.
const ALL_BYTES_MAX: usize = 1024 * 1024;
/// How many bytes are allocated if no memory is kept.
const NEW_BYTES: usize = 512;

/// How many streams' [`Work`] is kept. 1,024: as many as complete in a turn by default; some 80
/// KiB.
const WORKS_MAX: usize = 1_024;

pub(super) struct Spare {
    kept: Vec<Vec<u8>>,
    bytes: usize,
    #[expect(clippy::vec_box, reason = "they are handed on as they are, without a copy")]
    works: Vec<Box<Work>>,
}

impl Spare {
    pub(super) fn new() -> Spare {
        Spare { kept: Vec::new(), bytes: 0, works: Vec::new() }
    }

    /// Returns the `Work` for a stream that begins.
    pub(super) fn take_work(&mut self) -> Box<Work> {
        self.works.pop().unwrap_or_default()
    }

    /// Takes back the `Work` of a stream that is done.
    pub(super) fn give_work(&mut self, work: Box<Work>) {
        debug_assert!(work.is_done());
        if self.works.len() < WORKS_MAX {
            self.works.push(work);
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        let Some(memory) = self.kept.pop() else { return Vec::with_capacity(NEW_BYTES) };
        self.bytes -= memory.capacity();
        memory
    }

    pub(super) fn give(&mut self, mut memory: Vec<u8>) {
        let bytes = memory.capacity();
        if bytes <= KEPT_BYTES_MAX && self.bytes + bytes <= ALL_BYTES_MAX {
            memory.clear();
            self.bytes += bytes;
            self.kept.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_so_many_streams_is_kept() {
        let mut spare = Spare::new();
        for _ in 0..=WORKS_MAX {
            spare.give_work(Box::default());
        }
        assert_eq!(spare.works.len(), WORKS_MAX);
        spare.take_work();
        assert_eq!(spare.works.len(), WORKS_MAX - 1);
    }

    #[test]
    fn so_much_is_kept_and_no_more() {
        let mut spare = Spare::new();
        assert!(spare.take().capacity() >= NEW_BYTES);
        spare.give(Vec::with_capacity(KEPT_BYTES_MAX + 1));
        assert_eq!((spare.kept.len(), spare.bytes), (0, 0));
        for _ in 0..2 * ALL_BYTES_MAX / KEPT_BYTES_MAX {
            spare.give(vec![7; KEPT_BYTES_MAX]);
        }
        assert_eq!(spare.bytes, ALL_BYTES_MAX);
        for _ in 0..ALL_BYTES_MAX / KEPT_BYTES_MAX {
            let memory = spare.take();
            assert!(memory.is_empty() && memory.capacity() == KEPT_BYTES_MAX);
        }
        assert_eq!((spare.kept.len(), spare.bytes), (0, 0));
    }
}
