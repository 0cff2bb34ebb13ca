//! tungstenite on tokio, on the current thread, as in its own examples. It sends each message back
//! or, with `MODE=broadcast`, to all, by tokio's broadcast channel.
#![forbid(unsafe_code)]

use std::env;
use std::io;

use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::{Error, Message};

fn main() -> io::Result<()> {
    Builder::new_current_thread().enable_io().build()?.block_on(serve())
}

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind(contract::address()?).await?;
    contract::announce(listener.local_addr()?)?;
    let broadcasts = env::var("MODE").is_ok_and(|mode| mode == "broadcast");
    let (said, _) = broadcast::channel(64);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let said = said.clone();
        tokio::task::spawn(async move {
            // An error ends only this connection.
            if broadcasts { talk(socket, said).await } else { echo(socket).await }
        });
    }
}

async fn echo(socket: TcpStream) -> Result<(), Error> {
    let (write, read) = tokio_tungstenite::accept_async(socket).await?.split();
    read.try_filter(|message| future::ready(message.is_text() || message.is_binary()))
        .forward(write)
        .await
}

async fn talk(socket: TcpStream, said: broadcast::Sender<Message>) -> Result<(), Error> {
    let (mut write, mut read) = tokio_tungstenite::accept_async(socket).await?.split();
    let mut heard = said.subscribe();
    let writer = tokio::task::spawn(async move {
        while let Ok(message) = heard.recv().await {
            write.send(message).await?;
        }
        Ok::<(), Error>(())
    });
    while let Some(Ok(message)) = read.next().await {
        if message.is_text() || message.is_binary() {
            let _nobody_left = said.send(message);
        }
    }
    // The task holds the socket.
    writer.abort();
    Ok(())
}
