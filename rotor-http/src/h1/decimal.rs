//! Numbers in messages, formatted on the stack.

/// The longest text: 20 decimal digits, or 16 hexadecimal digits and a line end.
const CAPACITY: usize = 20;

/// A formatted number.
pub(super) struct Number {
    bytes: [u8; CAPACITY],
    start: usize,
    end: usize,
}

impl Number {
    /// Formats a number in decimal.
    #[inline(always)]
    pub(super) fn decimal(number: u64) -> Number {
        let mut text = Number { bytes: [0; CAPACITY], start: 0, end: 0 };
        if number < 100_000_000 {
            // Stored as one word: if the bytes were stored one by one, code that loads them all at
            // once would have to wait for all of the stores.
            let (word, digits) = short_decimal(number);
            text.bytes[..8].copy_from_slice(&word);
            text.end = digits;
        } else {
            text.start = CAPACITY;
            text.end = CAPACITY;
            text.prepend::<10>(number);
        }
        text
    }

    /// Formats the size line of a chunk.
    #[inline]
    pub(super) fn chunk_size(size: u64) -> Number {
        let mut line = Number { bytes: [0; CAPACITY], start: CAPACITY - 2, end: CAPACITY };
        line.bytes[CAPACITY - 2..].copy_from_slice(b"\r\n");
        line.prepend::<16>(size);
        line
    }

    #[inline]
    fn prepend<const RADIX: u64>(&mut self, mut number: u64) {
        loop {
            self.start -= 1;
            self.bytes[self.start] = b"0123456789abcdef"[(number % RADIX) as usize];
            number /= RADIX;
            if number == 0 {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

/// Returns the digits of a number below 10^8 at the beginning of eight bytes, and their count.
#[inline(always)]
fn short_decimal(number: u64) -> ([u8; 8], usize) {
    const EACH_BYTE: u64 = u64::MAX / 255;
    // Splits the number into two below 10^4, then four below 100, then eight digits, each in its
    // part of the word with the first one lowest. The factors are binary approximations of 1/100
    // and 1/10, exact for numbers of this size.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - 10 * tens) << 8);
    // At most seven: the number 0 keeps one digit.
    let zeros = (digits.trailing_zeros() as usize / 8).min(7);
    let text = (digits | (EACH_BYTE * u64::from(b'0'))) >> (8 * zeros);
    (text.to_le_bytes(), 8 - zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_match_the_standard_library() {
        let powers = (0..20).map(|digits| 10u64.pow(digits));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        for number in around.chain([u64::MAX - 1, u64::MAX]) {
            assert_eq!(Number::decimal(number).as_bytes(), number.to_string().as_bytes());
            assert_eq!(Number::chunk_size(number).as_bytes(), format!("{number:x}\r\n").as_bytes());
        }
    }

    #[test]
    fn every_four_digit_group_is_right_in_both_halves_of_the_word() {
        for four in 0..10_000 {
            for number in [four, 10_000 * four, 10_000 * four + 9_999 - four] {
                assert_eq!(Number::decimal(number).as_bytes(), number.to_string().as_bytes());
            }
        }
    }
}
