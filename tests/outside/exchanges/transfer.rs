//! `Transfer`: a handler of one request of any kind, with bodies of any length, which records the
//! outcome.

use rotor::http::client::{Client, ClientError, Head, Next, NoUpgrade, RecvMode, Request, Scope};
use rotor::http::{MessageError, Method, Trailers};

/// A request, and what was received of its response.
pub(crate) struct Transfer {
    method: &'static str,
    target: String,
    body: Body,
    expects: bool,
    left: usize,
    taken: Taken,
}

/// The body of a request, with its length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Nothing,
    Length(usize),
    Chunked(usize),
}

/// A received response.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) status: u16,
    /// The statuses of the interim responses.
    pub(crate) interim: Vec<u16>,
    /// The value of `Content-Length`.
    pub(crate) length: Option<String>,
    /// The length of the body in bytes.
    pub(crate) octets: usize,
    /// The first hundred bytes of the body.
    pub(crate) begin: Vec<u8>,
    /// How many bytes differ from the expected ones. `Transfer` and the servers send at each
    /// position the position modulo 251.
    pub(crate) wrong: usize,
}

impl Transfer {
    pub(crate) fn new(method: &'static str, target: &str, body: Body) -> Transfer {
        let left = match body {
            Body::Nothing => 0,
            Body::Length(octets) | Body::Chunked(octets) => octets,
        };
        Transfer {
            method,
            target: target.to_owned(),
            body,
            expects: false,
            left,
            taken: Taken::default(),
        }
    }

    pub(crate) fn get(target: &str) -> Transfer {
        Transfer::new("GET", target, Body::Nothing)
    }

    /// Sends `Expect: 100-continue` before the body.
    pub(crate) fn expecting(self) -> Transfer {
        Transfer { expects: true, ..self }
    }

    fn begin(&mut self, request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::new(self.method).ok_or(MessageError::StartLine)?, &self.target)?;
        request.add_header("Host", "localhost")?;
        request.add_header("If-None-Match", "\"x\"")?;
        match self.body {
            Body::Nothing => {}
            Body::Length(octets) => request.add_length(octets as u64)?,
            Body::Chunked(_) => request.add_chunked()?,
        }
        if self.expects {
            request.expect_continue();
            return request.done_headers();
        }
        request.done_headers()?;
        self.go_on(request)
    }

    fn go_on(&mut self, request: &mut Request<'_>) -> Result<(), MessageError> {
        while self.left > 0 && request.room() > 0 {
            let (Body::Length(all) | Body::Chunked(all)) = self.body else { break };
            let at = all - self.left;
            let count = self.left.min(request.room());
            let octets: Vec<u8> = (at..at + count).map(octet).collect();
            request.write_block(octets)?;
            self.left -= count;
        }
        if self.left == 0 && !request.is_complete() { request.done() } else { Ok(()) }
    }
}

/// The expected byte at a position of a body.
pub(crate) fn octet(at: usize) -> u8 {
    (at % 251) as u8
}

impl Client for Transfer {
    type Context = ();
    type Output = Taken;
    type Upgrade = NoUpgrade<()>;

    fn prepare_request(mut self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        match self.begin(request) {
            Ok(()) => Next::go_on(self).no_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn body_wanted(self, request: &mut Request<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
        self.request_flushed(request, scope)
    }

    fn request_flushed(mut self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        match self.go_on(request) {
            Ok(()) => Next::go_on(self).keep_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn interim_received(
        mut self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.taken.interim.push(head.status().code());
        Next::go_on(self).keep_deadline()
    }

    fn headers_received(
        mut self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.taken.status = head.status().code();
        self.taken.length = head.fields().get_str("Content-Length").map(str::to_owned);
        Next::recv(self, RecvMode::Progressive(1)).keep_deadline()
    }

    fn response_chunk(
        mut self,
        chunk: &[u8],
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let taken = &mut self.taken;
        let begin = chunk.len().min(100_usize.saturating_sub(taken.begin.len()));
        taken.begin.extend_from_slice(&chunk[..begin]);
        let places = taken.octets..;
        taken.wrong += chunk.iter().zip(places).filter(|(is, at)| **is != octet(*at)).count();
        taken.octets += chunk.len();
        Next::go_on(self).keep_deadline()
    }

    fn response_end(self, _: &Trailers, _: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::finished(self.taken)
    }

    fn bad_response(self, error: ClientError, _: &mut Scope<'_, ()>) -> Result<Taken, ClientError> {
        Err(error)
    }
}
