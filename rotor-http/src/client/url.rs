//! `Url`: an HTTP URL, split into the host to connect to and the target of a request.

use std::fmt;
use std::str::FromStr;

use quick_error::quick_error;
use rotor_stream::Host;

use crate::semantics::authority::Authority;
use crate::semantics::grammar::{self, TARGET};

/// An `http://` or `https://` URL, checked and split (RFC 9110 §4.2) into the host to connect to,
/// the authority for `Host`, and the target of a request.
///
/// Scheme and host are converted to lower case. The authority omits the scheme's default port, and
/// leading zeros of any other port. An empty path becomes `/`, and a fragment is dropped, because
/// it is never sent. Nothing is percent-encoded or decoded, and dot segments stay.
///
/// The URL does not make a connection use TLS; that depends on the type of its socket (see
/// [`is_https`](Url::is_https)). A pool whose sockets are of the type `Either` supports both
/// schemes.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; pub use rotor_stream as stream; }
/// use rotor::http::client::{Fetch, Url};
/// use rotor::stream::Host;
///
/// let url: Url = "http://Example.com/notes?page=2#top".parse()?;
/// assert_eq!(url.host(), Host::new("example.com", 80));
/// // `pool.ask(url.host(), fetch, scope)`, if the pool is `ByName`.
/// let fetch: Fetch<()> = Fetch::get(url.target()).host(url.authority());
/// assert_eq!((url.target(), url.authority()), ("/notes?page=2", "example.com"));
/// # Ok::<(), rotor_http::client::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Url {
    is_https: bool,
    authority: String,
    port: u16,
    target: String,
}

quick_error! {
    /// Why a text is not a URL that can be requested. The fault of the caller, or of the author of
    /// the text.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum UrlError {
        /// It does not begin with `http://` or `https://`.
        Scheme { display("a URL begins with http:// or https://") }
        /// It contains a user name or a password, which would end up in logs: send `Authorization`
        /// instead.
        User { display("a URL has no user name or password here: send Authorization") }
        /// The host is missing or malformed, or the port is not a number from 1 to 65535. Write a
        /// name that is not ASCII in its ASCII form (`xn--…`, RFC 5891). An IPv6 address must not
        /// have a zone, which has a meaning on one computer only.
        Authority {
            display("the URL has no host, or one that is malformed or not ASCII (write xn--…), or a bad port")
        }
        /// The path or query contains a space, a control byte, or a character that is not ASCII.
        /// These must be percent-encoded. In a reference, only a control byte is an error: see
        /// [`join`](Url::join).
        Target { display("the path or query of the URL has a character that must be percent-encoded") }
    }
}

impl Url {
    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the host to connect to, with its port: 80 or 443 if the URL has none. An IPv6
    /// address is returned without brackets.
    pub fn host(&self) -> Host {
        Host::new(self.name(), self.port)
    }

