//! `check_uncoded`: refuses encoded bodies, since none is decompressed here.

use crate::refused::Rejection;

/// Checks that these lines of `Content-Encoding` name no coding; otherwise refuses with 415.
pub(crate) fn check_uncoded<'h>(
    mut lines: impl Iterator<Item = &'h [u8]>,
) -> Result<(), Rejection> {
    match lines.all(is_uncoded) {
        true => Ok(()),
        false => Err(Rejection::unsupported("a body without content coding is expected")),
    }
}

/// Returns whether a line names no coding but `identity` (RFC 9110 §8.4). Elements may be empty
/// (§5.6.1.2).
fn is_uncoded(codings: &[u8]) -> bool {
    codings.split(|&byte| byte == b',').all(|coding| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    })
}
