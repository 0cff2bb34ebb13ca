//! `PersistentFields`: the fields of every response to a request.

use memchr::memchr;

/// Fields that belong to every response to a request, whether the handler's or an error page in its
/// place. Absent for nearly all requests.
#[derive(Default)]
pub(super) struct PersistentFields(Option<Box<Lines>>);

/// One line per field, ended by LF: a name has no colon, and a value has no line end.
#[derive(Default)]
struct Lines(Vec<u8>);

impl PersistentFields {
    pub(super) const NONE: PersistentFields = PersistentFields(None);

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a field, which must have been checked.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) {
        let Lines(lines) = &mut **self.0.get_or_insert_default();
        for part in [name.as_bytes(), b":", value, b"\n"] {
            lines.extend_from_slice(part);
        }
    }

    /// Returns the name and the value of each field.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let lines = self.0.as_deref().map_or(&b""[..], |Lines(lines)| lines);
        lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
            Some((str::from_utf8(name).ok()?, &value[1..]))
        })
    }
}
