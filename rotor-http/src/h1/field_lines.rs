//! Parses the field lines of a head that the scanner has accepted, of a request or a response, with
//! httparse.

use super::field_storage::SlowStorage;
use crate::limits::FIELDS_CAPACITY;
use crate::semantics::fields::Span;

/// Parses the field lines of a head that the scanner has accepted. `lines` ends with the empty
/// line. Fills `spans`, which is empty, with positions in `lines`. Returns whether all lines were
/// parsed.
pub(super) fn parse_fields(lines: &[u8], fields: usize, spans: &mut SlowStorage) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_CAPACITY];
    let Some(headers) = headers.get_mut(..fields) else { return false };
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(lines, headers)
    else {
        return false;
    };
    // `take`: the storage would panic if there was no room.
    spans.extend(parsed.iter().map(|field| span_of(field, lines)).take(FIELDS_CAPACITY));
    true
}

/// Returns the position of a field in `head`, in which it was found.
pub(super) fn span_of(field: &httparse::Header<'_>, head: &[u8]) -> Span {
    let position = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
    let name = position(field.name.as_bytes());
    let colon = name + field.name.len();
    // An empty value from httparse need not lie within the head; it gets the position after the
    // colon.
    let value = if field.value.is_empty() { colon } else { position(field.value) };
    Span::new(name..colon, value..value + field.value.len())
}
