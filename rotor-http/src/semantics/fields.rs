//! The fields of a head, in the order in which they were sent. Looking them up does not allocate.

use std::fmt;
use std::ops::Range;
use std::str;

use super::token_list;

/// One field line: a name and a value without the whitespace around it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[doc(alias = "header")]
pub struct Field<'a> {
    /// The name as it was sent. Compare it with `eq_ignore_ascii_case`.
    pub name: &'a str,
    /// The value. It contains no control byte but HTAB; bytes from 0x80 on are opaque.
    pub value: &'a [u8],
}

/// All field lines of a head. Names are case-insensitive, and `_` is not the same as `-`. A look-up
/// goes through the lines.
#[derive(Clone, Copy)]
#[doc(alias = "HeaderMap")]
#[doc(alias = "headers")]
pub struct Fields<'a> {
    /// The bytes in which the spans count.
    head: &'a [u8],
    spans: &'a [Span],
}

/// Where the parts of a field line are. Heads are far shorter than 4 GiB.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    name: u32,
    colon: u32,
    value: u32,
    value_end: u32,
}

impl Span {
    /// Makes the span of a name, which is followed by a colon, and a value.
    #[inline]
    pub(crate) fn new(name: Range<usize>, value: Range<usize>) -> Span {
        // This does not truncate: a head has at most 16 MiB.
        let position = |at: usize| at as u32;
        Span {
            name: position(name.start),
            colon: position(name.end),
            value: position(value.start),
            value_end: position(value.end),
        }
    }

    /// Returns where the value is.
    #[inline]
    pub(crate) fn value_range(&self) -> Range<usize> {
        self.value as usize..self.value_end as usize
    }

    /// Returns where the line begins.
    #[inline]
    pub(crate) fn start(&self) -> usize {
        self.name as usize
    }

    #[inline]
    fn name<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        // This must not panic, whatever the span contains: it comes from a peer's bytes.
        head.get(self.name as usize..self.colon as usize).unwrap_or_default()
    }

    #[inline]
    fn value<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        head.get(self.value as usize..self.value_end as usize).unwrap_or_default()
    }
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn new(head: &'a [u8], spans: &'a [Span]) -> Fields<'a> {
        Fields { head, spans }
    }

    /// Returns how many field lines there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there is no field line.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns an iterator over the field lines, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'a>> + DoubleEndedIterator + use<'a> {
        // A name is a token, so it is valid UTF-8.
        self.iter_bytes()
            .map(|(name, value)| Field { name: str::from_utf8(name).unwrap_or_default(), value })
    }

    /// Returns an iterator over names and values as bytes. It is cheaper than
    /// [`iter`](Fields::iter), for callers that check or compare names themselves.
    #[inline]
    pub fn iter_bytes(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + DoubleEndedIterator + use<'a> {
        let head = self.head;
        self.spans.iter().map(move |span| (span.name(head), span.value(head)))
    }

    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter_bytes()
            .find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Returns the value of the first field with this name, if it is UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns the values of all fields with this name.
    pub fn get_all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let has_name = move |own: &[u8]| own.eq_ignore_ascii_case(name.as_bytes());
        self.iter_bytes().filter(move |(own, _)| has_name(own)).map(|(_, value)| value)
    }

    /// Returns the elements of the comma-separated list that all fields with this name form
    /// together (RFC 9110 §5.3). Empty elements are left out.
    pub fn list<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.get_all(name).flat_map(token_list::list_elements).filter(|element| !element.is_empty())
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value.escape_ascii())
    }
}