    /// Returns the name of the host, or its address without brackets. A server's certificate must
    /// be valid for this name.
    pub fn name(&self) -> &str {
        let authority = Authority::parse(self.authority.as_bytes());
        let host = authority.map_or("", |authority| authority.host());
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port: the scheme's default, 80 or 443, if the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port in the form of the field `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the path and the query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Resolves a reference against this URL (RFC 3986 §5.2): the value of `Location` in the
    /// response to a request for this URL (RFC 9110 §10.2.2), or a link in its page. The reference
    /// is a whole URL, `//host/path`, an absolute or relative path, or a query. Its fragment is
    /// dropped. Dot segments are removed from the path of the result, unless the path is taken
    /// unchanged from this URL, because the reference is a query or empty.
    ///
    /// A space, `"`, `<`, `>`, and what is not ASCII are percent-encoded in the reference's path and
    /// query, as browsers do, because many servers and pages do not encode them. Spaces around the
    /// reference are ignored.
    ///
    /// The path of the result may begin with two slashes (for example of `/.//b`), so a
    /// [target](Url::target) is not always a reference to itself: keep the `Url`.
    ///
    /// # Errors
    ///
    /// The result is not a URL that can be requested. This is the fault of the reference's author.
    /// `Scheme` is also returned for a reference with another scheme, such as `mailto:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rotor_http as http;
    /// use http::client::Url;
    ///
    /// let url: Url = "http://example.com/notes/2026?page=2".parse()?;
    /// for (reference, expected) in [
    ///     ("../login", "http://example.com/login"),
    ///     ("?page=3", "http://example.com/notes/2026?page=3"),
    ///     ("//www.example.com/", "http://www.example.com/"),
    ///     ("https://example.org", "https://example.org/"),
    /// ] {
    ///     assert_eq!(url.join(reference)?.to_string(), expected);
    /// }
    /// # Ok::<(), http::client::UrlError>(())
    /// ```
    #[doc(alias = "redirect")]
    #[doc(alias = "resolve")]
    pub fn join(&self, reference: &str) -> Result<Url, UrlError> {
        self.join_bytes(reference.trim_matches(' ').as_bytes())
    }

    /// Like `join`. The reference need not be UTF-8, because a field line need not be.
    pub(super) fn join_bytes(&self, reference: &[u8]) -> Result<Url, UrlError> {
        let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
        let (reference, scheme_len) = (&*encode_target(reference)?, scheme_len(reference));
        if scheme_len > 0 {
            return reference.parse().map(Url::without_dot_segments);
        }
        if reference.starts_with("//") {
            let scheme = if self.is_https { "https:" } else { "http:" };
            return format!("{scheme}{reference}").parse().map(Url::without_dot_segments);
        }
        if !grammar::all(reference.as_bytes(), TARGET) {
            return Err(UrlError::Target);
        }
        let own_path = self.target.split_once('?').map_or(&*self.target, |(path, _)| path);
        let target = match reference.as_bytes().first() {
            None => self.target.clone(),
            Some(b'?') => format!("{own_path}{reference}"),
            Some(b'/') => without_dot_segments(reference),
            Some(_) => {
                let folder = own_path.rfind('/').map_or("/", |last| &own_path[..=last]);
                without_dot_segments(&format!("{folder}{reference}"))
            }
        };
        Ok(Url { target, ..self.clone() })
    }

    fn without_dot_segments(self) -> Url {
        Url { target: without_dot_segments(&self.target), ..self }
    }
}

/// Returns the length of the scheme with which a reference begins, and its colon; 0 if there is
/// none (RFC 3986 §3.1). The first segment of a relative path must not look like one (§4.2).
fn scheme_len(reference: &[u8]) -> usize {
    let end = reference.iter().position(|byte| b":/?".contains(byte)).unwrap_or(0);
    let (scheme, rest) = reference.split_at(end);
    let is_scheme = rest.starts_with(b":")
        && scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    if is_scheme { end + 1 } else { 0 }
}

/// Percent-encodes what may not be in the path and query of a reference as it is, but not control
/// bytes. A host is not encoded, since that would hide that it is not ASCII.
fn encode_target(reference: &[u8]) -> Result<String, UrlError> {
    let (scheme, rest) = reference.split_at(scheme_len(reference));
    let host_len = rest.strip_prefix(b"//").map_or(0, |rest| {
        2 + rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len())
    });
    let (before, target) = reference.split_at(scheme.len() + host_len);
    let mut encoded = str::from_utf8(before).map_err(|_| UrlError::Authority)?.to_owned();
    for &byte in target {
        match byte {
            b' ' | b'"' | b'<' | b'>' | 0x80.. => encoded.push_str(&format!("%{byte:02X}")),
            byte => encoded.push(char::from(byte)),
        }
    }
    Ok(encoded)
}

/// Removes the segments `.` and `..` from a path that begins with a slash (RFC 3986 §5.2.4). A
/// query after it is left alone.
fn without_dot_segments(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut segments = Vec::new();
    // The end of the path is a segment, too: an empty one if the path ends with a slash.
    let mut ends_in_folder = false;
    for segment in path.split('/').skip(1) {
        ends_in_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    if ends_in_folder {
        segments.push("");
    }
    format!("/{}{query}", segments.join("/"))
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(UrlError::Scheme),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::User);
        }
        let authority = authority.to_ascii_lowercase();
        let parsed = Authority::parse(authority.as_bytes()).ok_or(UrlError::Authority)?;
        if !grammar::all(target.as_bytes(), TARGET) {
            return Err(UrlError::Target);
        }
        let default = if is_https { 443 } else { 80 };
        let port = parsed.port().unwrap_or(default);
        let authority = match port == default {
            true => parsed.host().to_owned(),
            // The port is formatted again, because its text may begin with zeros.
            false => format!("{}:{port}", parsed.host()),
        };
        // RFC 9110 §4.2.3: an empty path is equivalent to "/".
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { is_https, authority, port, target: format!("{slash}{target}") })
    }
}

