//! `ShortToken`: a machine's token in 26 bits, for code that can look up the generation of its
//! slot.

use crate::token::{MACHINES_LIMIT, Token};

/// The slot of a machine, and the last two bits of its generation.
///
/// That is enough to identify a machine that was called just now: its slot still has the same
/// generation, or the next one if the machine has ended meanwhile. Only the fourth machine after it
/// in the slot could be mistaken for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortToken(u64);

/// The number of bits in a short token.
pub(super) const SHORT_BITS: u32 = 26;

const MASK: u64 = (1 << SHORT_BITS) - 1;

/// The bits of the slot: as many as in a token, including one value for "none".
const SLOT_MASK: u64 = MACHINES_LIMIT as u64;

/// The mask for the two bits of a generation.
const GENERATION_MASK: u64 = MASK >> SLOT_MASK.count_ones();

impl ShortToken {
    /// The short token that stands for no machine.
    pub(super) const NONE: ShortToken = ShortToken(SLOT_MASK);

    #[inline]
    pub(super) fn of(token: Token) -> ShortToken {
        // The lowest bits of a token have the same layout.
        ShortToken(token.into_usize() as u64 & MASK)
    }

    /// Returns the short token in the lowest bits of a number.
    pub(super) fn from_bits(number: u64) -> ShortToken {
        ShortToken(number & MASK)
    }

    #[inline]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the whole token, with the latest generation that has these bits and is not later
    /// than the slot's current one.
    pub(super) fn token(self, generation_of: impl FnOnce(u32) -> u64) -> Option<Token> {
        if self.0 & SLOT_MASK == SLOT_MASK {
            return None;
        }
        let slot = (self.0 & SLOT_MASK) as u32;
        let now = generation_of(slot);
        let ended = now.wrapping_sub(self.0 >> SLOT_MASK.count_ones()) & GENERATION_MASK;
        Some(Token::new(slot, now.saturating_sub(ended)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::GENERATION_LAST;

    #[test]
    fn a_short_token_expands_within_three_later_generations() {
        let last = MACHINES_LIMIT as u32 - 1;
        for (slot, generation) in
            [(0, 0), (1, 1), (7, 2), (last, 3), (7, 4), (last, GENERATION_LAST - 4)]
        {
            let token = Token::new(slot, generation);
            let short = ShortToken::of(token);
            assert_eq!(ShortToken::from_bits(u64::MAX << SHORT_BITS | short.bits()), short);
            for now in generation..=generation + 3 {
                let known = short.token(|asked| {
                    assert_eq!(asked, slot);
                    now
                });
                assert_eq!(known, Some(token), "at {now}");
            }
            assert_eq!(short.token(|_| generation + 4), Some(Token::new(slot, generation + 4)));
        }
    }

    #[test]
    fn the_none_token_stands_for_no_machine() {
        assert_eq!(ShortToken::NONE.token(|_| 0), None);
        assert_eq!(ShortToken::from_bits(ShortToken::NONE.bits()), ShortToken::NONE);
    }
}
