//! `Cookies`, `SetCookie`: reading and setting cookies (RFC 6265), by the package `cookie`.

use std::fmt;
use std::time::Duration;

use cookie::time::Duration as Seconds;
use percent_encoding::percent_decode_str;

/// How many cookies of a request are read at most: more than browsers keep for a host. Further ones
/// are skipped.
pub const COOKIES_MAX: usize = 200;

/// The cookies of a request, in order. A client can send any cookies it likes, so sign those that
/// matter, or use numbers that nobody can guess.
///
/// ```
/// use rotor_service::Cookies;
///
/// let cookies = Cookies::read([("Cookie", &b"session=0a1b; theme=dark"[..])]);
/// assert_eq!(cookies.get("theme"), Some("dark"));
/// assert_eq!(cookies.get("none"), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Reads the cookies from a request's fields, given as names and values. Pass
    /// `request.fields()` in an async handler, else `head.fields().iter().map(|field| (field.name,
    /// field.value))`. Cookies that are malformed or not UTF-8 are skipped, as are all after the
    /// first 200.
    pub fn read<'r>(fields: impl IntoIterator<Item = (&'r str, &'r [u8])>) -> Cookies {
        let lines = fields.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case("Cookie"));
        // Each cookie is read by itself: any host of the domain can set one, and a malformed one
        // must not hide the others.
        let texts = lines.flat_map(|(_, value)| value.split(|&byte| byte == b';'));
        let pairs = texts.filter_map(|text| parse_pair(std::str::from_utf8(text).ok()?));
        Cookies(pairs.take(COOKIES_MAX).collect())
    }

    /// Returns the first value of this name, percent-decoded. Browsers send the cookie with the
    /// longest path first.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Returns all cookies, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Returns the name and the value of a cookie; `None` if it has no `=` or no name.
fn parse_pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    // Only what browsers trim (RFC 6265 §5.2). If a Unicode space precedes `__Host-a`, the browser
    // does not enforce the prefix, but `str::trim` would make the same name of it. For the same
    // reason the name is not decoded.
    let (name, value) = (name.trim_matches(WHITESPACE), value.trim_matches(WHITESPACE));
    (!name.is_empty()).then(|| (name.to_owned(), decode(value)))
}

/// White space as of RFC 5234, which may surround the parts of a cookie.
const WHITESPACE: [char; 2] = [' ', '\t'];

/// Percent-decodes a value. If the result is not UTF-8, the value is returned unchanged, since it
/// may use another encoding.
fn decode(value: &str) -> String {
    percent_decode_str(value).decode_utf8().map_or_else(|_| value.to_owned(), Into::into)
}

/// Shows only the names: values are secret.
impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// With which requests from other sites a browser sends a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SameSite {
    /// With none.
    Strict,
    /// With those that are made by following a link.
    Lax,
    /// With all. [`secure`](SetCookie::secure) must be set as well.
    None,
}

