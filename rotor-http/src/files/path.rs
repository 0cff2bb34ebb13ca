//! Converts the path of a request to the name of a file inside a directory. Pure: nothing is looked
//! up here.
//!
//! **The resulting name cannot lead out of the directory**, as far as names can tell: it has no
//! empty component, no `.` and `..`, and no slash or backslash from an escape. Links are checked
//! when the file is opened.

use std::borrow::Cow;

use crate::semantics::status::Status;

/// The one hidden name that is meant to be published (RFC 8615), at the root only.
const WELL_KNOWN: &[u8] = b".well-known";

/// A path relative to some directory, decoded: `a/b` for a file, `a/b/` for a directory, empty for
/// the directory itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePath<'a> {
    text: Cow<'a, [u8]>,
}

/// Why a path is not the name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathError {
    /// It is malformed: a bad escape, a control character, no slash at the beginning.
    Malformed,
    /// It is a path that is never served.
    NotServed,
}

impl PathError {
    /// Returns the status of the response.
    pub(super) fn status(self) -> Status {
        match self {
            PathError::Malformed => Status::BAD_REQUEST,
            PathError::NotServed => Status::NOT_FOUND,
        }
    }
}

impl<'a> FilePath<'a> {
    /// Decodes and checks the path of a target. Does not allocate if there are no escapes.
    pub(super) fn parse(path: &'a str, hidden: bool) -> Result<FilePath<'a>, PathError> {
        let path = path.strip_prefix('/').ok_or(PathError::Malformed)?;
        let text = decode(path.as_bytes())?;
        // A slash at the end means a directory; two slashes are an empty component.
        let components = text.strip_suffix(b"/").unwrap_or(&text);
        if text.is_empty() {
            return Ok(FilePath { text });
        }
        for (index, component) in components.split(|&byte| byte == b'/').enumerate() {
            if !is_served(component, hidden || (index == 0 && component == WELL_KNOWN)) {
                return Err(PathError::NotServed);
            }
        }
        Ok(FilePath { text })
    }

    /// Returns whether the path names a directory: it ends with a slash, or is the root.
    pub(super) fn is_directory(&self) -> bool {
        self.text.is_empty() || self.text.ends_with(b"/")
    }

    /// Returns the whole name. Different paths have different names.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Returns an owned copy.
    pub(super) fn into_owned(self) -> FilePath<'static> {
        FilePath { text: Cow::Owned(self.text.into_owned()) }
    }

    /// Returns the name of the file to send: the path itself, or the index page of the directory.
    pub(super) fn file_name(&self, index: Option<&str>) -> Option<Vec<u8>> {
        match (self.is_directory(), index) {
            (false, _) => Some(self.text.to_vec()),
            (true, Some(index)) => Some([&self.text[..], index.as_bytes()].concat()),
            (true, None) => None,
        }
    }
}

/// Returns whether a component may be looked up.
fn is_served(component: &[u8], hidden: bool) -> bool {
    !matches!(component, b"" | b"." | b"..")
        && (hidden || !component.starts_with(b"."))
        // Some clients and proxies turn these into slashes.
        && !component.contains(&b'\\')
}

