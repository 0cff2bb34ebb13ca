//! `Access`: who may look at the page, and who may change something.
//!
//! Every page that is open in a browser can reach a server on the loopback interface: by a form, or
//! by a name that its owner redirects to 127.0.0.1 after the page has been loaded (DNS rebinding).
//! So the host must be one that no stranger can own, and a change needs a field that a form cannot
//! send, and that a script of another origin must not send.

use std::net::IpAddr;

use rotor_http::server::Head;

/// The rules of access.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// The credentials that `Authorization` must contain, if a token is required.
    credentials: Option<String>,
    pub(crate) allows_changes: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The host in the request is not a name of the loopback interface.
    Host,
    /// The token is missing or wrong.
    Token,
    /// A change without the required field, or from a page of another origin.
    Foreign,
    /// Changes are not allowed.
    ReadOnly,
}

/// The field that a change requires.
pub(crate) const CHANGE_FIELD: &str = "X-Rotor-Inspect";

impl Access {
    /// Requires a token: the password of the user `rotor` (RFC 7617).
    pub(crate) fn set_token(&mut self, token: &str) {
        self.credentials = Some(base64(format!("rotor:{token}").as_bytes()));
    }

    /// Checks whether a request is allowed.
    pub(crate) fn check(&self, head: &Head<'_>, changes: bool) -> Result<(), Refusal> {
        self.check_fields(head.authority(), |name: &str| head.field(name), changes)
    }

    /// Checks that the request does not come from a page of another origin, by what the browser
    /// says. Such a page could not read the response, but its walks would make others wait, since
    /// there is one walk at a time.
    pub(crate) fn check_origin(head: &Head<'_>) -> Result<(), Refusal> {
        check_fetch_site(head.field("Sec-Fetch-Site"))
    }

    fn check_fields<'a>(
        &self,
        host: Option<&str>,
        field: impl Fn(&str) -> Option<&'a [u8]>,
        changes: bool,
    ) -> Result<(), Refusal> {
        match &self.credentials {
            // With a token any host is allowed, since pages of other origins do not know the token.
            Some(wanted) => {
                let given = field("Authorization").and_then(basic_credentials);
                if !given.is_some_and(|given| is_equal_in_constant_time(given, wanted.as_bytes())) {
                    return Err(Refusal::Token);
                }
            }
            None if !host.is_some_and(is_loopback) => return Err(Refusal::Host),
            None => {}
        }
        if !changes {
            return Ok(());
        }
        // `https` if there is TLS in front.
        let origin = field("Origin").map(|origin| {
            let name = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
            name.unwrap_or(origin)
        });
        let is_foreign = origin.is_some_and(|origin| Some(origin) != host.map(str::as_bytes));
        if is_foreign || field(CHANGE_FIELD).is_none() {
            return Err(Refusal::Foreign);
        }
        if self.allows_changes { Ok(()) } else { Err(Refusal::ReadOnly) }
    }
}

/// Returns the credentials of the scheme `Basic`, whose case does not matter (RFC 9110 §11.1).
fn basic_credentials(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, credentials) = authorization.split_at_checked(b"Basic ".len())?;
    scheme.eq_ignore_ascii_case(b"Basic ").then_some(credentials.trim_ascii_start())
}

/// Checks `Sec-Fetch-Site` (Fetch Metadata §2.3). `none` means that the user entered the address.
/// Programs other than browsers do not send the field.
fn check_fetch_site(site: Option<&[u8]>) -> Result<(), Refusal> {
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Refusal::Foreign),
    }
}

