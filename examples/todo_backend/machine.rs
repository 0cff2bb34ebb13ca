//! The handler: it turns requests into operations on the list, and their results into responses.

use std::borrow::BorrowMut;
use std::marker::PhantomData;

use rotor::http::server::{self, Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status};
use rotor_service::{Cors, CorsDecision};
use serde_json::Value;

use crate::todos::{Refusal, Todos};

/// The longest body, in bytes: a title and a little more.
const BODY_MAX: usize = 16 << 10;

/// One request. The list is somewhere in the context, which belongs to the application.
pub(crate) struct TodoBackend<C> {
    operation: Operation,
    /// The CORS fields of the response, for browsers.
    crossing: CorsDecision,
    /// The URL of the list's items, without their number.
    base: String,
    context: PhantomData<fn(C)>,
}

/// The operation that a request asks for.
#[derive(Clone, Copy)]
enum Operation {
    List,
    Add,
    Clear,
    Show(u64),
    Change(u64),
    Remove(u64),
}

/// The content of a response, before it is written.
enum Reply {
    Json(Status, Value),
    Empty,
    /// The allowed methods: with 204 for OPTIONS, otherwise with 405.
    Allow(Status, &'static str),
    Error(Status),
}

impl Operation {
    fn of(head: &Head<'_>) -> Result<Operation, Reply> {
        let id = match head.path() {
            "/todos" => None,
            path => match path.strip_prefix("/todos/").map(str::parse) {
                Some(Ok(id)) => Some(id),
                _ => return Err(Reply::Error(Status::NOT_FOUND)),
            },
        };
        match (head.method(), id) {
            (Method::Get | Method::Head, None) => Ok(Operation::List),
            (Method::Post, None) => Ok(Operation::Add),
            (Method::Delete, None) => Ok(Operation::Clear),
            (Method::Get | Method::Head, Some(id)) => Ok(Operation::Show(id)),
            (Method::Patch, Some(id)) => Ok(Operation::Change(id)),
            (Method::Delete, Some(id)) => Ok(Operation::Remove(id)),
            (method, id) => Err(Reply::Allow(
                match method {
                    Method::Options => Status::NO_CONTENT,
                    _ => Status::METHOD_NOT_ALLOWED,
                },
                match id {
                    None => "GET, HEAD, POST, DELETE, OPTIONS",
                    Some(_) => "GET, HEAD, PATCH, DELETE, OPTIONS",
                },
            )),
        }
    }

    fn execute(self, body: &[u8], todos: &mut Todos, base: &str) -> Reply {
        let sent = || serde_json::from_slice(body).map_err(|_| Refusal::Malformed);
        let done = match self {
            Operation::List => Ok(Reply::Json(Status::OK, todos.list(base))),
            Operation::Show(id) => todos.get(id, base).map(|todo| Reply::Json(Status::OK, todo)),
            Operation::Add => sent()
                .and_then(|sent| todos.add(&sent, base))
                .map(|todo| Reply::Json(Status::CREATED, todo)),
            Operation::Change(id) => sent()
                .and_then(|sent| todos.change(id, &sent, base))
                .map(|todo| Reply::Json(Status::OK, todo)),
            Operation::Remove(id) => todos.remove(id).map(|()| Reply::Empty),
            Operation::Clear => {
                todos.clear();
                Ok(Reply::Empty)
            }
        };
        done.unwrap_or_else(|refused| {
            Reply::Error(match refused {
                Refusal::Unknown => Status::NOT_FOUND,
                Refusal::Malformed => Status::BAD_REQUEST,
                Refusal::Full => Status::SERVICE_UNAVAILABLE,
            })
        })
    }
}

impl Reply {
    fn write(
        self,
        crossing: &CorsDecision,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        let mut fields = crossing.fields();
        match self {
            Reply::Json(status, value) => {
                // RFC 9110 §10.2.2: with 201, `Location` names the new resource; with 200 it would
                // have no meaning.
                let made = value["url"].as_str().filter(|_| status == Status::CREATED);
                fields.extend(made.map(|url| ("Location", url.as_bytes())));
                let body = value.to_string();
                response.send_with(status, &fields, "application/json", body.as_bytes())
            }
            Reply::Empty => response.send_with(Status::NO_CONTENT, &fields, "", b""),
            Reply::Allow(status, allow) => {
                fields.push(("Allow", allow.as_bytes()));
                let body: &[u8] = match status {
                    Status::NO_CONTENT => b"",
                    _ => b"405 Method Not Allowed\n",
                };
                response.send_with(status, &fields, "text/plain", body)
            }
            Reply::Error(status) => {
                let line = format!("{} {}\n", status.code(), status.reason());
                response.send_with(status, &fields, "text/plain", line.as_bytes())
            }
        }
    }
}

impl<C: BorrowMut<Todos>> Server for TodoBackend<C> {
    type Context = C;
    type Seed = Cors;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        cors: Cors,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let crossing = cors.check(head.method(), |name| head.field(name));
        if crossing.is_preflight() {
            return crossing.reply(response).into();
        }
        match Operation::of(head) {
            // Even a body that is not needed must arrive: nothing is changed before it has turned
            // out to be complete.
            Ok(operation) => {
                let base = base_of(head);
                let backend = TodoBackend { operation, crossing, base, context: PhantomData };
                Next::recv(backend, RecvMode::Buffered(BODY_MAX)).keep_deadline()
            }
            Err(reply) => server::Reply::from(reply.write(&crossing, response)).into(),
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let context: &mut C = scope;
        let reply = self.operation.execute(body, context.borrow_mut(), &self.base);
        server::Reply::from(reply.write(&self.crossing, response)).into()
    }
}

/// Returns the URL under which the peer reaches this server, so that it can use the URLs in
/// responses.
fn base_of(head: &Head<'_>) -> String {
    match head.authority() {
        Some(host) if head.is_secure() => format!("https://{host}/todos/"),
        Some(host) => format!("http://{host}/todos/"),
        None => "/todos/".to_owned(),
    }
}
