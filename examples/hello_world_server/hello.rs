//! The function that answers `GET /`, always with the same words.

use rotor::http::server::{Head, Reply, Response, Scope};
use rotor::http::{Method, Status};

/// Answers `GET /` with `Hello, World!`, and anything else with an error.
pub(crate) fn hello<C>(
    head: &Head<'_>,
    response: &mut Response<'_>,
    _: &mut Scope<'_, C>,
) -> Reply {
    match (head.method(), head.path()) {
        (Method::Get | Method::Head, "/") => {
            response.reply(Status::OK, "text/plain", b"Hello, World!")
        }
        (_, "/") => {
            let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
            response.reply_with(
                Status::METHOD_NOT_ALLOWED,
                allow,
                "text/plain",
                b"405 Method Not Allowed\n",
            )
        }
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}