/// Returns whether the host is the loopback interface, by its name or one of its addresses, with or
/// without a port. A stranger can own a name that resolves to an address, but not the address.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse().map(IpAddr::V6),
        None => name.parse().map(IpAddr::V4),
    };
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that does not depend on where the first difference is.
fn is_equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// Encodes bytes in base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for position in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= group.len() { digit as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        access: &Access,
        host: &str,
        fields: &[(&str, &'static [u8])],
        changes: bool,
    ) -> Result<(), Refusal> {
        let field =
            |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        access.check_fields(Some(host), field, changes)
    }

    #[test]
    fn only_loopback_hosts_are_allowed_without_a_token() {
        let access = Access::default();
        for (host, expected) in [
            ("localhost", Ok(())),
            ("localhost:3621", Ok(())),
            ("127.0.0.1:3621", Ok(())),
            ("[::1]:3621", Ok(())),
            ("[::1]", Ok(())),
            // Other addresses at which the page may be served, and other spellings that people use.
            ("127.0.0.2:3621", Ok(())),
            ("127.255.255.254", Ok(())),
            ("[0:0:0:0:0:0:0:1]:3621", Ok(())),
            ("LocalHost:3621", Ok(())),
            ("128.0.0.1:3621", Err(Refusal::Host)),
            ("[::2]:3621", Err(Refusal::Host)),
            ("[127.0.0.1]:3621", Err(Refusal::Host)),
            ("127.1:3621", Err(Refusal::Host)),
            ("::1", Err(Refusal::Host)),
            ("example.com", Err(Refusal::Host)),
            ("127.0.0.1.example.com", Err(Refusal::Host)),
            ("localhost.example.com:3621", Err(Refusal::Host)),
            ("localhost:evil", Err(Refusal::Host)),
            ("", Err(Refusal::Host)),
        ] {
            assert_eq!(check(&access, host, &[], false), expected, "{host}");
        }
        assert_eq!(access.check_fields(None, |_| None, false), Err(Refusal::Host));
    }

    #[test]
    fn a_change_needs_the_field_the_origin_and_the_permission() {
        let may = Access { allows_changes: true, ..Access::default() };
        let field: (&str, &[u8]) = (CHANGE_FIELD, b"1");
        let host = "localhost:1";
        assert_eq!(check(&may, host, &[field], true), Ok(()));
        assert_eq!(check(&may, host, &[field, ("Origin", b"http://localhost:1")], true), Ok(()));
        let secure: (&str, &[u8]) = ("Origin", b"https://localhost:1");
        assert_eq!(check(&may, host, &[field, secure], true), Ok(()), "TLS in front");
        let foreign = Err(Refusal::Foreign);
        assert_eq!(check(&may, host, &[], true), foreign);
        assert_eq!(check(&may, host, &[field, ("Origin", b"http://localhost:2")], true), foreign);
        assert_eq!(check(&may, host, &[field, ("Origin", b"null")], true), foreign);
        assert_eq!(check(&Access::default(), host, &[field], true), Err(Refusal::ReadOnly));
    }

    #[test]
    fn only_the_right_token_is_accepted_and_it_allows_any_host() {
        let mut access = Access::default();
        access.set_token("secret");
        for right in [&b"Basic cm90b3I6c2VjcmV0"[..], b"basic  cm90b3I6c2VjcmV0"] {
            let given: (&str, &[u8]) = ("Authorization", right);
            assert_eq!(check(&access, "example.com", &[given], false), Ok(()));
        }
        let wrong: [&[u8]; 6] = [
            b"",
            b"Basic",
            b"Basic cm90b3I6c2VjcmV",
            b"Basic cm90b3I6c2VjcmVX",
            b"Bearer cm90b3I6c2VjcmV0",
            b"cm90b3I6c2VjcmV0",
        ];
        for wrong in wrong {
            let fields: [(&str, &'static [u8]); 1] = [("Authorization", wrong)];
            assert_eq!(check(&access, "localhost", &fields, false), Err(Refusal::Token));
        }
        assert_eq!(check(&access, "localhost", &[], false), Err(Refusal::Token));
    }

    #[test]
    fn cross_site_requests_of_a_browser_are_refused() {
        for site in [None, Some(&b"same-origin"[..]), Some(b"none")] {
            assert_eq!(check_fetch_site(site), Ok(()));
        }
        for site in [&b"cross-site"[..], b"same-site", b"", b"new-word"] {
            assert_eq!(check_fetch_site(Some(site)), Err(Refusal::Foreign));
        }
    }

    #[test]
    fn base64_matches_the_test_vectors_of_the_rfc() {
        for (text, code) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), code);
        }
    }
}
