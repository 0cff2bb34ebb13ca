//! The fast way through the head of a response, and the field lines of heads that the scanner has
//! read, over httparse, the only file that names it. It says yes to a head that the scanner would
//! say yes to, or does not know; the scanner alone refuses.
//!
//! httparse accepts more than the rules do: bare LF as a line end, any number of empty lines. Each
//! of these is looked for here in a step per field, not in a second pass.

use std::fmt;
use std::mem::MaybeUninit;

use arrayvec::ArrayVec;

use super::fields::Span;
use super::scanner::ScanLimits;
use super::version::Version;

/// Most fields that a head can have, whatever the limits say.
pub(super) const FIELDS_CAPACITY: usize = 256;

/// Most fields that the fast way takes. More are rare, and read at the scanner's pace.
const FAST_CAPACITY: usize = 32;

/// Room for the fields of a head that is read the fast way.
pub(crate) type FastStorage = ArrayVec<Span, FAST_CAPACITY>;

/// Room for the fields of a head that the scanner had to read.
pub(crate) type SlowStorage = ArrayVec<Span, FIELDS_CAPACITY>;

/// Room for the fields of one head; lives on the stack while the head is looked at, and is written
/// only as far as there are fields.
pub struct FieldStorage {
    fast: FastStorage,
    /// For a head that came in pieces or has many fields.
    slow: SlowStorage,
}

impl FieldStorage {
    /// Room for one head.
    #[inline(always)]
    pub fn new() -> Self {
        // Not a constant: that would be copied whole, zeros and all.
        FieldStorage { fast: ArrayVec::new(), slow: ArrayVec::new() }
    }

    /// The two parts, empty, so that the slow one is free when the fast one was tried.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut FastStorage, &mut SlowStorage) {
        self.fast.clear();
        self.slow.clear();
        (&mut self.fast, &mut self.slow)
    }
}

impl Default for FieldStorage {
    fn default() -> Self {
        FieldStorage::new()
    }
}

impl fmt::Debug for FieldStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldStorage")
    }
}

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
    if input.first() != Some(&b'H') {
        return None;
    }
    let window = &input[..input.len().min(limits.bytes_max)];
    let mut storage = [const { MaybeUninit::uninit() }; FAST_CAPACITY];
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
    let is_sure = code >= 100 && are_lines_sure(&window[..len], spans, limits.field_bytes_max);
    is_sure.then_some(FastResponse { version, code, reason, len })
}

/// Parses the field lines of a head that the scanner has accepted. `lines` ends with the empty
/// line, and the spans, of which there are none yet, count in it. Answers whether they are all
/// there.
pub(super) fn parse_fields(lines: &[u8], fields: usize, spans: &mut SlowStorage) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_CAPACITY];
    let Some(headers) = headers.get_mut(..fields) else { return false };
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(lines, headers)
    else {
        return false;
    };
    spans.extend(parsed.iter().map(|field| span_of(field, lines)).take(FIELDS_CAPACITY));
    true
}

/// Where in `head` the field is that was found there.
fn span_of(field: &httparse::Header<'_>, head: &[u8]) -> Span {
    let position = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
    let name = position(field.name.as_bytes());
    let colon = name + field.name.len();
    // Nothing may stand anywhere.
    let value = if field.value.is_empty() { colon } else { position(field.value) };
    Span::new(name..colon, value..value + field.value.len())
}

fn version_of(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

/// Whether every line of the head ends with CR LF, and no field line is too long. httparse has seen
/// to it that a CR stands nowhere else; so it is enough to look for one before each LF that it took
/// for a line end.
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
