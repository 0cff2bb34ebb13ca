//! `Key`: what an operation is told by when the kernel has done with it.

use std::fmt;

/// How many bits of a key name the slot.
const SLOT_BITS: u32 = 32;
/// How many bits of a key name the generation of the slot.
const GENERATION_BITS: u32 = 28;

/// What an operation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Of nobody: what is told of it is that it failed, and nobody minds.
    Unwatched = 0,
    /// Bytes of a stream, into buffers of the ring.
    Receive = 1,
    /// Whether a socket that is asked has something; stays until it is taken back.
    Readable = 2,
    /// Whether a socket has room, or has connected; once.
    Room = 3,
    /// Bytes that go out, from memory that the ring keeps meanwhile.
    Send = 4,
    /// The loop was woken by another thread.
    Wake = 5,
    /// Whether a stream is gone whose peer has ended its side, or that is not read; stays until it is
    /// taken back.
    Gone = 6,
    /// Whether something came for a stream that gets much; once.
    Arrived = 7,
}

const KINDS: [Kind; 8] = [
    Kind::Unwatched,
    Kind::Receive,
    Kind::Readable,
    Kind::Room,
    Kind::Send,
    Kind::Wake,
    Kind::Gone,
    Kind::Arrived,
];

/// Names a slot, and the life of it that is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    slot: u32,
    generation: u32,
}

/// What the kernel is given with an operation and gives back with each of its completions: kind,
/// slot, and the slot's generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Id {
    /// Generations go round: a slot is not used again before the kernel has done with all of its
    /// operations, so there is never a key of the life before; the generation shows a mistake.
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
    /// Of an operation that nobody waits for.
    pub(crate) const UNWATCHED: Key = Key(0);
    /// Of the waker.
    pub(crate) const WAKE: Key = Key((Kind::Wake as u64) << (SLOT_BITS + GENERATION_BITS));

    pub(crate) fn from_number(number: u64) -> Key {
        Key(number)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn kind(self) -> Kind {
        // Only what was made here comes back; anything else is nobody's.
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
    fn a_key_gives_back_what_it_was_made_of() {
        let last = (1 << GENERATION_BITS) - 1;
        for (slot, generation) in [(0, 0), (1, 2), (u32::MAX, 0), (0, last), (u32::MAX, last)] {
            let id = Id::new(slot, generation);
            for kind in KINDS {
                let key = Key::from_number(id.key(kind).number());
                assert_eq!((key.kind(), key.id()), (kind, id), "{key:?}");
            }
        }
        assert_eq!((Key::WAKE.kind(), Key::UNWATCHED.kind()), (Kind::Wake, Kind::Unwatched));
    }

    #[test]
    fn generations_go_round_and_a_number_that_nobody_made_is_nobodys() {
        assert_eq!(Id::new(7, 1 << GENERATION_BITS), Id::new(7, 0));
        assert_eq!(Key::from_number(u64::MAX).kind(), Kind::Unwatched);
    }
}
