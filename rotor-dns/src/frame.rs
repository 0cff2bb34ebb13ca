//! A message over TCP: two bytes of length, then the message (RFC 1035 §4.2.2).

/// Collects one message from pieces of any size. Bytes after the message are ignored.
#[derive(Default, Debug)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
}

/// The size of the length field, in bytes.
const LENGTH_BYTES: usize = 2;

impl Frame {
    /// Adds a piece, and returns whether the message is complete. Keeps at most 65,537 bytes.
    pub(crate) fn add(&mut self, piece: &[u8]) -> bool {
        let missing = LENGTH_BYTES.saturating_sub(self.bytes.len());
        let (length, piece) = piece.split_at(missing.min(piece.len()));
        self.bytes.extend_from_slice(length);
        let Some(end) = self.total_len() else { return false };
        let missing = end - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..missing.min(piece.len())]);
        self.bytes.len() == end
    }

    /// Returns the message, as far as it has arrived.
    pub(crate) fn message(&self) -> &[u8] {
        self.bytes.get(LENGTH_BYTES..).unwrap_or_default()
    }

    fn total_len(&self) -> Option<usize> {
        let length = self.bytes.first_chunk::<LENGTH_BYTES>()?;
        Some(LENGTH_BYTES + usize::from(u16::from_be_bytes(*length)))
    }
}

/// Returns a message with its length in front. A query is far shorter than 64 KiB.
pub(crate) fn with_length_prefix(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), &message[..usize::from(length)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_however_it_is_split() {
        for length in [0, 1, 2, 40] {
            let message: Vec<u8> = (0..length).collect();
            let mut wire = with_length_prefix(&message);
            wire.extend(b"and more");
            let whole = 2 + message.len();
            for cut in 0..=wire.len() {
                let mut frame = Frame::default();
                assert_eq!(frame.add(&wire[..cut]), cut >= whole, "{length} cut at {cut}");
                if cut < whole {
                    assert!(frame.add(&wire[cut..]));
                }
                assert_eq!(frame.message(), message);
            }
            let mut frame = Frame::default();
            let last = wire.iter().position(|byte| frame.add(&[*byte]));
            assert_eq!((last, frame.message()), (Some(whole - 1), &message[..]));
        }
    }

    #[test]
    fn the_longest_message_fits() {
        let message = vec![7; 65_535];
        let mut frame = Frame::default();
        assert!(frame.add(&with_length_prefix(&message)) && frame.message() == message);
    }
}
