//! Finds requests in a stream of bytes by the blank line that ends each of them. Requests with a
//! body are not supported.

const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// What a connection remembers about its input between two reads.
#[derive(Default)]
pub(crate) struct Requests {
    /// The beginning of a request whose blank line has not arrived yet. Not allocated if there is
    /// none.
    begun: Vec<u8>,
}

impl Requests {
    /// Returns the number of requests that `input` completes, and keeps the beginning of the next
    /// one.
    pub(crate) fn take(&mut self, input: &[u8]) -> usize {
        if self.begun.is_empty() {
            let (count, end) = blank_lines(input);
            if end < input.len() {
                self.begun.extend_from_slice(&input[end..]);
            }
            return count;
        }
        // A blank line may be split between the old and the new bytes, but at most three bytes of
        // it are old. So a request that arrives byte by byte is not searched from its beginning
        // each time.
        let searched = self.begun.len().saturating_sub(BLANK_LINE.len() - 1);
        self.begun.extend_from_slice(input);
        let (count, end) = blank_lines(&self.begun[searched..]);
        if count > 0 {
            self.begun.drain(..searched + end);
            if self.begun.is_empty() {
                self.begun = Vec::new();
            }
        }
        count
    }

    /// Returns how many bytes of the incomplete request are held.
    pub(crate) fn begun_bytes(&self) -> usize {
        self.begun.len()
    }
}

/// Returns the number of blank lines, and where the last of them ends.
fn blank_lines(bytes: &[u8]) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    for newline in memchr::memchr_iter(b'\n', bytes) {
        // A blank line is two line ends in a row; of three in a row, the last two are not another
        // one.
        if newline + 1 >= end + BLANK_LINE.len() && bytes[..=newline].ends_with(BLANK_LINE) {
            count += 1;
            end = newline + 1;
        }
    }
    (count, end)
}

#[cfg(test)]
mod tests {
    use super::Requests;

    const TWO_AND_A_HALF: &[u8] =
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HT";

    #[test]
    fn requests_are_counted_however_the_bytes_are_split() {
        for first in 0..=TWO_AND_A_HALF.len() {
            for second in first..=TWO_AND_A_HALF.len() {
                let mut requests = Requests::default();
                let count = requests.take(&TWO_AND_A_HALF[..first])
                    + requests.take(&TWO_AND_A_HALF[first..second])
                    + requests.take(&TWO_AND_A_HALF[second..]);
                assert_eq!(count, 2, "split at {first} and {second}");
                assert_eq!(
                    requests.begun_bytes(),
                    b"GET /c HT".len(),
                    "split at {first} and {second}"
                );
            }
        }
    }

    #[test]
    fn three_line_ends_in_a_row_are_one_blank_line() {
        assert_eq!(Requests::default().take(b"GET / HTTP/1.1\r\n\r\n\r\n"), 1);
    }

    #[test]
    fn nothing_is_held_between_requests() {
        let mut requests = Requests::default();
        for byte in b"GET / HTTP/1.1\r\n\r\n" {
            requests.take(&[*byte]);
        }
        assert_eq!(requests.begun.capacity(), 0);
    }
}
