//! A table whose keys are never reused: a place that is used again has another generation.

/// The key of one entry of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

pub(crate) struct Table<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Table<T> {
        Table { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let Some(index) = self.free.pop() else {
            self.slots.push((0, Some(value)));
            return Key { index: self.slots.len() as u32 - 1, generation: 0 };
        };
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(value);
        Key { index, generation: slot.0 }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let (generation, value) = self.slots.get(key.index as usize)?;
        if *generation == key.generation { value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(key.index as usize)?;
        if *generation == key.generation { value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, value) = self.slots.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let value = value.take()?;
        *generation += 1;
        self.free.push(key.index);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns all entries, in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().zip(0..).filter_map(|((generation, value), index)| {
            Some((Key { index, generation: *generation }, value.as_ref()?))
        })
    }

    /// Returns all entries, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|(_, value)| value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_refers_to_a_later_value() {
        let mut table = Table::new();
        let (a, b) = (table.insert('a'), table.insert('b'));
        assert_eq!(table.remove(a), Some('a'));
        let c = table.insert('c');
        assert_eq!((table.get(a), table.get(b), table.get(c)), (None, Some(&'b'), Some(&'c')));
        assert_eq!((table.remove(a), table.len()), (None, 2));
        assert_eq!(table.iter().map(|(_, value)| *value).collect::<String>(), "cb");
    }
}
