//! `TestClient`: a client of a server under test.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};

use rotor_stream::testing::Driver;

use super::response::TestResponse;
use crate::semantics::method::Method;
use crate::server::{Connection, HttpSeed, Server, ServerConfig};

/// A client of a server, with one connection of HTTP/1.1 in memory.
///
/// It derefs to the [`Driver`] of that connection, which has the clock, the context and everything
/// else.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Reply, Response, Scope, ServerFn};
/// use rotor::http::testing::TestClient;
///
/// fn hello(head: &Head<'_>, response: &mut Response<'_>, calls: &mut Scope<'_, u32>) -> Reply {
///     **calls += 1;
///     let page = format!("you asked for {}\n", head.path());
///     response.reply(Status::OK, "text/plain", page.as_bytes())
/// }
///
/// let mut client = TestClient::<ServerFn<_, u32>>::new(hello, 0);
/// let response = client.get("/tea");
/// assert_eq!(response.status(), Status::OK);
/// assert_eq!(response.field("Content-Type"), Some("text/plain"));
/// assert_eq!(response.text(), "you asked for /tea\n");
/// assert_eq!(*client.context(), 1);
/// ```
///
/// A handler that waits for something has not responded yet when `send` returns:
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use std::time::Duration;
///
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
/// use rotor::http::testing::TestClient;
///
/// struct Slow;
///
/// impl Server for Slow {
/// #     type Context = ();
/// #     type Seed = ();
/// #     type Upgrade = NoUpgrade<()>;
///     // ..
///     fn headers_received(
///         (): (),
///         _: &Head<'_>,
///         _: &mut Response<'_>,
///         scope: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         Next::after(scope.now() + Duration::from_secs(9), |response, _| {
///             response.reply(Status::OK, "text/plain", b"at last")
///         })
///     }
/// }
///
/// let mut client = TestClient::<Slow>::new((), ());
/// client.send_request("GET", "/", &[], b"");
/// assert_eq!(client.take_response(), None);
/// client.advance(Duration::from_secs(9));
/// assert_eq!(client.take_response().expect("it is there").text(), "at last");
/// ```
pub struct TestClient<S: Server> {
    driver: Driver<Connection<S>>,
    /// The methods of the requests whose responses are not taken yet.
    methods: VecDeque<String>,
    /// What has arrived and is not taken yet.
    received: Vec<u8>,
}

impl<S: Server + 'static> TestClient<S> {
    /// Connects to a server with this seed, the default configuration, and this context.
    pub fn new(seed: S::Seed, context: S::Context) -> TestClient<S> {
        TestClient::with_config(seed, ServerConfig::new(), context)
    }

    /// Connects to a server with a configuration.
    pub fn with_config(seed: S::Seed, config: ServerConfig, context: S::Context) -> TestClient<S> {
        let driver = Driver::new(HttpSeed::new(seed, config), context);
        TestClient { driver, methods: VecDeque::new(), received: Vec::new() }
    }

    /// Sends a GET, and returns the response.
    ///
    /// # Panics
    ///
    /// As [`request`](TestClient::request).
    pub fn get(&mut self, target: &str) -> TestResponse {
        self.request("GET", target, &[], b"")
    }

    /// Sends a POST with a body of this type, and returns the response.
    ///
    /// # Panics
    ///
    /// As [`request`](TestClient::request).
    pub fn post(&mut self, target: &str, content_type: &str, body: &[u8]) -> TestResponse {
        self.request("POST", target, &[("Content-Type", content_type)], body)
    }

    /// Sends a request, and returns its response.
    ///
    /// # Panics
    ///
    /// If the response is not complete when the server waits again: use
    /// [`send_request`](TestClient::send_request) then. If something was received before that was
    /// not taken: it would be returned in place of this response.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> TestResponse {
        self.receive();
        let untaken = self.received.escape_ascii();
        assert!(self.received.is_empty(), "{method} {target}: not taken before: \"{untaken}\"");
        self.send_request(method, target, fields, body);
        self.take_response().unwrap_or_else(|| {
            let (ended, received) = (self.driver.is_ended(), self.received.escape_ascii());
            panic!("{method} {target}: no whole response (ended: {ended}): \"{received}\"")
        })
    }

    /// Sends a request. It has the fields `Host` and, if there is a body, `Content-Length`, unless
    /// these are among `fields`. Nothing is checked, so that bad requests can be sent, too.
    pub fn send_request(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) {
        let has = |name: &str| fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if !has("Host") {
            head.push_str("Host: example.com\r\n");
        }
        if !body.is_empty() && !has("Content-Length") && !has("Transfer-Encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.methods.push_back(method.to_owned());
        self.driver.send(&[head.as_bytes(), b"\r\n", body].concat());
    }

    /// Returns the next response, if it is complete. Interim responses are skipped. A request that
    /// was sent as bytes ([`Driver::send`]) counts as a GET; take its response before the next
    /// [`send_request`](TestClient::send_request), whose method would count for it.
    ///
    /// # Panics
    ///
    /// If what was received is not a response, or one whose head has more than 256 fields or
    /// 16 MiB.
    pub fn take_response(&mut self) -> Option<TestResponse> {
        self.receive();
        let method = self.methods.front().and_then(|method| Method::new(method));
        let method = method.unwrap_or(Method::Get);
        let response = TestResponse::take(&mut self.received, self.driver.is_ended(), method)?;
        self.methods.pop_front();
        Some(response)
    }

    /// Returns all bytes that were received and not taken yet, whole responses or not: what follows
    /// a response that begins another protocol, for example.
    ///
    /// [`Peer::take_received`](rotor_stream::testing::Peer::take_received) does not return what
    /// [`take_response`](TestClient::take_response) has left.
    pub fn take_received(&mut self) -> Vec<u8> {
        self.receive();
        std::mem::take(&mut self.received)
    }

    fn receive(&mut self) {
        self.received.append(&mut self.driver.take_received());
    }
}

impl<S: Server> Deref for TestClient<S> {
    type Target = Driver<Connection<S>>;

    fn deref(&self) -> &Driver<Connection<S>> {
        &self.driver
    }
}

impl<S: Server> DerefMut for TestClient<S> {
    fn deref_mut(&mut self) -> &mut Driver<Connection<S>> {
        &mut self.driver
    }
}

impl<S: Server> fmt::Debug for TestClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClient")
            .field("driver", &self.driver)
            .field("methods", &self.methods)
            .finish_non_exhaustive()
    }
}
