//! `Origins`: the pages from which a server accepts connections.

use std::fmt;
use std::sync::Arc;

/// The pages from which a server accepts connections.
///
/// A browser lets any page open a WebSocket to any host, with the cookies of that host, and names
/// the page in `Origin`. Checking this field is the only protection against other people's pages
/// (RFC 6455 §10.2). Clients that are not browsers send no `Origin`, or any value they like.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Origins {
    /// Pages of the host to which the request is sent (with `http` or `https`), and clients that
    /// send no origin. A proxy in front of the server must leave `Host` unchanged.
    #[default]
    SameHost,
    /// Any page. Use this for services that do not rely on cookies or the like.
    Any,
    /// These origins, and clients that send none. Write them as browsers do (RFC 6454 §6.1):
    /// `https://example.com` or `https://example.com:8443`, with the port only if it is not the
    /// scheme's default, and without a slash at the end. Case does not matter.
    Listed(Vec<String>),
    /// A function decides. It gets the origin, if one was sent.
    Hook(Arc<OriginHook>),
}

/// A function that returns whether to accept a connection from an origin.
pub type OriginHook = dyn Fn(Option<&[u8]>) -> bool + Send + Sync;

impl Origins {
    /// Lets `hook` decide. It gets the origin, or `None` if the client sent none.
    pub fn hook(hook: impl Fn(Option<&[u8]>) -> bool + Send + Sync + 'static) -> Origins {
        Origins::Hook(Arc::new(hook))
    }

    /// Returns whether a connection from this origin to this host is accepted.
    pub(crate) fn allows(&self, origin: Option<&[u8]>, authority: Option<&str>) -> bool {
        match (self, origin) {
            (Origins::Any, _) => true,
            (Origins::Hook(hook), origin) => hook(origin),
            (_, None) => true,
            (Origins::SameHost, Some(origin)) => {
                matches_host(origin, authority.unwrap_or_default())
            }
            (Origins::Listed(listed), Some(origin)) => {
                listed.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(origin))
            }
        }
    }
}

/// Returns whether an origin has this host and port. `null`, the origin of sandboxed pages, has
/// none.
fn matches_host(origin: &[u8], authority: &str) -> bool {
    let Some((scheme, host)) =
        std::str::from_utf8(origin).ok().and_then(|origin| origin.split_once("://"))
    else {
        return false;
    };
    // An origin omits its scheme's default port (RFC 6454 §6.1), and a `Host` may do so.
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let authority = authority.strip_suffix(port).unwrap_or(authority);
    host.strip_suffix(port).unwrap_or(host).eq_ignore_ascii_case(authority)
}

impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origins::SameHost => f.write_str("SameHost"),
            Origins::Any => f.write_str("Any"),
            Origins::Listed(listed) => f.debug_tuple("Listed").field(listed).finish(),
            Origins::Hook(_) => f.write_str("Hook"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_hosts_are_refused() {
        let listed = Origins::Listed(vec!["https://a.example".to_string()]);
        for (origins, origin, authority, allowed) in [
            (Origins::SameHost, None, "a.example", true),
            (Origins::SameHost, Some("https://a.example"), "a.example", true),
            (Origins::SameHost, Some("https://A.example"), "a.example:443", true),
            (Origins::SameHost, Some("http://a.example"), "a.example:80", true),
            (Origins::SameHost, Some("http://a.example:8080"), "a.example:8080", true),
            (Origins::SameHost, Some("http://a.example:8080"), "a.example", false),
            (Origins::SameHost, Some("https://b.example"), "a.example", false),
            (Origins::SameHost, Some("https://a.example.b.example"), "a.example", false),
            (Origins::SameHost, Some("null"), "a.example", false),
            (Origins::SameHost, Some("null"), "null", false),
            (Origins::SameHost, Some("file://a.example"), "a.example", false),
            (Origins::Any, Some("https://b.example"), "a.example", true),
            (listed.clone(), Some("https://a.example"), "b.example", true),
            (listed.clone(), Some("http://a.example"), "a.example", false),
            (listed, None, "a.example", true),
            (Origins::hook(|origin| origin.is_some()), None, "a.example", false),
        ] {
            let answer = origins.allows(origin.map(str::as_bytes), Some(authority));
            assert_eq!(answer, allowed, "{origins:?} {origin:?} {authority}");
        }
    }
}
