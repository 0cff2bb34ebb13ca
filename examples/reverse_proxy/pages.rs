//! What the proxy itself answers.

use rotor::http::Status;
use rotor::http::server::{Next, Response, Server};

/// Answers with an error page of the proxy. If the upstream's response has begun, it is cut off
/// instead, so that it is not taken for complete.
pub(crate) fn fail<S: Server>(status: Status, response: &mut Response<'_>) -> Next<S> {
    if response.is_started() {
        return Next::fail(status);
    }
    page(status, response);
    Next::finished()
}

/// Answers with one line of text.
pub(crate) fn page(status: Status, response: &mut Response<'_>) {
    response.reply(status, "text/plain", format!("{status}\n").as_bytes());
}
