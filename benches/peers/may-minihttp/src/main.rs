//! may_minihttp with `THREADS` workers, one by default. Stack size and pool are as in its own
//! TechEmpower example. That example also uses mimalloc, which makes no difference here, since a
//! request allocates nothing, except that an idle connection would hold 76 KiB instead of 20.
//!
//! It cannot send files, and does not end a connection when asked to.
#![forbid(unsafe_code)]

use std::io::{self, BufRead};
use std::net::TcpListener;
use std::sync::LazyLock;

use may_minihttp::{HttpService, HttpServiceFactory, Request, Response};

static BODY_64K: LazyLock<String> = LazyLock::new(contract::body_64k);

fn main() -> io::Result<()> {
    may::config()
        .set_workers(contract::threads()?.unwrap_or(1))
        .set_pool_capacity(1000)
        .set_stack_size(0x1000);
    // It binds by itself and does not report its address, so a free port must be found first.
    let address = TcpListener::bind(contract::address()?)?.local_addr()?;
    let server = Servers.start(address)?;
    contract::announce(address)?;
    server.join().map_err(|_| io::Error::other("the server panicked"))
}

struct Servers;

impl HttpServiceFactory for Servers {
    type Service = Server;

    fn new_service(&self, _: usize) -> Server {
        Server
    }
}

struct Server;

impl HttpService for Server {
    fn call(
        &mut self,
        request: Request<'_, '_, '_>,
        response: &mut Response<'_>,
    ) -> io::Result<()> {
        match (request.method(), request.path()) {
            ("GET", "/") => response.header("Content-Type: text/plain").body(contract::HELLO),
            ("GET", "/64k") => response.header("Content-Type: text/plain").body(BODY_64K.as_str()),
            ("POST", "/") => {
                let mut body = request.body();
                while let count @ 1.. = body.fill_buf()?.len() {
                    body.consume(count);
                }
                response.header("Content-Type: text/plain").body(contract::HELLO);
            }
            _ => {
                response.status_code(404, "Not Found");
            }
        }
        Ok(())
    }
}
