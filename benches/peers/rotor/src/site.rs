//! The handler.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rotor::http::h1::{MessageError, Method, Status};
use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::stream::Block;

/// The longest body that is read, in bytes.
const POST_BYTES_MAX: usize = 64 * 1024;

/// What there is to answer with; all connections share it.
#[derive(Clone)]
pub struct Pages(Arc<Contents>);

struct Contents {
    body_64k: Block,
    file: Option<(Arc<File>, u64)>,
}

impl Pages {
    pub fn make() -> io::Result<Pages> {
        let file = match contract::file() {
            Some(path) => {
                let file = File::open(path)?;
                let length = file.metadata()?.len();
                Some((Arc::new(file), length))
            }
            None => None,
        };
        Ok(Pages(Arc::new(Contents { body_64k: contract::body_64k().into_bytes().into(), file })))
    }
}

/// A request whose body is awaited.
pub struct Site;

impl Server for Site {
    type Context = ();
    type Seed = Pages;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        pages: Pages,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        // An error would be a misuse of the writer, and the connection answers with 500 by itself.
        let _written = match (head.method(), head.path()) {
            (Method::Get, "/") => hello(response),
            (Method::Get, "/64k") => body_64k(&pages.0, response),
            (Method::Get, "/file") => file(&pages.0, response),
            (Method::Post, "/") => {
                return Next::recv(Site, RecvMode::Buffered(POST_BYTES_MAX)).keep_deadline();
            }
            _ => not_found(response),
        };
        Next::finished()
    }

    fn request_received(self, _: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        let _written = hello(response);
        Next::finished()
    }
}

fn hello(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.send(Status::OK, "text/plain", contract::HELLO.as_bytes())
}

fn not_found(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.send(Status::NOT_FOUND, "text/plain", b"404 Not Found\n")
}

fn body_64k(pages: &Contents, response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::OK)?;
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(pages.body_64k.len() as u64)?;
    response.done_headers()?;
    response.write_block(pages.body_64k.clone())?;
    response.done()
}

fn file(pages: &Contents, response: &mut Response<'_>) -> Result<(), MessageError> {
    let Some((file, length)) = &pages.file else { return not_found(response) };
    response.status(Status::OK)?;
    response.add_length(*length)?;
    response.done_headers()?;
    response.write_file(file.clone(), 0, *length as usize)?;
    response.done()
}
