//! The fields of a head, in the order of the wire, looked up without allocation.

use std::fmt;
use std::str;

use super::parser::RawField;
use super::token_list;

/// One field line: a name and a value without the whitespace around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as it was sent; compare it with `eq_ignore_ascii_case`.
    pub name: &'a str,
    /// The value: no control byte but HTAB; bytes from 0x80 on are opaque.
    pub value: &'a [u8],
}

/// All field lines of a head. Names compare in any case; `_` is not `-`. A look-up walks the lines.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    raw: &'a [RawField<'a>],
}

impl<'a> Fields<'a> {
    pub(super) fn new(raw: &'a [RawField<'a>]) -> Fields<'a> {
        Fields { raw }
    }

    /// How many field lines there are.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there is no field line.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Every field line.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'a>> + DoubleEndedIterator + use<'a> {
        self.raw.iter().map(|raw| Field { name: raw.name, value: raw.value })
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.raw.iter().find(|raw| raw.name.eq_ignore_ascii_case(name)).map(|raw| raw.value)
    }

    /// The value of the first field of this name, if it is UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// The values of all fields of this name.
    pub fn get_all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.raw.iter().filter(move |raw| raw.name.eq_ignore_ascii_case(name)).map(|raw| raw.value)
    }

    /// The elements of the comma list that all fields of this name make up (RFC 9110 §5.3); empty ones are left out.
    pub fn list<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.get_all(name).flat_map(token_list::elements).filter(|element| !element.is_empty())
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
