//! Reads the elements of packets: numbers, strings, bytes.

use std::fmt;

/// Why a packet is malformed, or not one that a client may send. This is its sender's mistake and
/// ends the connection (MQTT 3.1.1 §4.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The unread rest of a packet.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads two bytes, most significant first.
    pub(crate) fn number(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads the number that the answer will contain; 0 is not allowed (§2.3.1).
    pub(crate) fn packet_id(&mut self) -> Result<u16, Malformed> {
        match self.number()? {
            0 => Err(Malformed("a packet identifier of 0")),
            id => Ok(id),
        }
    }

    /// Reads bytes that are preceded by their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.number()?;
        self.take(len.into())
    }

    /// Reads a string that is preceded by its length. It may not contain U+0000 (§1.5.3).
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("not UTF-8"))?;
        if text.contains('\0') { Err(Malformed("a null character")) } else { Ok(text) }
    }

    /// Returns the rest.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("it is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }
}
