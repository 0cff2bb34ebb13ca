//! `Spare`: memory that was sent from and will be again.

/// How large memory may be that is kept, in bytes: what answers to small requests take.
const KEPT_BYTES_MAX: usize = 4 * 1024;
/// How much is kept in all, in bytes. 1 MiB.
const ALL_BYTES_MAX: usize = 1024 * 1024;
/// How much is allocated where none is kept, in bytes.
const NEW_BYTES: usize = 512;

pub(super) struct Spare {
    kept: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    pub(super) fn new() -> Spare {
        Spare { kept: Vec::new(), bytes: 0 }
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
