//! monoio on its io_uring driver, with `monoio-http`: a task for each connection, which reads a
//! request, reads its whole body, and writes the response. It has `THREADS` threads, one by
//! default, each with a runtime and a listener of its own, as its documentation recommends.
//!
//! Its HTTP cannot send files, so `/file` is left out.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::thread;

use bytes::Bytes;
use http::{Method, StatusCode};
use monoio::io::sink::SinkExt;
use monoio::io::stream::Stream;
use monoio::net::{ListenerOpts, TcpListener, TcpStream};
use monoio::{IoUringDriver, RuntimeBuilder};
use monoio_http::common::request::Request;
use monoio_http::common::response::{Response, ResponseBuilder};
use monoio_http::h1::codec::ServerCodec;
use monoio_http::h1::codec::decoder::FillPayload;
use monoio_http::h1::payload::{FixedPayload, Payload};

/// The parts of the responses.
#[derive(Clone)]
struct Pages {
    body_64k: Bytes,
    body_1m: Bytes,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut address = contract::address()?;
    let pages =
        Pages { body_64k: contract::body_64k().into(), body_1m: contract::body_1m().into() };
    let options = ListenerOpts::new().backlog(contract::BACKLOG.into());
    // The first one chooses the port, the others share it.
    let mut threads = Vec::new();
    for number in 0..contract::threads()?.unwrap_or(1) {
        let (told, bound) = std::sync::mpsc::channel();
        let (pages, options) = (pages.clone(), options.clone());
        threads.push(thread::spawn(move || serve(address, &options, &pages, &told)));
        let bound = bound.recv()?;
        if number == 0 {
            address = bound;
            contract::announce(address)?;
        }
    }
    for thread in threads {
        thread.join().map_err(|_| "a thread has panicked")??;
    }
    Ok(())
}

fn serve(
    address: SocketAddr,
    options: &ListenerOpts,
    pages: &Pages,
    told: &std::sync::mpsc::Sender<SocketAddr>,
) -> io::Result<()> {
    let mut runtime = RuntimeBuilder::<IoUringDriver>::new().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind_with_config(address, options)?;
        // The receiver is gone if the process is ending.
        let _ = told.send(listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            monoio::spawn(converse(stream, pages.clone()));
        }
    })
}

async fn converse(stream: TcpStream, pages: Pages) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut codec = ServerCodec::new(stream);
    // A malformed request, or the end of the connection, ends the task.
    while let Some(Ok(request)) = codec.next().await {
        let request: Request = request;
        let closes = request.headers().get("connection").is_some_and(|value| value == "close");
        if codec.fill_payload().await.is_err() {
            return;
        }
        let answer = answer(&request, &pages);
        if codec.send_and_flush(answer).await.is_err() || closes {
            return;
        }
    }
}

fn answer(request: &Request, pages: &Pages) -> Response {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::POST, "/") => {
            (StatusCode::OK, Bytes::from_static(contract::HELLO.as_bytes()))
        }
        (&Method::GET, "/64k") => (StatusCode::OK, pages.body_64k.clone()),
        (&Method::GET, "/1m") => (StatusCode::OK, pages.body_1m.clone()),
        _ => (StatusCode::NOT_FOUND, Bytes::from_static(b"404 Not Found\n")),
    };
    ResponseBuilder::new()
        .status(status)
        .header("Content-Type", "text/plain")
        .body(Payload::Fixed(FixedPayload::new(body)))
        .expect("status and field are right")
}
