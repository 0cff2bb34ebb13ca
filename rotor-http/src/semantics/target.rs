//! The request target in its four forms (RFC 9112 §3.2).

use std::fmt;

use super::authority::Authority;
use super::method::Method;

/// The form of a target: one of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `/path?query`: the usual one.
    Origin,
    /// `http://host/path?query`: sent to proxies; its authority replaces `Host`.
    Absolute,
    /// `host:port`: only for CONNECT.
    Authority,
    /// `*`: only for OPTIONS, about the server as a whole.
    Asterisk,
}

/// A checked request target. It is not percent-decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    text: &'a str,
    form: Form,
    /// Where the authority begins in `text`, and where the path begins. If there is none, this is
    /// the length of `text`.
    authority_at: u32,
    path_at: u32,
    /// Where the first `?` is in `text`. If there is none, this is the length of `text`.
    query_at: u32,
}

impl<'a> Target<'a> {
    /// Parses a target, and checks that its form matches the method (RFC 9112 §3.2). The head
    /// reader has already checked its bytes (no whitespace, no fragment, nothing but visible
    /// ASCII).
    pub(crate) fn parse(method: Method<'_>, text: &'a str) -> Option<Target<'a>> {
        let query_at = text.find('?').unwrap_or(text.len());
        let whole = |form| {
            Some(Target { text, form, authority_at: 0, path_at: 0, query_at: offset(query_at) })
        };
        if method == Method::Connect {
            // RFC 9110 §9.3.6: a tunnel has no default port.
            Authority::parse(text.as_bytes())?.port()?;
            return Some(Target { path_at: offset(text.len()), ..whole(Form::Authority)? });
        }
        if text.starts_with('/') {
            return whole(Form::Origin);
        }
        // RFC 9112 §3.2.4: this form is only for OPTIONS, about the server as a whole.
        if text == "*" && method == Method::Options {
            return whole(Form::Asterisk);
        }
        Target::parse_absolute(text, query_at)
    }

    /// Like `parse`, for the usual form only, if the position of the first `?` is known.
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
        // An HTTP server has no resources with other schemes, and where their authority ends is
        // unknown.
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        // A query may follow the authority directly (RFC 3986 §3.2). A fragment was refused before.
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

    /// Returns the whole target as it was sent.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the form of the target.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the path as it was sent: not decoded, with its dot segments. It is `/` for an
    /// absolute target without a path, `*` for the asterisk form, and empty for CONNECT.
    #[inline]
    pub fn path(&self) -> &'a str {
        let path = &self.text[self.path_at as usize..self.query_at as usize];
        // RFC 9110 §4.2.3: an empty path is equivalent to "/".
        if path.is_empty() && self.form == Form::Absolute { "/" } else { path }
    }

    /// Returns the query, which follows the first `?`, if there is one.
    pub fn query(&self) -> Option<&'a str> {
        self.text.get(self.query_at as usize + 1..)
    }

    /// Returns the authority, if the target has the absolute or the authority form.
    /// `RequestSemantics::authority` also uses `Host`.
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

/// Converts a position in a target. The limit on heads keeps it far below 2^32.
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
    fn a_form_that_does_not_match_the_method_is_rejected() {
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
