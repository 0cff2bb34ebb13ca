//! Content types, determined from file name extensions.

use std::borrow::Cow;

/// The content type of a file with an unknown extension: bytes that a browser saves instead of
/// guessing.
const UNKNOWN: &str = "application/octet-stream";

/// Returns the content type of a file with this name. For text it includes the character set, if
/// there is one.
pub(super) fn content_type(name: &[u8], charset: Option<&str>) -> Cow<'static, str> {
    let essence =
        extension(name).and_then(|extension| new_mime_guess::from_ext(extension).first_raw());
    // RFC 9239 §6: the former names of JavaScript's content type are obsolete. The library still
    // uses one of them for modules.
    let essence =
        essence.map(|name| if name == "application/javascript" { "text/javascript" } else { name });
    match (essence, charset) {
        (Some(text), Some(charset)) if text.starts_with("text/") => {
            Cow::Owned(format!("{text}; charset={charset}"))
        }
        (essence, _) => Cow::Borrowed(essence.unwrap_or(UNKNOWN)),
    }
}

/// Returns the part of the last component after its last dot, unless the component begins with that
/// dot.
fn extension(name: &[u8]) -> Option<&str> {
    let file = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = file.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0)?;
    str::from_utf8(&file[dot + 1..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_determines_the_content_type() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b/INDEX.HTM", "text/html; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.csv", "text/csv; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.wasm", "application/wasm"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.jpeg", "image/jpeg"),
            ("a.webp", "image/webp"),
            ("a.avif", "image/avif"),
            ("favicon.ico", "image/vnd.microsoft.icon"),
            ("a.woff2", "font/woff2"),
            ("a.mp4", "video/mp4"),
            ("a.mp3", "audio/mpeg"),
            ("a.pdf", "application/pdf"),
            ("a.zip", "application/zip"),
            ("a.tar.gz", "application/gzip"),
            ("site.webmanifest", "application/manifest+json"),
            ("a.html.unheard-of", UNKNOWN),
            ("README", UNKNOWN),
            ("a.", UNKNOWN),
            ("html", UNKNOWN),
            (".html", UNKNOWN),
            ("a.html/b", UNKNOWN),
            ("", UNKNOWN),
        ] {
            assert_eq!(content_type(name.as_bytes(), Some("utf-8")), expected, "{name}");
        }
        assert_eq!(content_type(b"a.\xff", Some("utf-8")), UNKNOWN);
        assert_eq!(content_type(b"a.html", None), "text/html");
        assert_eq!(content_type(b"a.html", Some("iso-8859-1")), "text/html; charset=iso-8859-1");
    }
}
