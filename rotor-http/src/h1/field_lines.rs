//! The field lines of a head that the scanner has accepted, request or response, taken apart over
//! httparse.

use super::field_storage::SlowStorage;
use crate::limits::FIELDS_CAPACITY;
use crate::semantics::fields::Span;

/// Parses the field lines of a head that the scanner has accepted. `lines` ends with the empty
/// line, and the spans, of which there are none yet, count in it. Returns whether they are all
/// there.
pub(super) fn parse_fields(lines: &[u8], fields: usize, spans: &mut SlowStorage) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_CAPACITY];
    let Some(headers) = headers.get_mut(..fields) else { return false };
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(lines, headers)
    else {
        return false;
    };
    // `take`: the storage would panic where there is no place for one more.
    spans.extend(parsed.iter().map(|field| span_of(field, lines)).take(FIELDS_CAPACITY));
    true
}

/// Returns where in `head` the field stands that was found there.
pub(super) fn span_of(field: &httparse::Header<'_>, head: &[u8]) -> Span {
    let position = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
    let name = position(field.name.as_bytes());
    let colon = name + field.name.len();
    // httparse hands out an empty value that need not lie within the head: it is put behind the
    // colon.
    let value = if field.value.is_empty() { colon } else { position(field.value) };
    Span::new(name..colon, value..value + field.value.len())
}
