//! `KeptFields`: fields of whatever answers a request.

use memchr::memchr;

/// Fields that go with the answer to a request, be that its handler's or an error page in its place.
/// Absent for nearly every request.
#[derive(Default)]
pub(super) struct KeptFields(Option<Box<Lines>>);

/// Each field in a line that ends with LF: a name has no colon, and a value no line end.
#[derive(Default)]
struct Lines(Vec<u8>);

impl KeptFields {
    pub(super) const NONE: KeptFields = KeptFields(None);

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a field, which was checked.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) {
        let Lines(lines) = &mut **self.0.get_or_insert_default();
        for part in [name.as_bytes(), b":", value, b"\n"] {
            lines.extend_from_slice(part);
        }
    }

    /// Returns name and value of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let lines = self.0.as_deref().map_or(&b""[..], |Lines(lines)| lines);
        lines.split(|&octet| octet == b'\n').filter_map(|line| {
            let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
            Some((str::from_utf8(name).ok()?, &value[1..]))
        })
    }
}
