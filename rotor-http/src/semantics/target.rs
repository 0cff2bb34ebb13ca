//! The request target in its four forms (RFC 9112 §3.2).

use std::fmt;

use super::authority::Authority;
use super::method::Method;

/// Which of the four forms a target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `/path?query`: the usual one.
    Origin,
    /// `http://host/path?query`: sent to proxies; its authority replaces `Host`.
    Absolute,
    /// `host:port`: CONNECT and nothing else.
    Authority,
    /// `*`: OPTIONS for the server as a whole, and nothing else.
    Asterisk,
}

/// A checked request target. It is never percent-decoded here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    text: &'a str,
    form: Form,
    /// Where the authority begins in `text`, and where the path does; its length if there is none.
    authority_at: u32,
    path_at: u32,
    /// Where the first `?` stands in `text`; its length if there is none.
    query_at: u32,
}

impl<'a> Target<'a> {
    /// Checks that the target has a form that goes with the method (RFC 9112 §3.2). The bytes
    /// themselves (no whitespace, no fragment, nothing but visible ASCII) have been checked by the
    /// head reader.
    pub(crate) fn parse(method: Method<'_>, text: &'a str) -> Option<Target<'a>> {
        let query_at = text.find('?').unwrap_or(text.len());
        let whole = |form| {
            Some(Target { text, form, authority_at: 0, path_at: 0, query_at: offset(query_at) })
        };
        if method == Method::Connect {
            // RFC 9110 §9.3.6: there is no default port for a tunnel.
            Authority::parse(text.as_bytes())?.port()?;
            return Some(Target { path_at: offset(text.len()), ..whole(Form::Authority)? });
        }
        if text.starts_with('/') {
            return whole(Form::Origin);
        }
        // RFC 9112 §3.2.4: this form is for OPTIONS only, of the server as a whole.
        if text == "*" && method == Method::Options {
            return whole(Form::Asterisk);
        }
        Target::parse_absolute(text, query_at)
    }

    /// As `parse`, where it is known where the first `?` stands, and for the usual form only.
    #[inline(always)]
    pub(crate) fn from_origin_form(
        method: Method<'_>,
        text: &'a str,
        query_at: usize,
    ) -> Option<Target<'a>> {
        let is_origin = text.as_bytes().first() == Some(&b'/') && method != Method::Connect;
        is_origin.then(|| Target {
            text,
            form: Form::Origin,
            authority_at: 0,
            path_at: 0,
            query_at: offset(query_at),
        })
    }

    fn parse_absolute(text: &'a str, query_at: usize) -> Option<Target<'a>> {
        let (scheme, rest) = text.split_once("://")?;
        // Of other schemes a server of HTTP has nothing, and where their authority ends is not
        // known.
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        // A query may follow the authority at once (RFC 3986 §3.2); a fragment cannot come so
        // far.
        let len = rest.find(['/', '?']).unwrap_or(rest.len());
        Authority::parse(&rest.as_bytes()[..len])?;
        let authority_at = text.len() - rest.len();
        let (authority_at, path_at) = (offset(authority_at), offset(authority_at + len));
        Some(Target {
            text,
            form: Form::Absolute,
            authority_at,
            path_at,
            query_at: offset(query_at),
        })
    }

    /// Returns the whole target as it stands on the wire.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns which form it has.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the path, as it was sent: not decoded, dot segments in place. `/` for an absolute
    /// target without one, `*` for the asterisk form, empty for CONNECT.
    #[inline]
    pub fn path(&self) -> &'a str {
        let path = &self.text[self.path_at as usize..self.query_at as usize];
        // RFC 9110 §4.2.3: an empty path is equivalent to "/".
        if path.is_empty() && self.form == Form::Absolute { "/" } else { path }
    }

    /// Returns what follows the first `?`, if there is one.
    pub fn query(&self) -> Option<&'a str> {
        self.text.get(self.query_at as usize + 1..)
    }

    /// Returns the authority of the absolute and the authority form. `RequestSemantics::authority`
    /// also knows `Host`.
    #[inline]
    pub fn authority(&self) -> Option<Authority<'a>> {
        match self.form {
            Form::Origin | Form::Asterisk => None,
            Form::Absolute | Form::Authority => Authority::parse(
                &self.text.as_bytes()[self.authority_at as usize..self.path_at as usize],
            ),
        }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Narrows a position in a target, which the limit on heads keeps far below 2^32.
fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_gives_path_and_query() {
        for (method, text, form, path, query) in [
            (Method::Get, "/", Form::Origin, "/", None),
            (Method::Get, "/a/b?c=d?e", Form::Origin, "/a/b", Some("c=d?e")),
            (Method::Get, "//a", Form::Origin, "//a", None),
            (Method::Get, "/%0d%0a%00", Form::Origin, "/%0d%0a%00", None),
            (Method::Get, "http://a/b?c", Form::Absolute, "/b", Some("c")),
            (Method::Get, "HTTPS://a:443", Form::Absolute, "/", None),
            (Method::Get, "http://a?c", Form::Absolute, "/", Some("c")),
            (Method::Connect, "a:443", Form::Authority, "", None),
            (Method::Options, "*", Form::Asterisk, "*", None),
        ] {
            let target = Target::parse(method, text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (target.form(), target.path(), target.query()),
                (form, path, query),
                "{text}"
            );
            assert_eq!(target.as_str(), text);
            let has_authority = matches!(form, Form::Absolute | Form::Authority);
            assert_eq!(
                target.authority().map(|authority| authority.host()),
                has_authority.then_some("a")
            );
        }
    }

    #[test]
    fn a_form_that_does_not_go_with_the_method_is_refused() {
        for (method, text) in [
            (Method::Get, "*"),
            (Method::Options, "*/x"),
            (Method::Options, "**"),
            (Method::Get, "a:443"),
            (Method::Get, "index.html"),
            (Method::Get, "http:///x"),
            (Method::Get, "http://u@a/"),
            (Method::Get, "http://a:0/"),
            (Method::Get, "http://a:65536/"),
            (Method::Get, "ftp://a/"),
            (Method::Get, "http:/a"),
            (Method::Get, "?a"),
            (Method::Connect, "/"),
            (Method::Connect, "a"),
            (Method::Connect, "a:"),
            (Method::Connect, "http://a:80/"),
            (Method::Connect, "u@a:80"),
            (Method::Connect, "*"),
        ] {
            assert_eq!(Target::parse(method, text), None, "{method} {text}");
        }
    }
}
