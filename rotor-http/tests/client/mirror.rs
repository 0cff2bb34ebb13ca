//! `Mirror`: a server that repeats the request in its answer.

use rotor_http::Status;
use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};

/// Answers with the method, the target and the body of its request. An answer to a target that ends
/// in 7 closes the connection.
pub(crate) struct Mirror {
    request: String,
}

impl Server for Mirror {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.target().ends_with('7') {
            response.close();
        }
        let request = format!("{} {}", head.method(), head.target());
        Next::recv(Mirror { request }, RecvMode::Buffered(1 << 20)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let text = format!("{} {}", self.request, String::from_utf8_lossy(body));
        response.send(Status::OK, "text/plain", text.as_bytes()).expect("it is in order");
        Next::finished()
    }
}
