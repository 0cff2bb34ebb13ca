//! The format of messages, as pure code: a length of four bytes, most significant first, and as
//! many bytes of text. Each question gets one answer, in order.

use std::io::{self, Write};

use rotor::stream::FrameLength;

/// The longest text, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 * 1_024;

/// The longest message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = LENGTH_BYTES + TEXT_BYTES_MAX;

const LENGTH_BYTES: usize = 4;

/// Returns the length of the message at the beginning of the input. The stream compares it with the
/// longest that it accepts.
pub(crate) fn message_length(input: &[u8]) -> FrameLength {
    match input.first_chunk() {
        // A sum that does not fit is above any limit.
        Some(text) => FrameLength::Bytes(
            LENGTH_BYTES.saturating_add(u32::from_be_bytes(*text).try_into().unwrap_or(usize::MAX)),
        ),
        None => FrameLength::Unknown,
    }
}

/// Returns the text of a message.
pub(crate) fn text(message: &[u8]) -> &[u8] {
    message.get(LENGTH_BYTES..).unwrap_or_default()
}

/// Writes a message with this text, which is not longer than [`TEXT_BYTES_MAX`].
pub(crate) fn write(output: &mut impl Write, text: &[u8]) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_be_bytes())?;
    output.write_all(text)
}
