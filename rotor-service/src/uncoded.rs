//! `check_uncoded`: refuses encoded bodies, since none is decompressed here.

use crate::refused::Rejection;

/// Checks that these lines of `Content-Encoding` name no coding; otherwise refuses with 415.
pub(crate) fn check_uncoded<'h>(
    mut lines: impl Iterator<Item = &'h [u8]>,
) -> Result<(), Rejection> {
    match lines.all(is_uncoded) {
        true => Ok(()),
        // RFC 9110 §15.5.16: the field tells this from a type that is not supported.
        false => Err(Rejection::unsupported("a body without content coding is expected")
            .field("Accept-Encoding", "identity")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_coding_is_answered_with_the_one_that_is_accepted() {
        for (lines, is_taken) in [
            (&[][..], true),
            (&["identity"][..], true),
            (&["Identity, ", ""], true),
            (&["gzip"], false),
            (&["identity", "identity, br"], false),
        ] {
            let checked = check_uncoded(lines.iter().map(|line| line.as_bytes()));
            assert_eq!(checked.is_ok(), is_taken, "{lines:?}");
            let Err(refused) = checked else { continue };
            let fields: Vec<(&str, &[u8])> = refused.fields().collect();
            assert_eq!(refused.status().code(), 415, "{lines:?}");
            assert_eq!(fields, [("Accept-Encoding", &b"identity"[..])], "{lines:?}");
        }
    }
}
