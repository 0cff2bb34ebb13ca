//! fastwebsockets on hyper and tokio, on the current thread, as in its own examples. It sends each
//! message back or, with `MODE=broadcast`, to all, by tokio's broadcast channel.
#![forbid(unsafe_code)]

use std::env;
use std::io;

use bytes::Bytes;
use fastwebsockets::upgrade::{UpgradeFut, is_upgrade_request, upgrade};
use fastwebsockets::{Frame, OpCode, Payload, WebSocketError};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::broadcast;

type Said = broadcast::Sender<Bytes>;

fn main() -> io::Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(serve())
}

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind(contract::address()?).await?;
    contract::announce(listener.local_addr()?)?;
    let broadcasts = env::var("MODE").is_ok_and(|mode| mode == "broadcast");
    let said = broadcasts.then(|| broadcast::channel(64).0);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let said = said.clone();
        tokio::task::spawn(async move {
            let answer = service_fn(|request| answer(request, said.clone()));
            // An error ends only this connection.
            http1::Builder::new()
                .serve_connection(TokioIo::new(socket), answer)
                .with_upgrades()
                .await
        });
    }
}

async fn answer(
    mut request: Request<Incoming>,
    said: Option<Said>,
) -> Result<Response<Empty<Bytes>>, WebSocketError> {
    if !is_upgrade_request(&request) {
        let mut response = Response::new(Empty::new());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    let (response, socket) = upgrade(&mut request)?;
    tokio::task::spawn(async move {
        match said {
            Some(said) => talk(socket, said).await,
            None => echo(socket).await,
        }
    });
    Ok(response)
}

async fn echo(socket: UpgradeFut) -> Result<(), WebSocketError> {
    let mut socket = socket.await?;
    loop {
        let frame = socket.read_frame().await?;
        match frame.opcode {
            OpCode::Close => return Ok(()),
            OpCode::Text | OpCode::Binary => {
                // If it were written unchanged it would be masked, which a server's frames must not
                // be (RFC 6455 §5.1).
                let frame = Frame::new(frame.fin, frame.opcode, None, frame.payload);
                socket.write_frame(frame).await?;
            }
            _ => {}
        }
    }
}

async fn talk(socket: UpgradeFut, said: Said) -> Result<(), WebSocketError> {
    let (mut read, mut write) = socket.await?.split(tokio::io::split);
    let mut heard = said.subscribe();
    let writer = tokio::task::spawn(async move {
        while let Ok(bytes) = heard.recv().await {
            write.write_frame(Frame::binary(Payload::Borrowed(&bytes))).await?;
        }
        Ok::<(), WebSocketError>(())
    });
    // The load sends no ping that would have to be answered.
    let mut ignore = async |_: Frame<'_>| Ok::<(), WebSocketError>(());
    while let Ok(frame) = read.read_frame(&mut ignore).await {
        match frame.opcode {
            OpCode::Close => break,
            OpCode::Text | OpCode::Binary => {
                let _nobody_left = said.send(Bytes::copy_from_slice(&frame.payload));
            }
            _ => {}
        }
    }
    // The task holds the socket.
    writer.abort();
    Ok(())
}
