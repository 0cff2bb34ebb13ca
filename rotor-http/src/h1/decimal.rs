//! The lines of a message that hold a number, formatted on the stack.

/// `Content-Length: `, 20 digits and a line end are the longest.
const CAPACITY: usize = 16 + 20 + 2;

/// A number in decimal digits, written from the back.
pub(super) struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    #[inline]
    pub(super) fn new(mut number: u64) -> Decimal {
        let mut decimal = Decimal { digits: [b'0'; 20], start: 20 };
        for digit in decimal.digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            decimal.start -= 1;
            if number == 0 {
                break;
            }
        }
        decimal
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// One line with its line end, written from the back.
pub(super) struct NumberLine {
    bytes: [u8; CAPACITY],
    start: usize,
}

impl NumberLine {
    #[inline]
    fn new() -> NumberLine {
        let mut line = NumberLine { bytes: [0; CAPACITY], start: CAPACITY };
        line.prepend(b"\r\n");
        line
    }

    #[inline]
    fn prepend(&mut self, bytes: &[u8]) {
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
    }

    #[inline]
    fn prepend_number<const RADIX: u64>(&mut self, mut number: u64) {
        loop {
            self.start -= 1;
            self.bytes[self.start] = b"0123456789abcdef"[(number % RADIX) as usize];
            number /= RADIX;
            if number == 0 {
                return;
            }
        }
    }

    /// `Content-Length: ` with the number.
    #[inline]
    pub(super) fn content_length(length: u64) -> NumberLine {
        let mut line = NumberLine::new();
        line.prepend_number::<10>(length);
        line.prepend(b"Content-Length: ");
        line
    }

    /// The size line of a chunk.
    #[inline]
    pub(super) fn chunk_size(size: u64) -> NumberLine {
        let mut line = NumberLine::new();
        line.prepend_number::<16>(size);
        line
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit() {
        for number in [0, 1, 9, 10, 12345, u64::MAX - 1, u64::MAX] {
            let line = NumberLine::content_length(number);
            assert_eq!(line.as_bytes(), format!("Content-Length: {number}\r\n").as_bytes());
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
            assert_eq!(NumberLine::chunk_size(number).as_bytes(), format!("{number:x}\r\n").as_bytes());
        }
    }
}
