use rotor::http::Status;
use rotor::http::server::{Head, Reply, Response, Scope, serve};

fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::OK, "text/plain", b"Hello, World!")
}

fn main() -> Result<(), rotor::http::server::ServeError> {
    serve("127.0.0.1:3000", hello)
}
