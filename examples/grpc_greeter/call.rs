//! The client: a handler of one call.

use std::collections::VecDeque;

use rotor::http::client::{Client, Head, Next, NoUpgrade, RecvMode, Request, Scope};
use rotor::http::{MessageError, Method, Status, Trailers};

use super::wire;

/// A call, before and during the exchange.
pub(crate) struct Call {
    pub(crate) authority: String,
    /// The method of the service, such as `SayHello`.
    pub(crate) method: String,
    /// The names that are still to be sent.
    pub(crate) names: VecDeque<String>,
    pub(crate) unread: Vec<u8>,
    pub(crate) answers: Vec<String>,
}

/// The result: the answers, and the status of the call (0 means success).
pub(crate) type Answered = (Vec<String>, String);

impl Call {
    /// Returns whether each message waits for the answer to the previous one.
    fn is_chat(&self) -> bool {
        self.method == "Chat"
    }

    fn begin(&mut self, request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::Post, &format!("/greeter.Greeter/{}", self.method))?;
        request.add_header("Host", &self.authority)?;
        request.add_header("Content-Type", "application/grpc")?;
        request.add_header("TE", "trailers")?;
        request.add_chunked()?;
        request.done_headers()?;
        self.say(request)
    }

    /// Sends what can be sent now.
    fn say(&mut self, request: &mut Request<'_>) -> Result<(), MessageError> {
        while let Some(name) = self.names.pop_front() {
            request.write_body(wire::message(&name))?;
            if self.is_chat() {
                return Ok(());
            }
        }
        if request.is_complete() { Ok(()) } else { request.done() }
    }

    fn answered(self, status: Option<&[u8]>) -> Next<Call> {
        let status = status.map_or("none".into(), |status| String::from_utf8_lossy(status));
        Next::finished((self.answers, status.into_owned()))
    }
}

impl Client for Call {
    type Context = ();
    type Output = Answered;
    type Upgrade = NoUpgrade<()>;

    fn prepare_request(mut self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        match self.begin(request) {
            Ok(()) => Next::go_on(self).no_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn headers_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        // A call that fails at once may have no body: then its status is in the header.
        if head.status() != Status::OK || !head.has_body() {
            return self.answered(head.field("grpc-status"));
        }
        Next::recv(self, RecvMode::Progressive(1)).keep_deadline()
    }

    fn response_chunk(
        mut self,
        chunk: &[u8],
        request: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.unread.extend_from_slice(chunk);
        loop {
            match wire::take(&mut self.unread) {
                Ok(Some(answer)) => self.answers.push(answer),
                Ok(None) => return Next::go_on(self).keep_deadline(),
                Err(status) => return self.answered(Some(status.as_bytes())),
            }
            if self.is_chat()
                && let Err(error) = self.say(request)
            {
                return Next::error(error);
            }
        }
    }

    fn response_end(
        self,
        trailers: &Trailers,
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.answered(trailers.get("grpc-status"))
    }
}
