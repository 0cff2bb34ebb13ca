//! Constants of the headers of version 2 (section 2.2 of the specification).

/// The bytes with which they begin.
pub(crate) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Address families and transports.
pub(crate) mod family {
    pub(crate) const UNSPECIFIED: u8 = 0x00;
    pub(crate) const TCP4: u8 = 0x11;
    pub(crate) const UDP4: u8 = 0x12;
    pub(crate) const TCP6: u8 = 0x21;
    pub(crate) const UDP6: u8 = 0x22;
    pub(crate) const UNIX_STREAM: u8 = 0x31;
    pub(crate) const UNIX_DATAGRAM: u8 = 0x32;
}
