//! The handler: from requests to the list, and from its answers to responses.

use std::borrow::BorrowMut;
use std::marker::PhantomData;

use rotor::http::server::{self, Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status};
use serde_json::Value;

use crate::todos::{Refused, Todos};

/// The longest body, in octets: a title and a little more.
const BODY_MAX: usize = 16 << 10;

/// One request. The list is somewhere in the context, which belongs to the application.
pub(crate) struct TodoBackend<C> {
    wish: Wish,
    context: PhantomData<fn(C)>,
}

/// What a request asks for.
#[derive(Clone, Copy)]
enum Wish {
    List,
    Add,
    Clear,
    Show(u64),
    Change(u64),
    Remove(u64),
}

/// What the answer is, apart from how it is written.
enum Reply {
    Json(Status, Value),
    Empty,
    NotAllowed(&'static str),
    Error(Status),
}

impl Wish {
    fn of(head: &Head<'_>) -> Result<Wish, Reply> {
        let id = match head.path() {
            "/todos" => None,
            path => match path.strip_prefix("/todos/").map(str::parse) {
                Some(Ok(id)) => Some(id),
                _ => return Err(Reply::Error(Status::NOT_FOUND)),
            },
        };
        match (head.method(), id) {
            (Method::Get | Method::Head, None) => Ok(Wish::List),
            (Method::Post, None) => Ok(Wish::Add),
            (Method::Delete, None) => Ok(Wish::Clear),
            (Method::Get | Method::Head, Some(id)) => Ok(Wish::Show(id)),
            (Method::Patch, Some(id)) => Ok(Wish::Change(id)),
            (Method::Delete, Some(id)) => Ok(Wish::Remove(id)),
            (_, None) => Err(Reply::NotAllowed("GET, HEAD, POST, DELETE")),
            (_, Some(_)) => Err(Reply::NotAllowed("GET, HEAD, PATCH, DELETE")),
        }
    }

    fn fulfil(self, body: &[u8], todos: &mut Todos) -> Reply {
        let sent = || serde_json::from_slice(body).map_err(|_| Refused::Malformed);
        let done = match self {
            Wish::List => Ok(Reply::Json(Status::OK, todos.list())),
            Wish::Show(id) => todos.get(id).map(|todo| Reply::Json(Status::OK, todo)),
            Wish::Add => sent()
                .and_then(|sent| todos.add(&sent))
                .map(|todo| Reply::Json(Status::CREATED, todo)),
            Wish::Change(id) => sent()
                .and_then(|sent| todos.change(id, &sent))
                .map(|todo| Reply::Json(Status::OK, todo)),
            Wish::Remove(id) => todos.remove(id).map(|()| Reply::Empty),
            Wish::Clear => {
                todos.clear();
                Ok(Reply::Empty)
            }
        };
        done.unwrap_or_else(|refused| {
            Reply::Error(match refused {
                Refused::Unknown => Status::NOT_FOUND,
                Refused::Malformed => Status::BAD_REQUEST,
                Refused::Full => Status::SERVICE_UNAVAILABLE,
            })
        })
    }
}

impl Reply {
    fn write(self, response: &mut Response<'_>) -> Result<(), MessageError> {
        match self {
            Reply::Json(status, value) => {
                let body = value.to_string();
                response.status(status)?;
                // RFC 9110 §10.2.2: on 201 it names what was made; on 200 it would mean nothing.
                if let Some(url) = value["url"].as_str().filter(|_| status == Status::CREATED) {
                    response.add_header("Location", url)?;
                }
                response.add_header("Content-Type", "application/json")?;
                response.add_length(body.len() as u64)?;
                response.done_headers()?;
                response.write_body(body)?;
                response.done()
            }
            Reply::Empty => {
                response.status(Status::NO_CONTENT)?;
                response.done_headers()?;
                response.done()
            }
            Reply::NotAllowed(allow) => {
                response.status(Status::METHOD_NOT_ALLOWED)?;
                response.add_header("Allow", allow)?;
                response.add_length(0)?;
                response.done_headers()?;
                response.done()
            }
            Reply::Error(status) => {
                let line = format!("{} {}\n", status.code(), status.reason());
                response.send(status, "text/plain", line.as_bytes())
            }
        }
    }
}

impl<C: BorrowMut<Todos>> Server for TodoBackend<C> {
    type Context = C;
    type Seed = ();
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match Wish::of(head) {
            // A body that is not wanted counts as well: nothing is changed before it has turned out
            // to be whole.
            Ok(wish) => {
                let backend = TodoBackend { wish, context: PhantomData };
                Next::recv(backend, RecvMode::Buffered(BODY_MAX)).keep_deadline()
            }
            Err(reply) => server::Reply::from(reply.write(response)).into(),
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let context: &mut C = scope;
        server::Reply::from(self.wish.fulfil(body, context.borrow_mut()).write(response)).into()
    }
}
