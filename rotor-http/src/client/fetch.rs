//! `Fetch`: a request and a response that are held in memory. The response's body may also go to a
//! file.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::Scope;

use super::handler::{Client, Next};
use super::head::Head;
use super::request::Request;
use super::url::{Url, UrlError};
use crate::no_upgrade::NoUpgrade;
use crate::recv_mode::RecvMode;
use crate::semantics::error::MessageError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::trace_context::TraceContext;

/// A handler for requests and responses that fit into memory. It writes the request that it was
/// given and finishes with a [`Fetched`]. The function `stored` has the response's body stored
/// instead, so that it may be longer.
///
/// The target of a request is a path and a query, not a URL. What precedes them in a URL is the
/// origin that is passed to the pool, and the [`host`](Fetch::host). [`Url`] splits a URL.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::client::Fetch;
///
/// let fetch: Fetch<()> =
///     Fetch::post("/notes", "a note").host("example.com").header("Content-Type", "text/plain");
/// ```
pub struct Fetch<C> {
    method: String,
    target: String,
    fields: Vec<NamedValue>,
    body: Option<Vec<u8>>,
    /// How the handler receives the response's body.
    mode: RecvMode,
    /// Status and fields of the response, once they have arrived.
    head: Option<(Status, Vec<NamedValue>)>,
    context: PhantomData<fn(C)>,
}

/// The name and the value of a field.
type NamedValue = (String, Vec<u8>);

/// A complete response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fetched {
    /// The status.
    pub status: Status,
    /// The fields, in the order in which they arrived.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body; empty if it was stored.
    pub body: Vec<u8>,
    /// The stored body, if the request asked for one ([`Fetch::stored`]). With the feature `body`.
    #[cfg(feature = "body")]
    pub stored: Option<rotor_body::Body>,
}

impl<C> Fetch<C> {
    /// Makes a request with this method and target, which is a path and a query for most methods.
    /// If either is malformed, the request fails with
    /// [`ClientError::Request`](super::ClientError::Request).
    pub fn new(method: impl Into<String>, target: impl Into<String>) -> Fetch<C> {
        Fetch {
            method: method.into(),
            target: target.into(),
            fields: Vec::new(),
            body: None,
            mode: RecvMode::Buffered(usize::MAX),
            head: None,
            context: PhantomData,
        }
    }

    /// Makes a GET request.
    pub fn get(target: impl Into<String>) -> Fetch<C> {
        Fetch::new("GET", target)
    }

    /// Makes a POST request with a body.
    pub fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Fetch<C> {
        Fetch::new("POST", target).body(body)
    }

    /// Sets the field `Host`: the host, with its port unless it is 80, or 443 with TLS. Each
    /// request needs this field, and the pool does not add it: without it, the request fails with
    /// [`ClientError::Request`](super::ClientError::Request).
    #[must_use]
    pub fn host(self, host: &str) -> Fetch<C> {
        self.header("Host", host)
    }

    /// Adds a field.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Fetch<C> {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Adds the fields that say which trace the request belongs to.
    #[must_use]
    #[doc(alias = "traceparent")]
    pub fn trace(self, context: &TraceContext) -> Fetch<C> {
        let fetch = self.header("traceparent", context.traceparent());
        match context.tracestate() {
            "" => fetch,
            state => fetch.header("tracestate", state),
        }
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Fetch<C> {
        self.body = Some(body.into());
        self
    }

    /// Sets how many bytes the body of the response may have; if it is longer, the request fails.
    /// Default: [`buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max), which is
    /// always the upper limit.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: usize) -> Fetch<C> {
        self.mode = RecvMode::Buffered(bytes);
        self
    }

