//! `Slots`: a table whose keys are never reused.

/// The key of a value: a slot, and how often the slot has been used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Id {
    index: u32,
    generation: u32,
}

/// Values, each under an [`Id`] of its own.
pub(crate) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    /// The vacant slots. The last one to become free is used first, while it is in the cache.
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        Slots { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            // Sockets need memory of their own, so there are never 2³² of them.
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(value);
        Id { index, generation: slot.0 }
    }

    #[inline]
    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let (generation, value) = self.slots.get(id.index as usize)?;
        if *generation == id.generation { value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(id.index as usize)?;
        if *generation == id.generation { value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.0 == id.generation)?;
        let value = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(id.index);
        Some(value)
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, (generation, value))| {
            let id = Id { index: index as u32, generation: *generation };
            value.as_ref().map(|value| (id, value))
        })
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
        assert_eq!((slots.get(one), slots.len()), (None, 2));
        assert_eq!(slots.get_mut(one), None);
        assert_eq!(slots.get_mut(three), Some(&mut "three"));
        assert_eq!(slots.iter().map(|(id, _)| id).collect::<Vec<_>>(), [three, two]);
    }
}
