//! actix-web with `THREADS` workers, one by default. `/file` follows its documentation for static
//! files.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use actix_files::NamedFile;
use actix_web::http::KeepAlive;
use actix_web::http::header::ContentType;
use actix_web::web::{Bytes, get, post};
use actix_web::{App, HttpResponse, HttpServer};

static BODY_64K: LazyLock<Bytes> = LazyLock::new(|| contract::body_64k().into());
static FILE: LazyLock<Option<PathBuf>> = LazyLock::new(contract::file);

#[actix_web::main]
async fn main() -> io::Result<()> {
    let server = HttpServer::new(|| {
        App::new()
            .route("/", get().to(hello))
            .route("/", post().to(hello_to))
            .route("/64k", get().to(large))
            .route("/file", get().to(file))
    })
    .workers(contract::threads()?.unwrap_or(1))
    .backlog(contract::BACKLOG.into())
    // Idle connections are kept, as by all other peers.
    .keep_alive(KeepAlive::Os)
    // Its signal handler waits for open connections, but a peer must end when it is told to.
    .disable_signals()
    .bind(contract::address()?)?;
    for address in server.addrs() {
        contract::announce(address)?;
    }
    server.run().await
}

async fn hello() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(contract::HELLO)
}

async fn hello_to(_body: Bytes) -> HttpResponse {
    hello().await
}

async fn large() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(BODY_64K.clone())
}

async fn file() -> io::Result<NamedFile> {
    NamedFile::open_async(FILE.as_ref().ok_or(io::ErrorKind::NotFound)?).await
}
