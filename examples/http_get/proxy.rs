//! Which proxy the environment names for a URL, by the rules of curl.

use std::net::IpAddr;

use rotor::BoxError;
use rotor::http::client::Url;
use rotor::stream::Host;

/// A proxy to which connections are made without TLS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: Host,
    /// The value of `Proxy-Authorization`, if the proxy's URL has a user name.
    pub(crate) authorization: Option<String>,
}

impl Proxy {
    /// Returns the proxy for a URL, or `None` if its server is to be asked directly. `variable`
    /// returns the value of an environment variable.
    pub(crate) fn for_url(
        url: &Url,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Proxy>, BoxError> {
        // Not `HTTP_PROXY`: a web server sets it for a CGI program to what the client has sent as
        // the field `Proxy` (CVE-2016-5385).
        let names: &[&str] =
            if url.is_https() { &["https_proxy", "HTTPS_PROXY"] } else { &["http_proxy"] };
        let Some((name, proxy)) =
            names.iter().find_map(|&name| variable(name).map(|value| (name, value)))
        else {
            return Ok(None);
        };
        let exempt = variable("no_proxy").or_else(|| variable("NO_PROXY")).unwrap_or_default();
        if proxy.is_empty() || is_exempt(url, &exempt) {
            return Ok(None);
        }
        // The value is not shown, because it may contain a password.
        Proxy::parse(&proxy).map(Some).map_err(|error| format!("{name}: {error}").into())
    }

    /// Parses `[http://][USER[:PASSWORD]@]HOST[:PORT]`.
    fn parse(text: &str) -> Result<Proxy, BoxError> {
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err("only proxies that begin with http:// are supported".into()),
            None => text,
        };
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let url: Url = format!("http://{host}").parse()?;
        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let pair = [&percent_decoded(name)[..], b":", &percent_decoded(password)].concat();
            format!("Basic {}", base64(&pair))
        });
        Ok(Proxy { host: url.host(), authorization })
    }
}

/// Returns whether a server is in a list of those that are asked directly: names, which include
/// everything below them, addresses and networks (`10.0.0.0/8`), separated by commas or spaces; or
/// `*` for all servers. A name or address may have a port.
fn is_exempt(url: &Url, list: &str) -> bool {
    let host = url.name().trim_end_matches('.');
    list.split([',', ' ']).filter(|entry| !entry.is_empty()).any(|entry| {
        if let (Ok(address), Some((network, bits))) = (host.parse(), entry.split_once('/')) {
            return is_in_network(address, network, bits);
        }
        if let Ok(exempt) = bare(entry).parse::<IpAddr>() {
            return host.parse() == Ok(exempt);
        }
        let (entry, port) = match entry.rsplit_once(':') {
            Some((entry, port)) => (entry, port.parse::<u16>().ok()),
            None => (entry, Some(url.port())),
        };
        let entry = bare(entry).trim_start_matches('.').trim_end_matches('.').to_ascii_lowercase();
        let below = host.strip_suffix(&entry);
        let is_host = below.is_some_and(|below| below.is_empty() || below.ends_with('.'));
        entry == "*" || port == Some(url.port()) && !entry.is_empty() && is_host
    })
}

/// Returns an address without brackets.
fn bare(text: &str) -> &str {
    text.trim_start_matches('[').trim_end_matches(']')
}

fn is_in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (bare(network).parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let differing = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= bits
}

/// Decodes the percent-encoded bytes of a user name or password. A `%` without two hexadecimal
/// digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        let (byte, after) = match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, &after[2..]),
            _ => (*byte, after),
        };
        decoded.push(byte);
        rest = after;
    }
    decoded
}

/// Encodes bytes in base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for at in 0..4 {
            let digit = (bits >> (18 - 6 * at)) as usize & 63;
            encoded.push(if at <= chunk.len() { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    encoded
}
