//! `Cors`: which pages of other origins may ask, and read the answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rotor_http::server::{Reply, Response};
use rotor_http::{MessageError, Method, Status};

use crate::origin::{OriginError, as_browsers_write_it};

/// The other origins that may ask a service: the CORS protocol (Fetch Standard §3.3).
///
/// Browsers follow it to protect their users; it keeps nobody else out. An origin that is not
/// allowed is answered like any other, but its browser does not show the answer to the page.
///
/// [Check](Cors::check) a request before it is handled. In front of a `Router` it is `Router::cors`,
/// with the feature `router`; the layer for async handlers is `Cors::layer`, with the feature
/// `async`. Default: pages may send GET, HEAD, POST, PUT, PATCH and
/// DELETE with a `Content-Type` of any kind, without cookies.
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
    /// Absent: any.
    origins: Option<Vec<String>>,
    methods: String,
    request_fields: String,
    exposed_fields: String,
    has_credentials: bool,
    max_age: Option<String>,
}

impl Cors {
    /// Allows pages of any origin: for what is public, whoever asks.
    pub fn any() -> Cors {
        Cors::with(None)
    }

    /// Allows pages of these origins, each as browsers write it: `https://app.example`, with the
    /// port if that is not the scheme's default, and nothing after it. What means the same (a slash
    /// at the end, capital letters, the default port) counts as that.
    ///
    /// # Errors
    ///
    /// The caller's fault: one of them is not what a browser sends, so no page would be allowed by
    /// it. That is `*`, for which there is [`any`](Cors::any), what has a path, a name beyond ASCII,
    /// and `null`, which every page can have sent.
    pub fn of<O: Into<String>>(origins: impl IntoIterator<Item = O>) -> Result<Cors, OriginError> {
        let origins = origins.into_iter().map(|origin| as_browsers_write_it(&origin.into()));
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

    fn change(mut self, change: impl FnOnce(&mut Policy)) -> Cors {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Sets which methods a page may use.
    pub fn methods(self, methods: &[Method<'_>]) -> Cors {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        self.change(|policy| policy.methods = names.join(", "))
    }

    /// Sets which fields of a request a page may set, beside those that any page may.
    pub fn request_fields(self, names: &[&str]) -> Cors {
        self.change(|policy| policy.request_fields = names.join(", "))
    }

    /// Sets which fields of an answer a page may read, beside those that any page may: for example
    /// `Location`.
    pub fn exposed_fields(self, names: &[&str]) -> Cors {
        self.change(|policy| policy.exposed_fields = names.join(", "))
    }

    /// Lets pages ask with the cookies of their user, and read the answers for that user. This is
    /// only for origins that are [named](Cors::of); with [any](Cors::any) it has no effect.
    pub fn credentials(self) -> Cors {
        self.change(|policy| policy.has_credentials = policy.origins.is_some())
    }

    /// Sets for how long a browser need not ask again whether it may, in whole seconds. Default:
    /// not set, which means 5 s; browsers accept some hours at most.
    pub fn max_age(self, time: Duration) -> Cors {
        self.change(|policy| policy.max_age = Some(time.as_secs().to_string()))
    }

    /// Decides about a request of this method. Pass its
    /// [`Head::field`](rotor_http::server::Head::field) as `field`.
    pub fn check<'r>(
        &self,
        method: Method<'_>,
        field: impl Fn(&str) -> Option<&'r [u8]>,
    ) -> Crossing {
        let policy = &*self.0;
        let origin = field("Origin");
        let is_preflight = is_preflight(method, &field);
        let mut crossing = Crossing { is_preflight, fields: Vec::new() };
        match (&policy.origins, origin) {
            (None, _) => crossing.add("Access-Control-Allow-Origin", "*"),
            (Some(origins), origin) => {
                // Said without an origin too: a cache is to keep none of these for another one.
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

/// Whether a browser asks before it sends the request itself.
pub(crate) fn is_preflight<'r>(
    method: Method<'_>,
    field: impl Fn(&str) -> Option<&'r [u8]>,
) -> bool {
    matches!(method, Method::Options)
        && field("Origin").is_some()
        && field("Access-Control-Request-Method").is_some()
}

/// The decision of [`Cors::check`] about a request: which fields go with its answer, whatever that
/// is, and whether it was only a preflight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crossing {
    is_preflight: bool,
    fields: Vec<(&'static str, String)>,
}

impl Crossing {
    fn add(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.fields.push((name, value.to_owned()));
        }
    }

    /// Returns whether the request is a preflight, which asks before the request itself. Answer it
    /// by [`reply`](Crossing::reply), without a handler.
    pub fn is_preflight(&self) -> bool {
        self.is_preflight
    }

    /// Returns the fields of the answer. If the answer has a `Vary` of its own, send both.
    pub fn fields(&self) -> Vec<(&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
    }

    /// Has the fields go with whatever answers the request, an error page of the connection
    /// included; see [`Response::add_always`].
    ///
    /// # Errors
    ///
    /// The caller's fault: one of the names that were given to [`Cors`] has a control character.
    pub fn add_always(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        self.fields.iter().try_for_each(|(name, value)| response.add_always(name, value))
    }

    /// Answers a preflight: 204.
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

    /// What is answered, as text.
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
    fn any_origin_may_ask_without_cookies() {
        let cors = Cors::any().credentials().exposed_fields(&["Location"]);
        let plain = "Allow-Origin=*; Expose-Headers=Location";
        let asked = "Allow-Origin=*; Allow-Methods=GET, HEAD, POST, PUT, PATCH, DELETE; \
                     Allow-Headers=Content-Type";
        for (method, sent, expected) in [
            (Method::Get, &[][..], (false, plain)),
            (Method::Get, &[APP][..], (false, plain)),
            (Method::Get, &[APP, ASKS][..], (false, plain)),
            (Method::Options, &[APP, ASKS][..], (true, asked)),
            // No preflight: for the handler.
            (Method::Options, &[APP][..], (false, plain)),
            (Method::Options, &[ASKS][..], (false, plain)),
        ] {
            let (is_preflight, fields) = checked(&cors, method, sent);
            assert_eq!((is_preflight, fields.as_str()), expected, "{method} {sent:?}");
        }
    }

    #[test]
    fn an_origin_that_is_named_may_and_no_other() {
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
