//! The handler that answers `GET /` with the same words, every time.

use rotor::http::h1::{MessageError, Method, Status};
use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};

/// Answers `GET /` with `Hello, World!`, and anything else with an error.
pub(crate) struct Hello;

impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        // An error of the writer means misuse, and then the connection answers with 500 by itself.
        let _written = match (head.method(), head.path()) {
            (Method::Get | Method::Head, "/") => response.send(Status::OK, "text/plain", b"Hello, World!"),
            (_, "/") => not_allowed(response),
            _ => response.send(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
        };
        Next::finished()
    }
}

fn not_allowed(response: &mut Response<'_>) -> Result<(), MessageError> {
    let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
    response.send_with(Status::METHOD_NOT_ALLOWED, allow, "text/plain", b"405 Method Not Allowed\n")
}
