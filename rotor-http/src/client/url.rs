//! `Url`: whom a URL of HTTP asks, and what for.

use std::fmt;
use std::str::FromStr;

use quick_error::quick_error;
use rotor_stream::Host;

use crate::semantics::authority::Authority;
use crate::semantics::grammar::{self, TARGET};

/// An `http://` or `https://` URL, checked and taken apart (RFC 9110 §4.2): the host to connect to,
/// the authority for `Host`, and the target of a request.
///
/// Scheme and host are in lower case, the port of the scheme is left out of the authority, as are
/// zeros before another, an empty path is `/`, and a fragment is dropped, since it is never sent.
/// Nothing is percent-encoded or decoded, and dot segments stay.
///
/// Whether the connection has TLS is for its socket to say
/// ([`is_https`](Url::is_https)); a pool of `Either` kind of socket takes both.
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
/// // `pool.ask(url.host(), fetch, scope)`, where the pool is `ByName`.
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
    /// Why a text is no URL that can be asked for. The caller's fault, or of whoever wrote it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum UrlError {
        /// It does not begin with `http://` or `https://`.
        Scheme { display("a URL begins with http:// or https://") }
        /// It has a user name or a password, which would end up in logs: send `Authorization`
        /// instead.
        User { display("a URL has no user name or password here: send Authorization") }
        /// The host is missing or malformed, or the port is not a number from 1 to 65535.
        Authority { display("the URL has no host, or a malformed one, or a bad port") }
        /// Path or query hold a space, a control byte, or a character beyond ASCII: those are to be
        /// percent-encoded.
        Target { display("the path or query of the URL has a character that must be percent-encoded") }
    }
}

impl Url {
    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the host to connect to, with its port: 80 or 443 where the URL has none. An IPv6
    /// address has no brackets.
    pub fn host(&self) -> Host {
        Host::new(self.name(), self.port)
    }

    /// Returns the name of the host, or its address without brackets: the name for which a
    /// certificate has to be.
    pub fn name(&self) -> &str {
        let authority = Authority::parse(self.authority.as_bytes());
        let host = authority.map_or("", |authority| authority.host());
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port: that of the scheme, 80 or 443, where the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port as `Host` says them.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns path and query.
    pub fn target(&self) -> &str {
        &self.target
    }
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
            // Not as it was written: a port may begin with zeros.
            false => format!("{}:{port}", parsed.host()),
        };
        // RFC 9110 §4.2.3: an empty path is equivalent to "/".
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { is_https, authority, port, target: format!("{slash}{target}") })
    }
}

/// Without a fragment: two that ask for the same look the same.
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
    fn a_url_comes_apart() {
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
        ] {
            let url: Url = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.name(), url.port()), (name, port), "{text}");
            assert_eq!((url.authority(), url.target()), (authority, target), "{text}");
            assert_eq!(url.host(), Host::new(name, port), "{text}");
            assert_eq!(url.is_https(), text.to_ascii_lowercase().starts_with("https"), "{text}");
            assert_eq!(url.to_string().parse().as_ref(), Ok(&url), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
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
