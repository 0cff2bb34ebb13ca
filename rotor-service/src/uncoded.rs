//! `check_uncoded`: whether a body comes as it is, since none is decompressed here.

use crate::refused::Refused;

/// Checks that a body whose `Content-Encoding` says this comes without a coding: 415.
pub(crate) fn check_uncoded<'h>(mut lines: impl Iterator<Item = &'h [u8]>) -> Result<(), Refused> {
    match lines.all(is_uncoded) {
        true => Ok(()),
        false => Err(Refused::unsupported("a body without content coding is expected")),
    }
}

/// Whether each of the codings of a line is none (RFC 9110 §8.4); an element may be empty (§5.6.1.2).
fn is_uncoded(codings: &[u8]) -> bool {
    codings.split(|&octet| octet == b',').all(|coding| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    })
}