    /// Has the body of the response stored as one value of at most `max` bytes, whatever the
    /// status. The body is in memory up to `ram_max` bytes, and beyond that in a file of the
    /// [spool](super::ClientConfig::spool); see [`RecvMode::Stored`]. It is returned in
    /// [`Fetched::stored`].
    ///
    /// This setting and [`body_bytes_max`](Fetch::body_bytes_max) replace each other: the last call
    /// counts. With the feature `body`.
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::client::Fetch;
    ///
    /// let fetch: Fetch<()> = Fetch::get("/archive.tar").host("example.com").stored(64 << 10, 1 << 30);
    /// ```
    ///
    /// To keep the body under a name, call [`Body::store_in`](rotor_body::Body::store_in) in a job.
    #[cfg(feature = "body")]
    #[doc(alias = "download")]
    #[must_use]
    pub fn stored(mut self, ram_max: usize, max: u64) -> Fetch<C> {
        self.mode = RecvMode::Stored { ram_max, max };
        self
    }

    /// Returns the response without its body.
    fn into_fetched(self) -> Fetched {
        // The head always precedes the body.
        let (status, fields) = self.head.unwrap_or((Status::OK, Vec::new()));
        Fetched {
            status,
            fields,
            body: Vec::new(),
            #[cfg(feature = "body")]
            stored: None,
        }
    }

    fn write(&self, request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::new(&self.method).ok_or(MessageError::StartLine)?, &self.target)?;
        for (name, value) in &self.fields {
            request.add_header(name, value)?;
        }
        if let Some(body) = &self.body {
            request.add_length(body.len() as u64)?;
        }
        request.done_headers()?;
        request.write_body(self.body.as_deref().unwrap_or_default())?;
        request.done()
    }
}

