//! The fast way through the head of a response, over httparse. It says yes to a head that the
//! scanner would say yes to, or does not know; the scanner alone refuses.
//!
//! httparse accepts more than the rules do: bare LF as a line end, any number of empty lines. Each
//! of these is looked for here in a step per field, not in a second pass.

use std::mem::MaybeUninit;

use super::field_lines::span_of;
use super::field_storage::{FAST_CAPACITY, FastStorage};
use super::head_scanner::ScanLimits;
use crate::semantics::fields::Span;
use crate::semantics::version::Version;

/// A response head that the fast way has read.
pub(super) struct FastResponse<'a> {
    pub(super) version: Version,
    pub(super) code: u16,
    pub(super) reason: &'a str,
    pub(super) len: usize,
}

/// Reads a whole response head, if it is there and beyond doubt. `spans`, which is empty, gets its
/// fields.
#[inline]
pub(super) fn fast_response<'a>(
    input: &'a [u8],
    spans: &mut FastStorage,
    limits: &ScanLimits,
) -> Option<FastResponse<'a>> {
    // httparse skips empty lines in front. RFC 9112 §2.2 lets servers do that, for old clients; a
    // client that did would take what follows a longer body than announced for a response.
    if input.first() != Some(&b'H') {
        return None;
    }
    // A head that does not end within its limit is the scanner's to refuse.
    let window = &input[..input.len().min(limits.bytes_max)];
    let mut storage = [const { MaybeUninit::uninit() }; FAST_CAPACITY];
    // Where a field has no place httparse refuses, so it keeps the limit.
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
    // RFC 9110 §15: the first digit is 1 at least; httparse takes any three.
    let is_sure = code >= 100 && are_lines_sure(&window[..len], spans, limits.field_bytes_max);
    is_sure.then_some(FastResponse { version, code, reason, len })
}

fn version_of(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

/// Returns whether every line of the head ends with CR LF, and no field line is too long. httparse
/// has seen to it that a CR stands nowhere else; so it is enough to look for one before each LF
/// that it took for a line end.
#[inline]
fn are_lines_sure(head: &[u8], fields: &[Span], field_bytes_max: usize) -> bool {
    let Some(mut end) = head.len().checked_sub(2) else { return false };
    let ends_with_cr_lf = |end: usize| end >= 2 && head.get(end - 2) == Some(&b'\r');
    if head[end] != b'\r' {
        return false;
    }
    for field in fields.iter().rev() {
        // From the last to the first: `end` is where the next line begins.
        let start = field.start();
        if !ends_with_cr_lf(end) || end.wrapping_sub(2).wrapping_sub(start) > field_bytes_max {
            return false;
        }
        end = start;
    }
    ends_with_cr_lf(end)
}