/// Prints the URL without a fragment, so equal URLs look the same.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_its_parts() {
        for (text, name, port, authority, target) in [
            ("http://a", "a", 80, "a", "/"),
            ("http://a/", "a", 80, "a", "/"),
            ("https://a/", "a", 443, "a", "/"),
            ("HTTPS://A.Example/B?C=D", "a.example", 443, "a.example", "/B?C=D"),
            ("http://a:80/", "a", 80, "a", "/"),
            ("http://a:/", "a", 80, "a", "/"),
            ("http://a:443/", "a", 443, "a:443", "/"),
            ("http://a:080/", "a", 80, "a", "/"),
            ("http://a:08080/", "a", 8080, "a:8080", "/"),
            ("http://[::1]:0443/", "::1", 443, "[::1]:443", "/"),
            ("https://a:80/", "a", 80, "a:80", "/"),
            ("http://a:8080?b", "a", 8080, "a:8080", "/?b"),
            ("http://a?b/c://d", "a", 80, "a", "/?b/c://d"),
            ("http://a/b?c#d?e", "a", 80, "a", "/b?c"),
            ("http://a#b@c", "a", 80, "a", "/"),
            ("http://a/@b:c", "a", 80, "a", "/@b:c"),
            ("http://127.0.0.1:3000/x", "127.0.0.1", 3000, "127.0.0.1:3000", "/x"),
            ("http://[::1]:8080/", "::1", 8080, "[::1]:8080", "/"),
            ("https://[2001:DB8::1]", "2001:db8::1", 443, "[2001:db8::1]", "/"),
            ("http://a/../b/./%2e%20", "a", 80, "a", "/../b/./%2e%20"),
            ("http://A%2EB/", "a%2eb", 80, "a%2eb", "/"),
            ("http://a./", "a.", 80, "a.", "/"),
            ("http://xn--4ca.example", "xn--4ca.example", 80, "xn--4ca.example", "/"),
            ("http://[::FFFF:192.0.2.1]/", "::ffff:192.0.2.1", 80, "[::ffff:192.0.2.1]", "/"),
            ("http://a:000000000080/", "a", 80, "a", "/"),
        ] {
            let url: Url = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.name(), url.port()), (name, port), "{text}");
            assert_eq!((url.authority(), url.target()), (authority, target), "{text}");
            assert_eq!(url.host(), Host::new(name, port), "{text}");
            assert_eq!(url.is_https(), text.to_ascii_lowercase().starts_with("https"), "{text}");
            assert_eq!(url.to_string().parse().as_ref(), Ok(&url), "{text}");
        }
    }

    /// The examples of RFC 3986 §5.4 that have an HTTP scheme and the path of a server.
    #[test]
    fn a_reference_is_resolved_against_its_base() {
        let base: Url = "http://a/b/c/d;p?q".parse().expect("a URL");
        for (reference, expected) in [
            ("http://g", "http://g/"),
            ("HTTPS://g/../h#s", "https://g/h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("//g:80/.", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/../x", "http://a/b/c/g"),
            ("a//../b", "http://a/b/c/a/b"),
            ("./a:b", "http://a/b/c/a:b"),
            ("1:b", "http://a/b/c/1:b"),
            ("?a:b", "http://a/b/c/d;p?a:b"),
            ("/%2e%2e/x", "http://a/%2e%2e/x"),
            ("/caf\u{e9}?\u{e9} x", "http://a/caf%C3%A9?%C3%A9%20x"),
            ("a b/%20\"<c>\"", "http://a/b/c/a%20b/%20%22%3Cc%3E%22"),
            ("//g/\u{e4}#\u{e4}", "http://g/%C3%A4"),
            ("http://g?a b", "http://g/?a%20b"),
            (" g ", "http://a/b/c/g"),
            ("\u{e4}:b", "http://a/b/c/%C3%A4:b"),
        ] {
            let joined =
                base.join(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
            assert_eq!(joined.to_string(), expected, "{reference:?}");
            assert_eq!(expected.parse().as_ref(), Ok(&joined), "{reference:?}");
        }
        let port: Url = "https://a:8443/x/?q".parse().expect("a URL");
        assert_eq!(port.join("y").expect("a path").to_string(), "https://a:8443/x/y");
        assert_eq!(port.join("//b").expect("a host").to_string(), "https://b/");
        let dots: Url = "http://a/b/../c?d".parse().expect("a URL");
        for (reference, target) in [("", "/b/../c?d"), ("?q", "/b/../c?q"), ("e", "/e")] {
            assert_eq!(dots.join(reference).expect("a URL").target(), target, "{reference:?}");
        }
        for reference in ["/.//e", "../..//e", "http://a/.//e"] {
            assert_eq!(base.join(reference).expect("a URL").to_string(), "http://a//e");
        }
        let root: Url = "http://a".parse().expect("a URL");
        assert_eq!(root.join("?q").expect("a query").to_string(), "http://a/?q");
    }

    #[test]
    fn an_invalid_reference_is_rejected() {
        let base: Url = "http://a/b".parse().expect("a URL");
        for (reference, expected) in [
            ("mailto:a@b", UrlError::Scheme),
            ("http:g", UrlError::Scheme),
            ("javascript:alert(1)", UrlError::Scheme),
            ("a:b", UrlError::Scheme),
            ("svn+ssh:h", UrlError::Scheme),
            ("a-b.c:d", UrlError::Scheme),
            ("//u@h/", UrlError::User),
            ("http://u:p@h/", UrlError::User),
            ("//", UrlError::Authority),
            ("///x", UrlError::Authority),
            ("//h:0/", UrlError::Authority),
            ("//\u{e4}/", UrlError::Authority),
            ("http://\u{e4}.example/", UrlError::Authority),
            ("//a b/", UrlError::Authority),
            ("//good\\@evil/", UrlError::User),
            ("x\r\nX: y", UrlError::Target),
            ("x\0", UrlError::Target),
            ("x\x7f", UrlError::Target),
            ("?\t", UrlError::Target),
        ] {
            assert_eq!(base.join(reference), Err(expected), "{reference:?}");
        }
    }

    #[test]
    fn an_invalid_url_is_rejected_with_the_reason() {
        for (text, expected) in [
            ("", UrlError::Scheme),
            ("a", UrlError::Scheme),
            ("/a", UrlError::Scheme),
            ("a:80/b", UrlError::Scheme),
            ("http:/a", UrlError::Scheme),
            (" http://a", UrlError::Scheme),
            ("ftp://a", UrlError::Scheme),
            ("://a", UrlError::Scheme),
            ("http://", UrlError::Authority),
            ("http:///a", UrlError::Authority),
            ("http://:80/", UrlError::Authority),
            ("http://a:0/", UrlError::Authority),
            ("http://a:65536/", UrlError::Authority),
            ("http://a:b/", UrlError::Authority),
            ("http://a b/", UrlError::Authority),
            ("http://::1/", UrlError::Authority),
            ("http://[::1/", UrlError::Authority),
            ("http://\u{e4}.example/", UrlError::Authority),
            ("http://a\\b/", UrlError::Authority),
            ("http://good\\@evil/", UrlError::User),
            ("http://a\tb/", UrlError::Authority),
            ("http://a\n/", UrlError::Authority),
            ("ht\ntp://a/", UrlError::Scheme),
            ("http://a%/", UrlError::Authority),
            ("http://[fe80::1%25eth0]/", UrlError::Authority),
            ("http://[fe80::1%eth0]/", UrlError::Authority),
            ("http://[v1.a]/", UrlError::Authority),
            ("http://a:-1/", UrlError::Authority),
            ("http://a:\u{661}/", UrlError::Authority),
            ("http:\\\\a/", UrlError::Scheme),
            ("http://u@a/", UrlError::User),
            ("http://u:p@a/", UrlError::User),
            ("http://a/b c", UrlError::Target),
            ("http://a/\r\nX: y", UrlError::Target),
            ("http://a/\u{e4}", UrlError::Target),
            ("http://a?\0", UrlError::Target),
        ] {
            assert_eq!(text.parse::<Url>(), Err(expected), "{text:?}");
        }
    }
}