impl Fetched {
    /// Returns the value of the first field with this name; the case is ignored.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| &value[..])
    }

    /// Returns where the response redirects a request for `asked`: the URL in `Location` of a 301,
    /// 302, 303, 307 or 308 (RFC 9110 §15.4). Returns `None` for all other statuses, and without
    /// that field.
    ///
    /// Redirects are not followed automatically. If you follow them:
    ///
    /// * Limit how often, because two servers may redirect to each other forever.
    /// * Use GET, without a body and its fields, after a 303 (HEAD stays HEAD), and after a 301 or 302
    ///   in response to a POST. Otherwise send the same method and body again.
    /// * Leave out `Authorization` and cookies unless the next server may have them. It is another
    ///   server if the [authority](Url::authority) differs, and also if [`is_https`](Url::is_https)
    ///   does: an authority does not distinguish `http://a/`, which everybody can read, from
    ///   `https://a/`.
    /// * In a server that takes URLs from its clients, check each redirect like the first URL.
    ///
    /// # Errors
    ///
    /// The server's fault: the field is not a valid reference, or it leads to something that
    /// [`Url`] does not support.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rotor_http as http;
    /// use http::client::{Fetched, Url, UrlError};
    ///
    /// /// Returns what to request next, if anything.
    /// fn next(asked: &Url, fetched: &Fetched, left: u8) -> Result<Option<Url>, UrlError> {
    ///     fetched.redirect(asked).filter(|_| left > 0).transpose()
    /// }
    /// ```
    #[doc(alias = "Location")]
    pub fn redirect(&self, asked: &Url) -> Option<Result<Url, UrlError>> {
        if !matches!(self.status.code(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = self.field("Location")?;
        Some(asked.join_bytes(location))
    }
}

impl<C> Client for Fetch<C> {
    type Context = C;
    type Output = Fetched;
    type Upgrade = NoUpgrade<C>;

    fn held_bytes(&self) -> usize {
        // Capacities, because that is what is allocated, and what would fill memory if many
        // requests wait.
        let line = self.method.capacity() + self.target.capacity();
        let names = self.fields.capacity() * size_of::<NamedValue>();
        let fields = self.fields.iter().map(|(name, value)| name.capacity() + value.capacity());
        let body = self.body.as_ref().map_or(0, Vec::capacity);
        fields.fold(line + names, usize::saturating_add).saturating_add(body)
    }

    fn prepare_request(self, request: &mut Request<'_>, _: &mut Scope<'_, C>) -> Next<Self> {
        match self.write(request) {
            // The caller sets a deadline for the whole request, and the connection's limits apply.
            Ok(()) => Next::go_on(self).no_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn headers_received(
        mut self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let fields =
            head.fields().iter().map(|field| (field.name.to_owned(), field.value.to_owned()));
        self.head = Some((head.status(), fields.collect()));
        let mode = self.mode;
        // Whatever the status: a caller may want the body of a 404.
        Next::recv(self, mode).keep_deadline()
    }

    fn response_received(
        self,
        body: &[u8],
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        Next::finished(Fetched { body: body.to_owned(), ..self.into_fetched() })
    }

    #[cfg(feature = "body")]
    fn response_stored(
        self,
        body: rotor_body::Body,
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        Next::finished(Fetched { stored: Some(body), ..self.into_fetched() })
    }
}

impl<C> fmt::Debug for Fetch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("method", &self.method)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_held_bytes_of_a_request_are_mostly_its_body() {
        let held = |fetch: Fetch<()>| fetch.held_bytes();
        let small = held(Fetch::get("/").host("example.com"));
        assert!((1..1_000).contains(&small), "{small}");
        let with_body = held(Fetch::post("/", vec![0; 100_000]).host("example.com"));
        assert!((100_000..101_000).contains(&with_body), "{with_body}");
        let with_field = held(Fetch::get("/").header("A", vec![0; 5_000]));
        assert!((5_000..6_000).contains(&with_field), "{with_field}");
    }

    fn fetched(status: u16, location: Option<&[u8]>) -> Fetched {
        let mut fetch: Fetch<()> = Fetch::get("/");
        let fields = location.map(|value| ("location".to_owned(), value.to_owned()));
        fetch.head = Some((Status::new(status).expect("a status"), fields.into_iter().collect()));
        fetch.into_fetched()
    }

    /// As browsers, curl and Go do: many servers send what they should have encoded.
    #[test]
    fn a_redirect_may_contain_bytes_that_should_have_been_encoded() {
        let asked: Url = "http://a/b".parse().expect("a URL");
        for (location, expected) in [
            (&b"/caf\xe9 1"[..], "http://a/caf%E9%201"),
            ("/caf\u{e9}?\u{e9}".as_bytes(), "http://a/caf%C3%A9?%C3%A9"),
            (b"https://c/\xff", "https://c/%FF"),
        ] {
            let to = fetched(302, Some(location)).redirect(&asked).expect("it redirects");
            assert_eq!(to.expect("a URL").to_string(), expected);
        }
    }

    #[test]
    fn a_redirect_is_resolved_against_the_requested_url() {
        let asked: Url = "http://a/b/c?d".parse().expect("a URL");
        for status in [301, 302, 303, 307, 308] {
            let to = fetched(status, Some(b"../e")).redirect(&asked).expect("it redirects");
            assert_eq!(to.expect("a URL").to_string(), "http://a/e");
            assert_eq!(fetched(status, None).redirect(&asked), None);
        }
        for status in [200, 201, 300, 304, 305, 306, 400] {
            assert_eq!(fetched(status, Some(b"/e")).redirect(&asked), None, "{status}");
        }
        // As the documentation of `redirect` says, an equal authority does not imply an equal
        // server.
        let secret: Url = "https://a/".parse().expect("a URL");
        let to = fetched(302, Some(b"http://a/")).redirect(&secret).expect("it redirects");
        let to = to.expect("a URL");
        assert_eq!((to.authority(), to.is_https()), (secret.authority(), false));
        for (location, why) in [
            (&b"mailto:a@b"[..], UrlError::Scheme),
            (b"/a\tb", UrlError::Target),
            (b"//\xe4.example/", UrlError::Authority),
            ("//\u{e4}.example/".as_bytes(), UrlError::Authority),
        ] {
            assert_eq!(fetched(302, Some(location)).redirect(&asked), Some(Err(why)));
        }
    }
}
