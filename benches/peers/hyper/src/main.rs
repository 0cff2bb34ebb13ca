//! hyper 1 on tokio: on the current thread, or with `THREADS=N` on tokio's multi-threaded runtime.
//!
//! It is set up as in hyper's examples, and for pipelined requests with `pipeline_flush`, which its
//! documentation offers for them. There is no timer, so no time-out costs anything. `/file` is
//! hyper's own example for sending a file.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::MapOk;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::fs::File;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio_util::io::ReaderStream;

type FileBody = StreamBody<MapOk<ReaderStream<File>, fn(Bytes) -> Frame<Bytes>>>;
type Body = Either<Full<Bytes>, FileBody>;

/// How many bytes of a file are read at a time. With the default of 4 KiB, each page would be
/// handed over to tokio's file threads separately.
const FILE_CHUNK_BYTES: usize = 64 * 1024;

static BODY_64K: LazyLock<Bytes> = LazyLock::new(|| contract::body_64k().into());
static BODY_1M: LazyLock<Bytes> = LazyLock::new(|| contract::body_1m().into());
static FILE: LazyLock<Option<PathBuf>> = LazyLock::new(contract::file);

fn main() -> io::Result<()> {
    runtime()?.block_on(serve())
}

fn runtime() -> io::Result<Runtime> {
    match contract::threads()? {
        None => Builder::new_current_thread().enable_io().build(),
        Some(threads) => Builder::new_multi_thread().worker_threads(threads).enable_io().build(),
    }
}

async fn serve() -> io::Result<()> {
    let listener = listen()?;
    contract::announce(listener.local_addr()?)?;
    let mut http = http1::Builder::new();
    http.pipeline_flush(true);
    loop {
        let (socket, _) = listener.accept().await?;
        // This fails if the peer is gone already, which affects only this connection.
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let connection = http.serve_connection(TokioIo::new(socket), service_fn(answer));
        // An error ends only this connection.
        tokio::spawn(async move { connection.await.ok() });
    }
}

fn listen() -> io::Result<TcpListener> {
    let address = contract::address()?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    socket.listen(contract::BACKLOG.into())
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let response = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => plain(Bytes::from_static(contract::HELLO.as_bytes())),
        (&Method::GET, "/64k") => plain(BODY_64K.clone()),
        (&Method::GET, "/1m") => plain(BODY_1M.clone()),
        (&Method::GET, "/file") => file().await.unwrap_or_else(|_| status(StatusCode::NOT_FOUND)),
        (&Method::POST, "/") => match request.into_body().collect().await {
            Ok(_) => plain(Bytes::from_static(contract::HELLO.as_bytes())),
            Err(_) => status(StatusCode::BAD_REQUEST),
        },
        _ => status(StatusCode::NOT_FOUND),
    };
    Ok(response)
}

fn plain(body: Bytes) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

async fn file() -> io::Result<Response<Body>> {
    let path = FILE.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let file = File::open(path).await?;
    let length = file.metadata().await?.len();
    let chunks = ReaderStream::with_capacity(file, FILE_CHUNK_BYTES);
    let body = StreamBody::new(chunks.map_ok(Frame::data as fn(Bytes) -> Frame<Bytes>));
    let mut response = Response::new(Either::Right(body));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    Ok(response)
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}
