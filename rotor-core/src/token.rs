//! `Token`: the name of a machine in its loop, which is a slot of the slab and the generation of
//! that slot.

use std::fmt;

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "rotor needs 64-bit pointers: a Token packs a slot index and its generation into one usize"
);

/// The number of bits for the slot.
const INDEX_BITS: u32 = 24;
/// The number of bits for the generation of the slot.
const GENERATION_BITS: u32 = 38;

/// The maximum number of slots in a slab: 16,777,215, because a token has 24 bits for the slot (and
/// one value of them means "none").
pub const MACHINES_LIMIT: usize = (1 << INDEX_BITS) - 1;

/// The last generation of a slot; a slot that reaches it is never used again.
pub(crate) const GENERATION_LAST: u64 = (1 << GENERATION_BITS) - 1;

/// The name of one machine of one loop, for good: the slot that holds it and the generation of that
/// slot.
///
/// A slot that is used again gets a new generation, so the token of a machine that is gone never
/// names a later machine: the loop drops events, wake-ups and deadlines for the old machine before
/// any machine sees them. A slot has 2³⁸ generations; after the last one (a hundred thousand spawns
/// a second in the same slot, for a month) it is not used any more.
///
/// Tokens of different loops may be equal.
#[doc(alias = "ABA")]
#[doc(alias = "generation")]
#[doc(alias = "generational index")]
#[doc(alias = "slot map key")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(usize);

impl Token {
    pub(crate) fn new(index: u32, generation: u64) -> Token {
        debug_assert!((index as usize) < MACHINES_LIMIT && generation <= GENERATION_LAST);
        Token((generation as usize) << INDEX_BITS | index as usize)
    }

    pub(crate) fn index(self) -> u32 {
        (self.0 & ((1 << INDEX_BITS) - 1)) as u32
    }

    pub(crate) fn generation(self) -> u64 {
        (self.0 >> INDEX_BITS) as u64
    }

    /// Returns the token as a number, for a backend that passes it to the kernel and gets it back.
    ///
    /// It is never `usize::MAX`, so a backend can use that value for its own waker.
    pub fn into_usize(self) -> usize {
        self.0
    }

    /// Makes a token from a number that [`into_usize`](Token::into_usize) returned.
    ///
    /// A number that does not come from a token of the loop names no machine: events for it are
    /// dropped.
    pub fn from_usize(number: usize) -> Token {
        Token(number)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{}", self.index(), self.generation())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_keeps_both_parts() {
        assert_eq!(size_of::<Token>(), size_of::<usize>());
        for (index, generation) in [(0, 0), (1, 7), (MACHINES_LIMIT as u32 - 1, GENERATION_LAST)] {
            let token = Token::new(index, generation);
            assert_eq!((token.index(), token.generation()), (index, generation));
            assert_eq!(Token::from_usize(token.into_usize()), token);
            assert_ne!(token.into_usize(), usize::MAX);
        }
        assert_eq!(format!("{} {:?}", Token::new(3, 9), Token::new(3, 9)), "3v9 3v9");
    }
}
