//! `Cors`: which pages of other origins may send requests and read the responses.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rotor_http::server::{Reply, Response};
use rotor_http::{MessageError, Method, Status};

use crate::origin::{OriginError, normalize_origin};

/// The CORS protocol: which pages of other origins may use a service (Fetch Standard §3.3).
///
/// Browsers enforce it to protect their users. It restricts no other clients. A request from an
/// origin that is not allowed gets the usual response, but the browser does not show it to the
/// page.
///
/// Call [`check`](Cors::check) before a request is handled. To put CORS in front of a `Router`, use
/// `Router::cors` (feature `router`); for async handlers there is a layer, `Cors::layer` (feature
/// `async`). By default, pages may send GET, HEAD, POST, PUT, PATCH and DELETE with any
/// `Content-Type`, without cookies.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::server::{Head, Reply, Response, Scope};
/// use rotor::http::Status;
/// use rotor_service::Cors;
///
/// fn hello(head: &Head<'_>, response: &mut Response<'_>, cors: &mut Scope<'_, Cors>) -> Reply {
///     let crossing = cors.check(head.method(), |name| head.field(name));
///     if crossing.is_preflight() {
///         return crossing.reply(response);
///     }
///     response.reply_with(Status::OK, &crossing.fields(), "text/plain", b"Hello!")
/// }
///
/// # let _ = hello;
/// let cors = Cors::of(["https://app.example"])?.credentials();
/// # Ok::<(), rotor_service::OriginError>(())
/// ```
#[derive(Clone)]
pub struct Cors(Arc<Policy>);

#[derive(Clone)]
struct Policy {
    /// `None`: any.
    origins: Option<Vec<String>>,
    methods: String,
    request_fields: String,
    exposed_fields: String,
    has_credentials: bool,
    max_age: Option<String>,
}

impl Cors {
    /// Allows pages of any origin. Use it for data that is public.
    pub fn any() -> Cors {
        Cors::with(None)
    }

    /// Allows pages of these origins, each written as browsers do: `https://app.example`, with the
    /// port if it is not the scheme's default, and nothing after it. Equivalent forms (a slash at
    /// the end, capital letters, the default port) are accepted.
    ///
    /// # Errors
    ///
    /// The caller's mistake: one of them is not what a browser sends, so it would allow no page.
    /// This applies to `*` (use [`any`](Cors::any)), to origins with a path or with a host that is
    /// not ASCII, and to `null`, which any page can make its browser send.
    pub fn of<O: Into<String>>(origins: impl IntoIterator<Item = O>) -> Result<Cors, OriginError> {
        let origins = origins.into_iter().map(|origin| normalize_origin(&origin.into()));
        Ok(Cors::with(Some(origins.collect::<Result<_, _>>()?)))
    }

    fn with(origins: Option<Vec<String>>) -> Cors {
        Cors(Arc::new(Policy {
            origins,
            methods: "GET, HEAD, POST, PUT, PATCH, DELETE".to_owned(),
            request_fields: "Content-Type".to_owned(),
            exposed_fields: String::new(),
            has_credentials: false,
            max_age: None,
        }))
    }

    fn modify(mut self, change: impl FnOnce(&mut Policy)) -> Cors {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Sets the methods that a page may use, in place of the default ones.
    pub fn methods(self, methods: &[Method<'_>]) -> Cors {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        self.modify(|policy| policy.methods = names.join(", "))
    }

    /// Sets the request fields that a page may set, in place of the default, `Content-Type`. Name
    /// that as well if pages send JSON: browsers let them set it without permission only for forms
    /// and plain text. A page that sends a token needs `Authorization`.
    pub fn request_fields(self, names: &[&str]) -> Cors {
        self.modify(|policy| policy.request_fields = names.join(", "))
    }

    /// Sets the response fields that a page may read, for example `Location`, beside those that
    /// every page may read.
    pub fn exposed_fields(self, names: &[&str]) -> Cors {
        self.modify(|policy| policy.exposed_fields = names.join(", "))
    }

    /// Allows pages to send requests with their user's cookies, and to read the responses. It has
    /// an effect only if the origins are [named](Cors::of), not with [`any`](Cors::any).
    pub fn credentials(self) -> Cors {
        self.modify(|policy| policy.has_credentials = policy.origins.is_some())
    }

    /// Sets for how long a browser may reuse the result of a preflight, in whole seconds. Default:
    /// not set, which browsers treat as 5 s. Browsers accept a few hours at most.
    pub fn max_age(self, time: Duration) -> Cors {
        self.modify(|policy| policy.max_age = Some(time.as_secs().to_string()))
    }

    /// Decides about a request. Pass its method, and its
    /// [`Head::field`](rotor_http::server::Head::field) as `field`.
    pub fn check<'r>(
        &self,
        method: Method<'_>,
        field: impl Fn(&str) -> Option<&'r [u8]>,
    ) -> CorsDecision {
        let policy = &*self.0;
        let origin = field("Origin");
        let is_preflight = is_preflight(method, &field);
        let mut crossing = CorsDecision { is_preflight, fields: Vec::new() };
        match (&policy.origins, origin) {
            (None, _) => crossing.add("Access-Control-Allow-Origin", "*"),
            (Some(origins), origin) => {
                // Sent without an `Origin` too: a cache must not use this response for another
                // origin.
                crossing.add("Vary", "Origin");
                let known = origins.iter().find(|known| Some(known.as_bytes()) == origin);
                let Some(known) = known else { return crossing };
                crossing.add("Access-Control-Allow-Origin", known);
            }
        }
        if policy.has_credentials {
            crossing.add("Access-Control-Allow-Credentials", "true");
        }
        if is_preflight {
            crossing.add("Access-Control-Allow-Methods", &policy.methods);
            crossing.add("Access-Control-Allow-Headers", &policy.request_fields);
            crossing.add("Access-Control-Max-Age", policy.max_age.as_deref().unwrap_or_default());
        } else {
            crossing.add("Access-Control-Expose-Headers", &policy.exposed_fields);
        }
        crossing
    }
}

/// Returns whether the request is a preflight: a browser's question before the request itself.
pub(crate) fn is_preflight<'r>(
    method: Method<'_>,
    field: impl Fn(&str) -> Option<&'r [u8]>,
) -> bool {
    matches!(method, Method::Options)
        && field("Origin").is_some()
        && field("Access-Control-Request-Method").is_some()
}

