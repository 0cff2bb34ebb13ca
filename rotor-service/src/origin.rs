//! `OriginError`, and the form in which browsers write an origin.

use std::fmt;

use rotor_http::Authority;

/// An invalid origin: the caller's mistake. See [`Cors::of`](crate::Cors::of).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginError {
    origin: String,
    why: &'static str,
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no origin: {}", self.origin, self.why)
    }
}

impl std::error::Error for OriginError {}

/// The ports that browsers omit in origins of these schemes.
const DEFAULT_PORTS: [(&str, u16); 4] = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];

/// Returns the origin as browsers write it in `Origin` (RFC 6454 §6.2): scheme and host in lower
/// case, the port unless it is the scheme's default, and nothing after it.
pub(crate) fn normalize_origin(text: &str) -> Result<String, OriginError> {
    let refuse = |why| OriginError { origin: text.to_owned(), why };
    if text == "*" {
        return Err(refuse("for all of them there is `Cors::any`"));
    }
    // The origin of a sandboxed frame, which any page can create.
    if text == "null" {
        return Err(refuse("every page can say it of itself"));
    }
    let (scheme, rest) = text
        .split_once("://")
        .filter(|(scheme, _)| is_scheme(scheme))
        .ok_or_else(|| refuse("it should be like https://app.example"))?;
    // A slash alone, as the address bar shows it for a whole site.
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#', '@']) {
        return Err(refuse("it has no more than a scheme, a host and a port"));
    }
    // A host with an escape is not ASCII, and browsers write it in another way.
    let authority = Authority::parse(rest.as_bytes()).filter(|_| !rest.contains('%'));
    let authority = authority.ok_or_else(|| {
        refuse("its host is none, or not in ASCII (`xn--..`), or its port is not from 1 to 65535")
    })?;
    let (scheme, host) = (scheme.to_ascii_lowercase(), authority.host().to_ascii_lowercase());
    let is_default = |port: u16| DEFAULT_PORTS.contains(&(scheme.as_str(), port));
    Ok(match authority.port().filter(|&port| !is_default(port)) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

/// RFC 3986 §3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_origins_are_normalized() {
        for (text, origin) in [
            ("https://app.example", "https://app.example"),
            ("https://app.example/", "https://app.example"),
            ("HTTPS://App.Example", "https://app.example"),
            ("https://app.example:443/", "https://app.example"),
            ("http://app.example:80", "http://app.example"),
            ("http://app.example:443", "http://app.example:443"),
            ("https://app.example:08443", "https://app.example:8443"),
            ("https://app.example:", "https://app.example"),
            ("http://localhost:8000", "http://localhost:8000"),
            ("http://[::1]:8000/", "http://[::1]:8000"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("https://xn--caf-dma.example", "https://xn--caf-dma.example"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("capacitor://localhost", "capacitor://localhost"),
        ] {
            assert_eq!(normalize_origin(text).as_deref(), Ok(origin), "{text}");
        }
    }

    #[test]
    fn invalid_origins_are_refused_with_a_reason() {
        for (text, why) in [
            ("*", "Cors::any"),
            ("null", "every page"),
            ("", "like https://app.example"),
            ("app.example", "like https://app.example"),
            ("//app.example", "like https://app.example"),
            ("://app.example", "like https://app.example"),
            ("1a://app.example", "like https://app.example"),
            (" https://app.example", "like https://app.example"),
            ("https:app.example", "like https://app.example"),
            ("https://app.example/a", "no more than"),
            ("https://app.example//", "no more than"),
            ("https://app.example?a", "no more than"),
            ("https://app.example#a", "no more than"),
            ("https://user@app.example", "no more than"),
            ("https://", "its host"),
            ("https:///", "its host"),
            ("https://app.example ", "its host"),
            ("https://a.example, https://b.example", "no more than"),
            ("https://a.example,b.example", "its host"),
            ("https://café.example", "its host"),
            ("https://caf%C3%A9.example", "its host"),
            ("https://app.example:0", "its host"),
            ("https://app.example:65536", "its host"),
            ("https://app.example\r\nX: y", "its host"),
        ] {
            let error = normalize_origin(text).expect_err(text).to_string();
            assert!(error.contains(why) && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