/// Decodes the escapes, once. An escaped slash is refused: it is not a separator, and no name can
/// contain it.
fn decode(path: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    if !path.contains(&b'%') {
        return check_controls(path).map(|()| Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (&[high, low], after) = rest.split_first_chunk().ok_or(PathError::Malformed)?;
        rest = after;
        // Decoded only once, whatever other programs did before: `%252e` is the name `%2e`.
        let byte = hex(high)? << 4 | hex(low)?;
        // The system would treat it as a separator, but earlier checks of the path did not.
        if byte == b'/' {
            return Err(PathError::NotServed);
        }
        decoded.push(byte);
    }
    // After decoding, because only then `%00` and `%0a` are found.
    check_controls(&decoded)?;
    Ok(Cow::Owned(decoded))
}

/// Refuses control characters. No honest name has one, and for the system NUL would end the name.
fn check_controls(name: &[u8]) -> Result<(), PathError> {
    if name.iter().any(u8::is_ascii_control) { Err(PathError::Malformed) } else { Ok(()) }
}

fn hex(digit: u8) -> Result<u8, PathError> {
    let value = char::from(digit).to_digit(16).ok_or(PathError::Malformed)?;
    Ok(value as u8)
}

#[cfg(test)]
mod tests {
    use super::PathError::{Malformed, NotServed};
    use super::*;

    fn parse(path: &str) -> Result<Vec<u8>, PathError> {
        FilePath::parse(path, false).map(|path| path.as_bytes().to_vec())
    }

    #[test]
    fn paths_are_decoded_once() {
        for (path, name) in [
            ("/", &b""[..]),
            ("/a", b"a"),
            ("/a/", b"a/"),
            ("/a/b.html", b"a/b.html"),
            ("/a%20b", b"a b"),
            ("/%61", b"a"),
            ("/%C3%a9", "é".as_bytes()),
            ("/%ff", b"\xff"),
            ("/%2561", b"%61"),
            ("/%252e%252e/x", b"%2e%2e/x"),
            ("/%252F", b"%2F"),
            ("/a+b", b"a+b"),
            ("/a..b", b"a..b"),
            ("/a.", b"a."),
            ("/...", b"..."),
            ("/.well-known/acme", b".well-known/acme"),
            ("/%2ewell-known", b".well-known"),
            ("/~a;b=c,d:e@f", b"~a;b=c,d:e@f"),
        ] {
            let expected = if name == b"..." { Err(NotServed) } else { Ok(name.to_vec()) };
            assert_eq!(parse(path), expected, "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for (path, error) in [
            ("", Malformed),
            ("*", Malformed),
            ("a", Malformed),
            ("/%", Malformed),
            ("/%4", Malformed),
            ("/%zz", Malformed),
            ("/%+1", Malformed),
            ("/%4 ", Malformed),
            ("/%00", Malformed),
            ("/a%00.html", Malformed),
            ("/%0d%0a", Malformed),
            ("/%1f", Malformed),
            ("/%7f", Malformed),
            ("/..", NotServed),
            ("/../", NotServed),
            ("/../etc/passwd", NotServed),
            ("/a/../b", NotServed),
            ("/a/..", NotServed),
            ("/.", NotServed),
            ("/a/./b", NotServed),
            ("/%2e%2e/etc/passwd", NotServed),
            ("/%2E./etc/passwd", NotServed),
            ("/..%2fetc/passwd", NotServed),
            ("/a%2fb", NotServed),
            ("/a%2Fb", NotServed),
            ("/%5c..%5cb", NotServed),
            ("/a\\b", NotServed),
            ("/..\\b", NotServed),
            ("//", NotServed),
            ("//a", NotServed),
            ("/a//b", NotServed),
            ("/a//", NotServed),
            ("/.hidden", NotServed),
            ("/.git/config", NotServed),
            ("/a/.b/c", NotServed),
            ("/%2ehidden", NotServed),
            ("/a/.well-known", NotServed),
            ("/.well-known/.x", NotServed),
            ("/.well-known2", NotServed),
        ] {
            assert_eq!(parse(path), Err(error), "{path}");
        }
    }

    #[test]
    fn hidden_names_are_served_if_allowed_but_dot_components_never() {
        let parse = |path| FilePath::parse(path, true).is_ok();
        assert!(parse("/.hidden") && parse("/a/.b/c") && parse("/..."));
        assert!(!parse("/.") && !parse("/..") && !parse("/a/%2e%2e") && !parse("//"));
    }

    #[test]
    fn a_directory_stands_for_its_index_page() {
        for (path, file) in [
            ("/", Some("index.html")),
            ("/a/", Some("a/index.html")),
            ("/a", Some("a")),
            ("/a/b", Some("a/b")),
        ] {
            let path = FilePath::parse(path, false).expect("served");
            let name = path.file_name(Some("index.html"));
            assert_eq!(name.as_deref(), file.map(str::as_bytes));
            assert_eq!(path.file_name(None).is_none(), path.is_directory());
        }
    }

    #[test]
    fn path_errors_have_the_matching_status() {
        assert_eq!(
            (Malformed.status(), NotServed.status()),
            (Status::BAD_REQUEST, Status::NOT_FOUND)
        );
    }
}
