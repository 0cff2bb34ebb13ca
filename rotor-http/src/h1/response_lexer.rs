//! The fast path for a response head, with httparse. It accepts only heads that the scanner would
//! accept, and leaves all others to the scanner, which alone refuses.
//!
//! httparse accepts more than the rules allow: a bare LF as a line end, and any number of empty
//! lines. Both are checked here in a step per field, not in a second pass.

use std::mem::MaybeUninit;

use super::field_lines::span_of;
use super::field_storage::{FAST_CAPACITY, FastStorage};
use super::head_scanner::ScanLimits;
use crate::semantics::fields::Span;
use crate::semantics::version::Version;

/// A response head that was read on the fast path.
pub(super) struct FastResponse<'a> {
    pub(super) version: Version,
    pub(super) code: u16,
    pub(super) reason: &'a str,
    pub(super) len: usize,
}

/// Reads a response head that has arrived whole, if it is certain to be valid. Fills `spans`, which
/// is empty, with its fields.
#[inline]
pub(super) fn fast_response<'a>(
    input: &'a [u8],
    spans: &mut FastStorage,
    limits: &ScanLimits,
) -> Option<FastResponse<'a>> {
    // httparse skips empty lines before the head. RFC 9112 §2.2 allows servers to do that, for old
    // clients. A client that did so would take the bytes after a body that is longer than announced
    // as a response.
    if input.first() != Some(&b'H') {
        return None;
    }
    // A head that does not end within its limit is left to the scanner, which refuses it.
    let window = &input[..input.len().min(limits.bytes_max)];
    let mut storage = [const { MaybeUninit::uninit() }; FAST_CAPACITY];
    // httparse refuses a head with more fields than there is room for, so it enforces the limit.
    let storage = &mut storage[..limits.fields_max.min(FAST_CAPACITY)];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        window,
        storage,
    );
    let Ok(httparse::Status::Complete(len)) = parsed else {
        return None;
    };
    let (code, reason, version) = (response.code?, response.reason?, version_of(response.version));
    spans.extend(response.headers.iter().map(|field| span_of(field, window)).take(FAST_CAPACITY));
    // RFC 9110 §15: the first digit is at least 1; httparse accepts any three digits.
    let is_valid = code >= 100 && are_lines_valid(&window[..len], spans, limits.field_bytes_max);
    is_valid.then_some(FastResponse { version, code, reason, len })
}

fn version_of(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

/// Returns whether every line of the head ends with CR LF, and no field line is too long. httparse
/// has checked that there is no other CR. So it is enough to look for one before each LF that
/// httparse has accepted as a line end.
#[inline]
fn are_lines_valid(head: &[u8], fields: &[Span], field_bytes_max: usize) -> bool {
    let Some(mut end) = head.len().checked_sub(2) else { return false };
    let ends_with_cr_lf = |end: usize| end >= 2 && head.get(end - 2) == Some(&b'\r');
    if head[end] != b'\r' {
        return false;
    }
    for field in fields.iter().rev() {
        // From the last to the first: `end` is the start of the next line.
        let start = field.start();
        if !ends_with_cr_lf(end) || end.wrapping_sub(2).wrapping_sub(start) > field_bytes_max {
            return false;
        }
        end = start;
    }
    ends_with_cr_lf(end)
}
