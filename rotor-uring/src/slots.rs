//! `Slots`: a table whose keys are never reused.

use crate::key::Id;

/// Values, each under an [`Id`] of its own.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// The vacant slots. The last one to become free is used first, while it is in the cache.
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        Slots { slots: Vec::new(), free: Vec::new() }
    }

    /// Reserves address space for `count` values, if there is enough. Unused parts usually take no
    /// memory. The table does not move while it grows, which would leave holes of all its earlier
    /// sizes.
    pub(crate) fn with_capacity(count: usize) -> Slots<T> {
        let mut slots = Vec::new();
        // If it is refused (`RLIMIT_AS`), the table moves.
        let _is_reserved = slots.try_reserve_exact(count);
        Slots { slots, free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            // As many sockets as a process may have open, and lingering ones: far fewer than 2³².
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        Id::new(index, slot.generation)
    }

    #[inline]
    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let slot = self.slots.get(id.slot())?;
        if slot.generation == id.generation() { slot.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.generation == id.generation() { slot.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id.slot()).filter(|s| s.generation == id.generation())?;
        let value = slot.value.take()?;
        slot.generation = Id::new(0, slot.generation.wrapping_add(1)).generation();
        self.free.push(id.slot() as u32);
        Some(value)
    }

    /// Returns all values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_own_value_and_never_a_later_one() {
        let mut slots = Slots::new();
        let (one, two) = (slots.insert("one"), slots.insert("two"));
        assert_eq!((slots.get(one), slots.get(two), slots.len()), (Some(&"one"), Some(&"two"), 2));
        assert_eq!((slots.remove(one), slots.remove(one)), (Some("one"), None));
        let three = slots.insert("three");
        assert_eq!((three.slot(), slots.get(one), slots.len()), (one.slot(), None, 2));
        assert_eq!(slots.get_mut(one), None);
        assert_eq!(slots.remove(one), None);
        assert_eq!(slots.get_mut(three), Some(&mut "three"));
        assert_eq!(slots.get(Id::new(9, 0)), None);
    }

    #[test]
    fn a_generation_wraps_around_without_a_gap() {
        let mut slots = Slots::new();
        let first = slots.insert(0);
        slots.slots[0].generation = (1 << 28) - 1;
        let last = Id::new(0, (1 << 28) - 1);
        assert_eq!(slots.remove(last), Some(0));
        assert_eq!(slots.insert(1), first);
    }
}