/// A cookie for the browser to keep: the value of a `Set-Cookie` field.
///
/// By default the cookie is sent to all paths of this host until the browser is closed, is hidden
/// from scripts (`HttpOnly`), and is sent with no requests from other sites except links
/// (`SameSite=Lax`). If the service is encrypted, add [`secure`](SetCookie::secure).
///
/// ```
/// use std::time::Duration;
///
/// use rotor_service::SetCookie;
///
/// let cookie = SetCookie::new("session", "0a1b").secure().max_age(Duration::from_secs(3600));
/// assert_eq!(
///     cookie.value(),
///     "session=0a1b; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=3600",
/// );
/// ```
#[derive(Clone)]
pub struct SetCookie(cookie::Cookie<'static>);

impl SetCookie {
    /// Makes a cookie. The value may be any text, and is percent-encoded. The name must be a token,
    /// as the name of a field is.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> SetCookie {
        let cookie = cookie::Cookie::build((name.into(), value.into()));
        SetCookie(cookie.path("/").http_only(true).same_site(cookie::SameSite::Lax).build())
    }

    /// Makes a cookie that deletes the browser's cookie of this name, with the same path and
    /// domain. If the name begins with `__Host-` or `__Secure-`, add [`secure`](SetCookie::secure).
    pub fn removal(name: impl Into<String>) -> SetCookie {
        SetCookie::new(name, "").max_age(Duration::ZERO)
    }

    fn modify(mut self, change: impl FnOnce(&mut cookie::Cookie<'static>)) -> SetCookie {
        change(&mut self.0);
        self
    }

    /// Restricts the cookie to encrypted connections.
    pub fn secure(self) -> SetCookie {
        self.modify(|cookie| cookie.set_secure(true))
    }

    /// Sets how long the browser keeps the cookie, in whole seconds.
    pub fn max_age(self, time: Duration) -> SetCookie {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.modify(|cookie| cookie.set_max_age(Seconds::seconds(seconds)))
    }

    /// Sets the path for which, with all paths below it, the cookie is sent. Use a constant: never
    /// pass anything here that a peer sent.
    pub fn path(self, path: impl Into<String>) -> SetCookie {
        let path = path.into();
        self.modify(|cookie| cookie.set_path(path))
    }

    /// Sets a domain, so that the cookie is sent to all hosts of the domain, not only to this one.
    /// Use a constant, as for the [path](SetCookie::path).
    pub fn domain(self, domain: impl Into<String>) -> SetCookie {
        let domain = domain.into();
        self.modify(|cookie| cookie.set_domain(domain))
    }

    /// Sets with which requests from other sites the cookie is sent.
    pub fn same_site(self, same_site: SameSite) -> SetCookie {
        self.modify(|cookie| {
            cookie.set_same_site(match same_site {
                SameSite::Strict => cookie::SameSite::Strict,
                SameSite::Lax => cookie::SameSite::Lax,
                SameSite::None => cookie::SameSite::None,
            });
        })
    }

    /// Lets scripts of the page read the cookie.
    pub fn for_scripts(self) -> SetCookie {
        self.modify(|cookie| cookie.set_http_only(false))
    }

    /// Returns the value of the `Set-Cookie` field. Send one field for each cookie.
    pub fn value(&self) -> String {
        let encoded = self.0.encoded().to_string();
        match encoded.split_once('=') {
            // The name is written unencoded, since it is not decoded when read. The package encodes
            // some characters that a token may have, such as `|`.
            Some((_, rest)) if is_token(self.0.name()) => format!("{}={rest}", self.0.name()),
            _ => encoded,
        }
    }
}

/// RFC 9110 §5.6.2.
fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Shows only the name: the value is secret.
impl fmt::Debug for SetCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SetCookie").field(&self.0.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&[u8]]) -> Vec<(String, String)> {
        let mut fields: Vec<(&str, &[u8])> = vec![("X-Other", b"no=1")];
        fields.extend(lines.iter().map(|line| ("cookie", *line)));
        let cookies = Cookies::read(fields);
        cookies.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn malformed_cookies_are_skipped() {
        for (lines, expected) in [
            (&[][..], &[][..]),
            (&[&b""[..]], &[]),
            (&[b"a=1; b=2"], &[("a", "1"), ("b", "2")]),
            // HTTP/2 may send each cookie in a field of its own (RFC 9113 §8.2.3).
            (&[b"a=1", b"b=2;c=3"], &[("a", "1"), ("b", "2"), ("c", "3")]),
            (&[b"a; =1; b=2;;"], &[("b", "2")]),
            (&[b"a=b=c; d="], &[("a", "b=c"), ("d", "")]),
            (&[b"a=%3B%C3%A4; b=%ff; c=%"], &[("a", ";\u{e4}"), ("b", "%ff"), ("c", "%")]),
            (&[b" \ta\t = \t1 ;b=2"], &[("a", "1"), ("b", "2")]),
            (&[b"%5F_Host-a=1"], &[("%5F_Host-a", "1")]),
            // Browsers do not enforce a prefix that has anything in front of it.
            (
                &["\u{2000}__Host-a=1; \u{a0}__Host-a=2; __Host-a\u{3000}=3; \u{85}a=4".as_bytes()],
                &[
                    ("\u{2000}__Host-a", "1"),
                    ("\u{a0}__Host-a", "2"),
                    ("__Host-a\u{3000}", "3"),
                    ("\u{85}a", "4"),
                ],
            ),
            (&[b"a=\xff", b"b=2"], &[("b", "2")]),
            (&[b"a=1; b=\xff; \xff=3; c=4"], &[("a", "1"), ("c", "4")]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(read(lines), expected, "{:?}", lines.concat().escape_ascii().to_string());
        }
        for (count, left) in [(199, 199), (200, 200), (201, 200)] {
            assert_eq!(read(&["a=1;".repeat(count).as_bytes()]).len(), left);
        }
        let twice = Cookies::read([("Cookie", &b"a=1; a=2"[..])]);
        assert_eq!((twice.get("a"), format!("{twice:?}")), (Some("1"), r#"["a", "a"]"#.to_owned()));
    }

    #[test]
    fn any_value_survives_a_round_trip() {
        for value in ["", "plain", "a; Domain=evil.example", "a\r\nSet-Cookie: b=c", "\"ä, €%41\""]
        {
            let field = SetCookie::new("a", value).value();
            let (pair, attributes) = field.split_once("; ").expect("attributes");
            assert_eq!(attributes, "HttpOnly; SameSite=Lax; Path=/", "{field:?}");
            assert!(field.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{field:?}");
            assert_eq!(read(&[pair.as_bytes()]), [("a".to_owned(), value.to_owned())]);
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_name() {
        for mark in "!#$%&'*+-.^_`|~".chars().chain(['a', 'Z', '0']) {
            let name = format!("{mark}a{mark}");
            let field = SetCookie::new(&name, "=").value();
            let (pair, _) = field.split_once("; ").expect("attributes");
            assert_eq!(read(&[pair.as_bytes()]), [(name, "=".to_owned())]);
        }
        // A name that is not a token is not sent unchanged, and adds no attribute.
        for name in ["a; Secure", "a=b", "a\r\nb", "\u{e4}", ""] {
            let field = SetCookie::new(name, "v").value();
            assert!(field.ends_with("=v; HttpOnly; SameSite=Lax; Path=/"), "{field:?}");
            assert_eq!(field.matches(['=', ' ']).count(), 6, "{field:?}");
        }
    }

    #[test]
    fn attributes_are_written() {
        let cookie = SetCookie::new("a", "b").path("/x").domain("a.example").for_scripts();
        let cookie = cookie.same_site(SameSite::None).secure();
        assert_eq!(cookie.value(), "a=b; SameSite=None; Secure; Path=/x; Domain=a.example");
        let removal = SetCookie::removal("a").same_site(SameSite::Strict).value();
        assert_eq!(removal, "a=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
        assert_eq!(format!("{cookie:?}"), r#"SetCookie("a")"#);
    }
}
