//! The fast way through a head, over httparse, the only file that names it. It says yes to a head that the scanner
//! would say yes to, or does not know; the scanner alone refuses.
//!
//! httparse accepts more than the rules do: bare LF as a line end, any number of empty lines, bytes from 0x80 on in a
//! target. Each of these is looked for here in a step per field or per target byte, not in a second pass.

use std::fmt;
use std::mem::MaybeUninit;

use super::grammar::{self, TARGET};
use super::method::Method;
use super::scanner::ScanLimits;
use super::version::Version;

/// One field line as httparse leaves it.
pub(super) type RawField<'a> = httparse::Header<'a>;

/// Most fields that a head can have, whatever the limits say.
pub(super) const FIELDS_CAPACITY: usize = 256;

/// Most fields that the fast way takes. More are rare, and read at the scanner's pace.
const FAST_CAPACITY: usize = 64;

/// Room for the fields of a head that the scanner had to read.
pub(super) type SlowStorage<'a> = Option<[RawField<'a>; FIELDS_CAPACITY]>;

/// Room for the fields of one head; lives on the stack while the head is looked at. Making one costs nothing.
pub struct FieldStorage<'a> {
    fast: [MaybeUninit<RawField<'a>>; FAST_CAPACITY],
    /// Filled only when a head came in pieces or has many fields.
    slow: SlowStorage<'a>,
}

impl FieldStorage<'_> {
    /// Room for one head.
    #[inline(always)]
    pub const fn new() -> Self {
        FieldStorage { fast: [const { MaybeUninit::uninit() }; FAST_CAPACITY], slow: None }
    }
}

impl Default for FieldStorage<'_> {
    fn default() -> Self {
        FieldStorage::new()
    }
}

impl fmt::Debug for FieldStorage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldStorage")
    }
}

/// The two halves of a storage, so that the slow one is free when the fast one was tried.
pub(super) type Halves<'s, 'a> =
    (&'s mut [MaybeUninit<RawField<'a>>; FAST_CAPACITY], &'s mut SlowStorage<'a>);

impl<'a> FieldStorage<'a> {
    #[inline]
    pub(super) fn halves(&mut self) -> Halves<'_, 'a> {
        (&mut self.fast, &mut self.slow)
    }
}

/// A request head that the fast way has read.
pub(super) struct FastRequest<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: Version,
    pub(super) fields: &'a [RawField<'a>],
    pub(super) len: usize,
}

/// Reads a whole request head, if it is there, begins at once and is beyond doubt.
#[inline(always)]
pub(super) fn fast_request<'a>(
    input: &'a [u8],
    storage: &'a mut [MaybeUninit<RawField<'a>>],
    limits: &ScanLimits,
) -> Option<FastRequest<'a>> {
    if matches!(input.first(), None | Some(b'\r' | b'\n')) {
        return None;
    }
    let window = &input[..input.len().min(limits.bytes_max)];
    let storage = &mut storage[..limits.fields_max.min(FAST_CAPACITY)];
    let mut request = httparse::Request::new(&mut []);
    let Ok(httparse::Status::Complete(len)) = request.parse_with_uninit_headers(window, storage) else {
        return None;
    };
    let fields: &'a [RawField<'a>] = request.headers;
    let (method, target) = (request.method?, request.path?);
    let is_sure = method.len() <= Method::OCTETS_MAX
        && target.len() <= limits.target_bytes_max
        && grammar::all(target.as_bytes(), TARGET)
        && are_lines_sure(&window[..len], fields, limits.field_bytes_max);
    is_sure.then_some(FastRequest { method, target, version: version_of(request.version), fields, len })
}

/// A response head that the fast way has read.
pub(super) struct FastResponse<'a> {
    pub(super) version: Version,
    pub(super) code: u16,
    pub(super) reason: &'a str,
    pub(super) fields: &'a [RawField<'a>],
    pub(super) len: usize,
}

/// Reads a whole response head, if it is there and beyond doubt.
#[inline]
pub(super) fn fast_response<'a>(
    input: &'a [u8],
    storage: &'a mut [MaybeUninit<RawField<'a>>],
    limits: &ScanLimits,
) -> Option<FastResponse<'a>> {
    if input.first() != Some(&b'H') {
        return None;
    }
    let window = &input[..input.len().min(limits.bytes_max)];
    let storage = &mut storage[..limits.fields_max.min(FAST_CAPACITY)];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, window, storage);
    let Ok(httparse::Status::Complete(len)) = parsed else {
        return None;
    };
    let fields: &'a [RawField<'a>] = response.headers;
    let (code, reason) = (response.code?, response.reason?);
    let is_sure = code >= 100 && are_lines_sure(&window[..len], fields, limits.field_bytes_max);
    is_sure.then_some(FastResponse { version: version_of(response.version), code, reason, fields, len })
}

/// Parses the field lines of a head that the scanner has accepted. `lines` ends with the empty line.
pub(super) fn parse_fields<'a>(
    lines: &'a [u8],
    fields: usize,
    storage: &'a mut SlowStorage<'a>,
) -> Option<&'a [RawField<'a>]> {
    let storage = storage.insert([httparse::EMPTY_HEADER; FIELDS_CAPACITY]);
    match httparse::parse_headers(lines, storage.get_mut(..fields)?) {
        Ok(httparse::Status::Complete((_, parsed))) => Some(parsed),
        _ => None,
    }
}

fn version_of(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::Http10 } else { Version::Http11 }
}

/// Whether every line of the head ends with CR LF, and no field line is too long. httparse has seen to it that a CR
/// stands nowhere else; so it is enough to look for one before each LF that it took for a line end.
#[inline]
fn are_lines_sure(head: &[u8], fields: &[RawField<'_>], field_bytes_max: usize) -> bool {
    let base = head.as_ptr() as usize;
    let Some(mut end) = head.len().checked_sub(2) else { return false };
    let ends_with_cr_lf = |end: usize| end >= 2 && head.get(end - 2) == Some(&b'\r');
    if head[end] != b'\r' {
        return false;
    }
    for field in fields.iter().rev() {
        // From the last to the first: `end` is where the next line begins.
        let start = (field.name.as_ptr() as usize).wrapping_sub(base);
        if !ends_with_cr_lf(end) || end.wrapping_sub(2).wrapping_sub(start) > field_bytes_max {
            return false;
        }
        end = start;
    }
    ends_with_cr_lf(end)
}
