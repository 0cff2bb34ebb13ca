//! async-std 1.13, with a minimal parser: a request ends with its head.

use async_std::io::{ReadExt, WriteExt};
use async_std::net::{TcpListener, TcpStream};
use async_std::task;

use crate::BoxError;

pub(super) fn serve() -> Result<(), BoxError> {
    task::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        contract::announce(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            task::spawn(connection(stream));
        }
    })
}

/// Serves one connection. An error ends only this connection.
async fn connection(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut len) = (vec![0; 4096], 0);
    loop {
        let count = stream.read(&mut buffer[len..]).await?;
        if count == 0 {
            return Ok(());
        }
        len += count;
        if memchr::memmem::find(&buffer[..len], b"\r\n\r\n").is_none() {
            continue;
        }
        len = 0;
        let text = super::answer();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).await?;
    }
}
