//! `ProxyFields` and `ClientTls`: the fields of a header of version 2, and those of its TLS field.

use std::str::from_utf8;

/// The kinds of fields that the specification names (section 2.2).
pub(crate) mod kind {
    pub(crate) const ALPN: u8 = 0x01;
    pub(crate) const AUTHORITY: u8 = 0x02;
    pub(crate) const CRC32C: u8 = 0x03;
    pub(crate) const UNIQUE_ID: u8 = 0x05;
    pub(crate) const TLS: u8 = 0x20;
    pub(crate) const TLS_VERSION: u8 = 0x21;
    pub(crate) const TLS_COMMON_NAME: u8 = 0x22;
    pub(crate) const TLS_CIPHER: u8 = 0x23;
    pub(crate) const NAMESPACE: u8 = 0x30;
}

/// The number of bytes before a field's value: its kind and its length.
pub(crate) const FIELD_HEAD: usize = 3;

/// The fields of a header in order, each with its kind and its value.
///
/// A field that is cut off at the end is left out. A received header has no such field.
#[derive(Clone, Debug)]
#[doc(alias = "TLV")]
pub struct ProxyFields<'a> {
    rest: &'a [u8],
}

impl<'a> ProxyFields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> ProxyFields<'a> {
        ProxyFields { rest: bytes }
    }

    /// Returns whether the last field is complete.
    pub(crate) fn are_complete(mut self) -> bool {
        self.by_ref().for_each(drop);
        self.rest.is_empty()
    }

    /// Returns the value of the first field of this kind.
    pub(crate) fn find(mut self, wanted: u8) -> Option<&'a [u8]> {
        self.find_map(|(kind, value)| (kind == wanted).then_some(value))
    }
}

impl<'a> Iterator for ProxyFields<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[kind, high, low], behind) = self.rest.split_first_chunk()?;
        let (value, rest) =
            behind.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        self.rest = rest;
        Some((kind, value))
    }
}

/// What a balancer that terminated TLS says about it.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "PP2_TYPE_SSL")]
pub struct ClientTls<'a> {
    client: u8,
    verify: u32,
    fields: &'a [u8],
}

impl<'a> ClientTls<'a> {
    pub(crate) fn parse(value: &'a [u8]) -> Option<ClientTls<'a>> {
        let (&client, value) = value.split_first()?;
        let (verify, fields) = value.split_first_chunk()?;
        Some(ClientTls { client, verify: u32::from_be_bytes(*verify), fields })
    }

    /// Returns whether the last of its fields is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.fields().are_complete()
    }

    /// Returns whether the client's connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.client & 1 != 0
    }

    /// Returns whether the client has shown a certificate, on this connection or on one whose
    /// session it resumes, and the balancer has accepted the certificate.
    pub fn is_verified(&self) -> bool {
        self.client & 0b110 != 0 && self.verify == 0
    }

    /// Returns the version as the balancer writes it, for example `TLSv1.3`.
    pub fn version(&self) -> Option<&'a str> {
        text(self.fields().find(kind::TLS_VERSION))
    }

    /// Returns the common name in the client's certificate.
    pub fn common_name(&self) -> Option<&'a str> {
        text(self.fields().find(kind::TLS_COMMON_NAME))
    }

    /// Returns the cipher, as the balancer writes it.
    pub fn cipher(&self) -> Option<&'a str> {
        text(self.fields().find(kind::TLS_CIPHER))
    }

    /// Returns all its fields.
    pub fn fields(&self) -> ProxyFields<'a> {
        ProxyFields::new(self.fields)
    }
}

/// Returns whether a field has the form that its kind requires (section 2.2 of the specification).
pub(crate) fn is_valid_field(kind: u8, value: &[u8]) -> bool {
    match kind {
        kind::TLS => ClientTls::parse(value).is_some_and(|tls| tls.is_complete()),
        kind::CRC32C => value.len() == 4,
        kind::UNIQUE_ID => value.len() <= 128,
        kind::AUTHORITY => from_utf8(value).is_ok(),
        _ => true,
    }
}

/// Returns the position of the checksum's value, which has four bytes, in the fields.
pub(crate) fn checksum_offset(fields: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (kind, value) in ProxyFields::new(fields) {
        if kind == kind::CRC32C && value.len() == 4 {
            return Some(at + FIELD_HEAD);
        }
        at += FIELD_HEAD + value.len();
    }
    None
}

pub(crate) fn text(value: Option<&[u8]>) -> Option<&str> {
    from_utf8(value?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_the_last_complete_one() {
        let bytes = [1, 0, 2, b'h', b'2', 4, 0, 0, 9, 0, 1];
        for (len, count, are_complete) in
            [(0, 0, true), (2, 0, false), (4, 0, false), (5, 1, true), (8, 2, true), (11, 2, false)]
        {
            let fields = ProxyFields::new(&bytes[..len]);
            assert_eq!(fields.clone().count(), count, "{len}");
            assert_eq!(fields.are_complete(), are_complete, "{len}");
        }
        assert_eq!(ProxyFields::new(&bytes).find(1), Some(&b"h2"[..]));
        assert_eq!(ProxyFields::new(&bytes).find(9), None);
    }

    #[test]
    fn the_checksum_is_in_the_first_field_of_its_kind() {
        // Other fields of four bytes are not checksums.
        let other = [4, 0, 4, 9, 9, 9, 9];
        let sum = [kind::CRC32C, 0, 4, 7, 7, 7, 7];
        for (fields, place) in [
            (&other[..], None),
            (&sum, Some(3)),
            (&[&other[..], &sum].concat(), Some(10)),
            (&[&sum[..], &sum].concat(), Some(3)),
        ] {
            assert_eq!(checksum_offset(fields), place, "{fields:?}");
        }
    }

    #[test]
    fn a_certificate_counts_as_verified_only_if_one_was_presented() {
        for (client, verify, is_verified) in [
            (0, 0, false),
            (1, 0, false),
            (3, 0, true),
            (5, 0, true),
            (3, 1, false),
            (7, 256, false),
        ] {
            let mut value = vec![client];
            value.extend(u32::to_be_bytes(verify));
            let tls = ClientTls::parse(&value).expect("it is whole");
            assert_eq!((tls.is_encrypted(), tls.is_verified()), (client & 1 != 0, is_verified));
        }
        assert!(ClientTls::parse(&[1, 0, 0, 0]).is_none());
    }
}
