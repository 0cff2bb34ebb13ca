//! `PartHead`: the name, file name and type of a part.

use std::fmt;

use super::parameters::{Parameters, is_token};
use super::refusals::{malformed, too_large};
use crate::refused::Rejection;

/// The head of a part: its name, file name and type. The peer can put anything there.
#[derive(Clone, PartialEq, Eq)]
pub struct PartHead {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
}

impl PartHead {
    /// Reads the lines of a head, with or without the empty one at its end.
    pub(super) fn parse(head: &[u8], name_bytes_max: usize) -> Result<PartHead, Rejection> {
        let (mut disposition, mut content_type) = (None, None);
        let lines =
            head.strip_suffix(b"\r\n").unwrap_or(head).split_inclusive(|&byte| byte == b'\n');
        for line in lines {
            let (name, value) =
                parse_field(line).ok_or_else(|| malformed("a part has a malformed head"))?;
            let place = match name {
                name if name.eq_ignore_ascii_case(b"Content-Disposition") => &mut disposition,
                name if name.eq_ignore_ascii_case(b"Content-Type") => &mut content_type,
                name if name.eq_ignore_ascii_case(b"Content-Transfer-Encoding") => {
                    match [&b"7bit"[..], b"8bit", b"binary"]
                        .iter()
                        .any(|known| value.eq_ignore_ascii_case(known))
                    {
                        true => continue,
                        false => return Err(malformed("a part is in a transfer encoding")),
                    }
                }
                // RFC 7578 §4.8: other fields are ignored.
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(malformed("a part has two fields of one name"));
            }
        }
        let content_type = content_type.map(to_text).transpose()?;
        if content_type.as_ref().is_some_and(|kind| is_form(kind)) {
            return Err(malformed("a form within a form"));
        }
        let mut parameters = disposition
            .and_then(Parameters::parse)
            .filter(|parameters| parameters.kind.eq_ignore_ascii_case(b"form-data"))
            .ok_or_else(|| malformed("a part has no Content-Disposition of form-data"))?;
        let name = parameters.remove(b"name").ok_or_else(|| malformed("a part has no name"))?;
        let file_name = parameters.remove(b"filename");
        let longest = name.len().max(file_name.as_ref().map_or(0, Vec::len));
        if longest > name_bytes_max {
            return Err(too_large("the name of a part is too long"));
        }
        let file_name = file_name.map(|name| to_text(&name)).transpose()?;
        Ok(PartHead { name: to_text(&name)?, file_name, content_type })
    }

    /// Returns the name of the form's field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the part is a file. A file input that the user left empty is a file without
    /// a name and without data.
    pub fn is_file(&self) -> bool {
        self.file_name.is_some()
    }

    /// Returns the name of the file without folders: the text after the last `/` or `\`. Returns
    /// `None` if nothing is left, or `.` or `..`. The name is still the peer's choice: another file
    /// may have the same name, and it may begin with a dot.
    ///
    /// Browsers write a `"` in the name as `%22`, but leave a `%` unchanged. Nothing is decoded,
    /// because a name that really contains `%22` would become another one.
    pub fn file_name(&self) -> Option<&str> {
        let name = self.file_name.as_deref()?.rsplit(['/', '\\']).next()?;
        (!matches!(name, "" | "." | "..")).then_some(name)
    }

    /// Returns the type that the peer declares.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }
}

fn is_form(content_type: &str) -> bool {
    let kind = content_type.as_bytes().get(..10);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"multipart/"))
}

/// Returns the name and the value of a line, which ends with CR and LF; `None` if it is malformed,
/// or continues another line.
fn parse_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\r\n")?;
    let colon = line.iter().position(|&byte| byte == b':')?;
    is_token(&line[..colon]).then(|| (&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Returns bytes as text, if that has no control characters.
fn to_text(bytes: &[u8]) -> Result<String, Rejection> {
    let text = str::from_utf8(bytes).map_err(|_| malformed("the head of a part is not UTF-8"))?;
    match text.chars().any(char::is_control) {
        true => Err(malformed("a name has a control character")),
        false => Ok(text.to_owned()),
    }
}

impl fmt::Debug for PartHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartHead")
            .field("name", &self.name)
            .field("file_name", &self.file_name)
            .field("content_type", &self.content_type)
            .finish()
    }
}
