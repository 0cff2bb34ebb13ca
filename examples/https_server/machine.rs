//! The handler: it says hello, and what it knows about the connection.

use rotor::Scope;
use rotor::http::server::{Head, Next, NoUpgrade, Response, Server};
use rotor::http::{Method, Status};
use rotor::tls::TlsSession;

/// One request.
pub(crate) struct Hello;

impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let sent = match (head.method(), head.path()) {
            (Method::Get | Method::Head, "/") => {
                response.send(Status::OK, "text/plain", b"Hello, World!")
            }
            (Method::Get | Method::Head, "/session") => {
                let text = head.session::<TlsSession>().map_or_else(String::new, describe);
                response.send(Status::OK, "text/plain", text.as_bytes())
            }
            _ => response.send(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
        };
        match sent {
            Ok(()) => Next::finished(),
            // This cannot happen: each response is within the limits.
            Err(_) => Next::fail(Status::INTERNAL_SERVER_ERROR),
        }
    }
}

fn describe(session: &TlsSession) -> String {
    format!(
        "{:?} {}\nasked for {}, {}\n",
        session.version(),
        session.cipher(),
        session.server_name().unwrap_or("no name"),
        if session.is_resumed() { "resumed" } else { "from the beginning" }
    )
}
