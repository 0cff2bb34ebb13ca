//! The server: a handler of one call of any of the four kinds.

use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status, Trailers};

use super::wire::{self, status};

/// One call in progress.
pub(crate) struct Greeter {
    kind: Kind,
    /// The part of a message that has arrived.
    unread: Vec<u8>,
    names: Vec<String>,
}

/// How many messages each side sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message, one answer.
    Unary,
    /// One message, several answers.
    Many,
    /// Several messages, one answer.
    Collect,
    /// An answer to each message as it arrives.
    Chat,
}

/// The maximum number of names for a call that answers all of them at once.
const NAMES_MAX: usize = 1_000;

/// The number of answers to one message, for the kind with several answers.
const ANSWERS: usize = 3;

impl Greeter {
    /// Takes the messages that have arrived. Returns the status that ends the call if one is
    /// invalid.
    fn listen(
        &mut self,
        response: &mut Response<'_>,
    ) -> Result<Result<(), MessageError>, &'static str> {
        while let Some(name) = wire::take(&mut self.unread)? {
            if self.kind == Kind::Chat {
                if let Err(error) = response.write_body(wire::message(&greeting(&name))) {
                    return Ok(Err(error));
                }
            } else if self.names.len() == NAMES_MAX {
                return Err(status::RESOURCE_EXHAUSTED);
            } else {
                self.names.push(name);
            }
        }
        Ok(Ok(()))
    }

    /// Sends the remaining answers, after the whole request has arrived.
    fn answer(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        let is_one = self.names.len() == 1;
        if !self.unread.is_empty() || (!is_one && matches!(self.kind, Kind::Unary | Kind::Many)) {
            return end(status::INVALID_ARGUMENT, response);
        }
        let names = self.names.join(" and ");
        match self.kind {
            Kind::Unary | Kind::Collect => {
                response.write_body(wire::message(&greeting(&names)))?;
            }
            Kind::Many => {
                for number in 1..=ANSWERS {
                    let text = format!("{} ({number} of {ANSWERS})", greeting(&names));
                    response.write_body(wire::message(&text))?;
                }
            }
            Kind::Chat => {}
        }
        end(status::OK, response)
    }
}

fn greeting(name: &str) -> String {
    format!("Hello, {name}!")
}

/// Ends the call. Its status is in the trailers.
fn end(status: &str, response: &mut Response<'_>) -> Result<(), MessageError> {
    response.done_with_trailers(&[("grpc-status", status.as_bytes())])
}

fn finished(written: Result<(), MessageError>) -> Next<Greeter> {
    match written {
        Ok(()) => Next::finished(),
        Err(_) => Next::fail(Status::INTERNAL_SERVER_ERROR),
    }
}

impl Server for Greeter {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let is_grpc = head
            .fields()
            .get("Content-Type")
            .is_some_and(|kind| kind.starts_with(b"application/grpc"));
        if head.method() != Method::Post || !is_grpc {
            response.reply(Status::UNSUPPORTED_MEDIA_TYPE, "text/plain", b"gRPC is spoken here\n");
            return Next::finished();
        }
        let kind = match head.path() {
            "/greeter.Greeter/SayHello" => Some(Kind::Unary),
            "/greeter.Greeter/SayMany" => Some(Kind::Many),
            "/greeter.Greeter/Collect" => Some(Kind::Collect),
            "/greeter.Greeter/Chat" => Some(Kind::Chat),
            _ => None,
        };
        let mut begin = || {
            response.status(Status::OK)?;
            response.add_header("Content-Type", "application/grpc")?;
            response.add_chunked()?;
            response.done_headers()
        };
        match (begin(), kind) {
            (Ok(()), Some(kind)) => {
                let greeter = Greeter { kind, unread: Vec::new(), names: Vec::new() };
                // Answers may be sent while the request is still arriving, and the client may pause
                // between two messages, for as long as a handler has.
                Next::recv_stream(greeter, RecvMode::Progressive(1)).keep_deadline()
            }
            (Ok(()), None) => finished(end(status::UNIMPLEMENTED, response)),
            (Err(error), _) => finished(Err(error)),
        }
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.unread.extend_from_slice(chunk);
        match self.listen(response) {
            // If the client does not read its answers, no more messages are read from it.
            Ok(Ok(())) if response.room() == 0 => Next::hold(self).keep_deadline(),
            Ok(Ok(())) => Next::go_on(self).keep_deadline(),
            Ok(Err(error)) => finished(Err(error)),
            Err(status) => finished(end(status, response)),
        }
    }

    fn response_flushed(self, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::recv(self, RecvMode::Progressive(1)).keep_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        finished(self.answer(response))
    }
}
