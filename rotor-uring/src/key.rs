//! `Key`: identifies an operation in its completions.

use std::fmt;

/// How many bits of a key are the slot.
const SLOT_BITS: u32 = 32;
/// How many bits of a key are the slot's generation.
const GENERATION_BITS: u32 = 28;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nothing waits for it. It only reports failures, which are ignored.
    Unwatched = 0,
    /// Receives data of a stream into buffers of the ring.
    Receive = 1,
    /// Polls whether a socket has something to read; stays until it is cancelled.
    Readable = 2,
    /// Polls once whether a socket has room, or has connected.
    Room = 3,
    /// Sends data from memory that the ring keeps meanwhile.
    Send = 4,
    /// Polls whether another thread has woken the loop.
    Wake = 5,
    /// Polls whether a stream is closed or reset, after its peer has ended its side or while it is
    /// not read; stays until it is cancelled.
    Closed = 6,
    /// Polls once whether something has arrived for a stream that receives much.
    ReadableOnce = 7,
}

const KINDS: [Kind; 8] = [
    Kind::Unwatched,
    Kind::Receive,
    Kind::Readable,
    Kind::Room,
    Kind::Send,
    Kind::Wake,
    Kind::Closed,
    Kind::ReadableOnce,
];

/// Identifies a slot and its generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    slot: u32,
    generation: u32,
}

/// The number that the kernel gets with an operation and returns with each of its completions: the
/// kind, the slot, and the slot's generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Id {
    /// Generations wrap around. A slot is not reused before the kernel is done with all its
    /// operations, so no key of an earlier generation can come; the generation only reveals bugs.
    pub(crate) fn new(slot: u32, generation: u32) -> Id {
        Id { slot, generation: generation & ((1 << GENERATION_BITS) - 1) }
    }

    pub(crate) fn slot(self) -> usize {
        self.slot as usize
    }

    pub(crate) fn generation(self) -> u32 {
        self.generation
    }

    pub(crate) fn key(self, kind: Kind) -> Key {
        let generation = u64::from(self.generation) << SLOT_BITS;
        Key((kind as u64) << (SLOT_BITS + GENERATION_BITS) | generation | u64::from(self.slot))
    }
}

impl Key {
    /// The key of operations for which nothing waits.
    pub(crate) const UNWATCHED: Key = Key(0);
    /// The key of the waker's poll.
    pub(crate) const WAKE: Key = Key((Kind::Wake as u64) << (SLOT_BITS + GENERATION_BITS));

    pub(crate) fn from_user_data(number: u64) -> Key {
        Key(number)
    }

    pub(crate) fn user_data(self) -> u64 {
        self.0
    }

    pub(crate) fn kind(self) -> Kind {
        // Only keys that were made here come back. Any other one is ignored.
        let index = (self.0 >> (SLOT_BITS + GENERATION_BITS)) as usize;
        KINDS.get(index).copied().unwrap_or(Kind::Unwatched)
    }

    pub(crate) fn id(self) -> Id {
        Id::new(self.0 as u32, (self.0 >> SLOT_BITS) as u32)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{}", self.slot, self.generation)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.kind(), self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_yields_its_kind_and_id() {
        let last = (1 << GENERATION_BITS) - 1;
        for (slot, generation) in [(0, 0), (1, 2), (u32::MAX, 0), (0, last), (u32::MAX, last)] {
            let id = Id::new(slot, generation);
            for kind in KINDS {
                let key = Key::from_user_data(id.key(kind).user_data());
                assert_eq!((key.kind(), key.id()), (kind, id), "{key:?}");
            }
        }
        assert_eq!((Key::WAKE.kind(), Key::UNWATCHED.kind()), (Kind::Wake, Kind::Unwatched));
    }

    #[test]
    fn generations_wrap_and_an_unknown_number_is_unwatched() {
        assert_eq!(Id::new(7, 1 << GENERATION_BITS), Id::new(7, 0));
        assert_eq!(Key::from_user_data(u64::MAX).kind(), Kind::Unwatched);
    }
}