/// The decision of [`Cors::check`] about a request: whether it is a preflight, and the fields to
/// add to its response, whatever the response is.
#[doc(alias = "Crossing")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CorsDecision {
    is_preflight: bool,
    fields: Vec<(&'static str, String)>,
}

impl CorsDecision {
    fn add(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.fields.push((name, value.to_owned()));
        }
    }

    /// Returns whether the request is a preflight, which a browser sends before the request itself.
    /// Answer it with [`reply`](CorsDecision::reply), without calling a handler.
    pub fn is_preflight(&self) -> bool {
        self.is_preflight
    }

    /// Returns the fields to add to the response. If the response has a `Vary` of its own, send
    /// both.
    pub fn fields(&self) -> Vec<(&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
    }

    /// Adds the fields to whatever response the request gets, including an error page of the
    /// connection; see [`Response::add_always`].
    ///
    /// # Errors
    ///
    /// The caller's mistake: one of the names that were given to [`Cors`] has a control character.
    pub fn add_always(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        self.fields.iter().try_for_each(|(name, value)| response.add_always(name, value))
    }

    /// Writes the response to a preflight: 204.
    pub fn reply(&self, response: &mut Response<'_>) -> Reply {
        response.reply_with(Status::NO_CONTENT, &self.fields(), "", b"")
    }
}

impl fmt::Debug for Cors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cors").field("origins", &self.0.origins).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sent<'a> = &'a [(&'a str, &'a str)];

    /// The result of a check, as text.
    fn checked(cors: &Cors, method: Method<'_>, sent: Sent<'_>) -> (bool, String) {
        let field = |name: &str| {
            let of = |(own, _): &&(&str, &str)| own.eq_ignore_ascii_case(name);
            sent.iter().find(of).map(|(_, value)| value.as_bytes())
        };
        let crossing = cors.check(method, field);
        let short = |name: &str| name.replace("Access-Control-", "");
        let fields = crossing.fields.iter().map(|(name, value)| format!("{}={value}", short(name)));
        (crossing.is_preflight(), fields.collect::<Vec<_>>().join("; "))
    }

    const APP: (&str, &str) = ("Origin", "https://app.example");
    const ASKS: (&str, &str) = ("Access-Control-Request-Method", "PATCH");

    #[test]
    fn any_origin_is_allowed_without_credentials() {
        let cors = Cors::any().credentials().exposed_fields(&["Location"]);
        let plain = "Allow-Origin=*; Expose-Headers=Location";
        let asked = "Allow-Origin=*; Allow-Methods=GET, HEAD, POST, PUT, PATCH, DELETE; \
                     Allow-Headers=Content-Type";
        for (method, sent, expected) in [
            (Method::Get, &[][..], (false, plain)),
            (Method::Get, &[APP][..], (false, plain)),
            (Method::Get, &[APP, ASKS][..], (false, plain)),
            (Method::Options, &[APP, ASKS][..], (true, asked)),
            // Not a preflight: the handler answers.
            (Method::Options, &[APP][..], (false, plain)),
            (Method::Options, &[ASKS][..], (false, plain)),
        ] {
            let (is_preflight, fields) = checked(&cors, method, sent);
            assert_eq!((is_preflight, fields.as_str()), expected, "{method} {sent:?}");
        }
    }

    #[test]
    fn only_listed_origins_are_allowed() {
        let cors = Cors::of(["https://app.example/", "http://localhost:8000"]).expect("origins");
        let cors = cors.credentials().methods(&[Method::Get, Method::Patch]);
        let cors = cors.request_fields(&["X-A", "X-B"]).max_age(Duration::from_secs(600));
        let asked = "Vary=Origin; Allow-Origin=https://app.example; Allow-Credentials=true; \
                     Allow-Methods=GET, PATCH; Allow-Headers=X-A, X-B; Max-Age=600";
        assert_eq!(checked(&cors, Method::Options, &[APP, ASKS]), (true, asked.to_owned()));
        for (origin, may) in [
            ("https://app.example", true),
            ("http://localhost:8000", true),
            ("http://app.example", false),
            ("https://app.example.evil.example", false),
            ("https://evil.example/https://app.example", false),
            ("https://app.example:8443", false),
            ("HTTPS://APP.EXAMPLE", false),
            ("null", false),
            ("*", false),
            ("", false),
        ] {
            let (_, fields) = checked(&cors, Method::Get, &[("Origin", origin)]);
            let allowed = format!("Vary=Origin; Allow-Origin={origin}; Allow-Credentials=true");
            assert_eq!(fields, if may { &allowed } else { "Vary=Origin" }, "{origin}");
            let (is_preflight, fields) =
                checked(&cors, Method::Options, &[("Origin", origin), ASKS]);
            assert!(is_preflight && fields.contains("Allow-Methods") == may, "{origin}");
        }
        assert_eq!(checked(&cors, Method::Get, &[]), (false, "Vary=Origin".to_owned()));
    }
}
