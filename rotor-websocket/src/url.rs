//! `parse_url`: the URL of a WebSocket, as that of its handshake.

use rotor_http::client::{Url, UrlError};

/// Parses the URL of a WebSocket, `ws://…` or `wss://…`, into the URL of its handshake, which is a
/// request of HTTP (RFC 6455 §3): `ws` becomes `http`, and `wss` becomes `https`. URLs with these
/// schemes are accepted as well, as in browsers.
///
/// # Errors
///
/// It is not the URL of a WebSocket; see [`UrlError`].
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; pub use rotor_websocket as websocket; }
/// use rotor::websocket::parse_url;
///
/// let url = parse_url("wss://example.com/feed?id=7")?;
/// assert!(url.is_https());
/// assert_eq!((url.name(), url.port()), ("example.com", 443));
/// // `Dial::new(url.target(), url.authority(), ..)`
/// assert_eq!((url.target(), url.authority()), ("/feed?id=7", "example.com"));
/// # Ok::<(), rotor::http::client::UrlError>(())
/// ```
#[doc(alias = "ws://")]
#[doc(alias = "wss://")]
pub fn parse_url(text: &str) -> Result<Url, UrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    match scheme.to_ascii_lowercase().as_str() {
        "ws" => format!("http://{rest}").parse(),
        "wss" => format!("https://{rest}").parse(),
        _ => text.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_websockets_become_those_of_their_handshake() {
        for (text, expected) in [
            ("ws://example.com", Ok("http://example.com/")),
            ("WSS://Example.com:443/a?b#c", Ok("https://example.com/a?b")),
            ("ws://example.com:443/", Ok("http://example.com:443/")),
            ("wss://[::1]:8443/a", Ok("https://[::1]:8443/a")),
            ("http://example.com/a", Ok("http://example.com/a")),
            ("https://example.com/a", Ok("https://example.com/a")),
            ("ws:example.com", Err(UrlError::Scheme)),
            ("wsx://example.com", Err(UrlError::Scheme)),
            ("example.com", Err(UrlError::Scheme)),
            ("ws://me@example.com/", Err(UrlError::User)),
            ("ws:///a", Err(UrlError::Authority)),
            ("ws://example.com/a b", Err(UrlError::Target)),
        ] {
            let parsed = parse_url(text).map(|url| url.to_string());
            assert_eq!(parsed.as_deref().map_err(|error| *error), expected, "{text}");
        }
    }
}
