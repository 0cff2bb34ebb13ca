//! The dynamic table of a decoder (RFC 7541 §2.3.2, §4): the latest fields, within a limit of
//! bytes.

use std::collections::VecDeque;
use std::ops::Range;

/// What an entry counts in addition to its bytes (RFC 7541 §4.1).
pub const ENTRY_OVERHEAD: usize = 32;

/// A dynamic table. It allocates nothing as long as it is empty.
#[derive(Debug, Default)]
pub struct DynamicTable {
    /// The bytes of all entries, the oldest first, after those of some that were evicted.
    bytes: Vec<u8>,
    /// The newest entry is the last.
    entries: VecDeque<Entry>,
    /// The size of the entries, as the RFC counts it.
    size: usize,
    size_max: usize,
}

#[derive(Debug)]
struct Entry {
    start: u32,
    name: u16,
    value: u16,
}

impl Entry {
    fn range(&self) -> (Range<usize>, Range<usize>) {
        let start = self.start as usize;
        let colon = start + usize::from(self.name);
        (start..colon, colon..colon + usize::from(self.value))
    }

    fn size(&self) -> usize {
        usize::from(self.name) + usize::from(self.value) + ENTRY_OVERHEAD
    }
}

impl DynamicTable {
    /// Creates an empty table of at most `size_max` bytes, which can be at most 65,535.
    pub fn new(size_max: usize) -> DynamicTable {
        DynamicTable { size_max: size_max.min(usize::from(u16::MAX)), ..DynamicTable::default() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size of the entries, as RFC 7541 §4.1 counts it.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the name and value of an entry; 0 is the newest.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let at = self.entries.len().checked_sub(index + 1)?;
        let (name, value) = self.entries.get(at)?.range();
        Some((self.bytes.get(name)?, self.bytes.get(value)?))
    }

    /// Sets the maximum size, and evicts the oldest entries beyond it.
    pub fn resize(&mut self, size_max: usize) {
        self.size_max = size_max.min(usize::from(u16::MAX));
        self.evict(0);
    }

    /// Adds an entry, for which the oldest ones are evicted. An entry that is larger than the table
    /// empties it (RFC 7541 §4.4).
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(size);
        if size > self.size_max {
            return;
        }
        self.make_room(name.len() + value.len());
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        // Both lengths fit: the table has fewer than 65,536 bytes.
        self.entries.push_back(Entry { start, name: name.len() as u16, value: value.len() as u16 });
        self.size += size;
    }

    /// Evicts entries until there is room for an entry of this size.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.size_max {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= oldest.size();
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    /// Makes room for this many bytes, within twice the size of the table. If there is none, the
    /// evicted bytes are more than those that stay, so that each byte is moved only once on average.
    fn make_room(&mut self, more: usize) {
        let bytes_max = 2 * self.size_max;
        if self.bytes.len() + more > bytes_max
            && let Some(evicted) = self.entries.front().map(|first| first.start as usize)
        {
            self.bytes.drain(..evicted);
            for entry in &mut self.entries {
                entry.start -= evicted as u32;
            }
        }
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let capacity = needed.max((2 * self.bytes.capacity()).min(bytes_max));
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: &DynamicTable) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (0..table.len()).filter_map(|at| table.get(at)).map(|(n, v)| (text(n), text(v))).collect()
    }

    #[test]
    fn the_oldest_entries_are_evicted_for_the_newest() {
        // Two entries of 34 bytes fit.
        let mut table = DynamicTable::new(70);
        for (name, expected) in [("a", "a"), ("b", "ba"), ("c", "cb"), ("d", "dc")] {
            table.insert(name.as_bytes(), b"x");
            let names: String = all(&table).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, expected);
        }
        assert_eq!(table.size(), 68);
        table.resize(67);
        assert_eq!((table.len(), table.size()), (1, 34));
        table.insert(&[b'n'; 40], b"");
        assert_eq!((table.len(), table.size()), (0, 0), "one that is too large empties it");
        table.resize(0);
        table.insert(b"", b"");
        assert!(table.is_empty());
    }

    #[test]
    fn the_latest_entries_stay_and_memory_is_bounded() {
        let mut table = DynamicTable::new(4096);
        for round in 0..10_000usize {
            let value = format!("{round}").repeat(round % 7);
            table.insert(b"name", value.as_bytes());
            assert_eq!(table.get(0), Some((&b"name"[..], value.as_bytes())));
            let sum: usize = all(&table).iter().map(|(n, v)| n.len() + v.len() + 32).sum();
            assert_eq!(sum, table.size());
            let capacity = table.bytes.capacity();
            assert!(capacity <= 2 * 4096, "round {round}: {capacity}");
        }
        assert_eq!(table.get(table.len()), None);
    }
}
