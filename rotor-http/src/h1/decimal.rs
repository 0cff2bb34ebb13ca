//! The lines of a message that hold a number, formatted on the stack.

/// `Content-Length: `, 20 digits and a line end are the longest.
const CAPACITY: usize = 16 + 20 + 2;

/// A line with a number, written from the back.
pub(super) struct NumberLine {
    bytes: [u8; CAPACITY],
    start: usize,
}

impl NumberLine {
    #[inline]
    fn new() -> NumberLine {
        NumberLine { bytes: [0; CAPACITY], start: CAPACITY }
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
        line.prepend(b"\r\n");
        line.prepend_number::<10>(length);
        line.prepend(b"Content-Length: ");
        line
    }

    /// The line end of the field before and `Content-Length: ` with the number, without a line end of its own.
    #[inline]
    pub(super) fn length_after_field(length: u64) -> NumberLine {
        let mut line = NumberLine::new();
        line.prepend_number::<10>(length);
        line.prepend(b"\r\nContent-Length: ");
        line
    }

    /// The size line of a chunk.
    #[inline]
    pub(super) fn chunk_size(size: u64) -> NumberLine {
        let mut line = NumberLine::new();
        line.prepend(b"\r\n");
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
            let line = NumberLine::length_after_field(number);
            assert_eq!(line.as_bytes(), format!("\r\nContent-Length: {number}").as_bytes());
            assert_eq!(NumberLine::chunk_size(number).as_bytes(), format!("{number:x}\r\n").as_bytes());
        }
    }
}
