//! may_minihttp, set up as in its own benchmark example.

use std::io;
use std::net::TcpListener;

use may_minihttp::{HttpService, HttpServiceFactory, Request, Response};

use crate::BoxError;

struct Servers;

impl HttpServiceFactory for Servers {
    type Service = Hello;

    fn new_service(&self, _: usize) -> Hello {
        Hello
    }
}

struct Hello;

impl HttpService for Hello {
    fn call(&mut self, _: Request<'_, '_, '_>, response: &mut Response<'_>) -> io::Result<()> {
        response.header("Content-Type: text/plain").body(super::answer());
        Ok(())
    }
}

pub(super) fn serve() -> Result<(), BoxError> {
    may::config().set_workers(super::THREADS).set_pool_capacity(1000).set_stack_size(0x1000);
    // It binds by itself and does not report its address, so a free port must be found first.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let server = Servers.start(address)?;
    contract::announce(address)?;
    server.join().map_err(|_| "the server panicked".into())
}
