//! Reads what packets are made of: numbers, strings, bytes.

use std::fmt;

/// Why a packet is none, or none that a client may send: its sender's fault, and the end of its
/// connection (MQTT 3.1.1 §4.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What is left of a packet.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Two bytes, most significant first.
    pub(crate) fn number(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// The number that an answer will name; 0 is none (§2.3.1).
    pub(crate) fn packet_id(&mut self) -> Result<u16, Malformed> {
        match self.number()? {
            0 => Err(Malformed("a packet identifier of 0")),
            id => Ok(id),
        }
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.number()?;
        self.take(len.into())
    }

    /// A string behind its length. It may not have the character that ends C's strings (§1.5.3).
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("not UTF-8"))?;
        if text.contains('\0') { Err(Malformed("a null character")) } else { Ok(text) }
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("it is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }
}
