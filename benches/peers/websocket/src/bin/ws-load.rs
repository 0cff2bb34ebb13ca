//! The load for the WebSocket servers here, the same for each of them.
//!
//! ```text
//! ws-load echo ADDRESS CONNECTIONS BYTES AT-A-TIME SECONDS     messages sent and had back
//! ws-load broadcast ADDRESS CONNECTIONS BYTES SECONDS          messages that came to a connection
//! ws-load hold ADDRESS CONNECTIONS                             keeps them until standard input ends
//! ```
//!
//! It connects, gets one message back on each connection (not in a broadcast), prints `ready`, and
//! begins when standard input has a line, so that the caller can read the server's CPU time in
//! between. At the end it prints the count and the seconds. Each byte that comes back is compared: a
//! server that answers something else ends the run.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Makes a message as a client sends it, or as it comes back.
fn frame(payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let mut frame = vec![0x82];
    match payload.len() {
        len @ 0..126 => frame.push(bit | len as u8),
        len @ 126..65536 => {
            frame.push(bit | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(bit | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    match mask {
        Some(mask) => {
            frame.extend(mask);
            frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
        }
        None => frame.extend(payload),
    }
    frame
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// How many connections are made at a time: waiting for each of them separately would take longer
/// than servers wait for input.
const AT_A_TIME: usize = 200;

/// Opens this many connections, each with a WebSocket handshake.
fn dial(address: SocketAddr, count: usize) -> Outcome<Vec<StdStream>> {
    let mut all = Vec::new();
    while all.len() < count {
        let more = AT_A_TIME.min(count - all.len());
        let mut begun = (0..more).map(|_| ask(address)).collect::<Outcome<Vec<_>>>()?;
        begun.iter_mut().try_for_each(is_accepted)?;
        all.append(&mut begun);
    }
    Ok(all)
}

fn ask(address: SocketAddr) -> Outcome<StdStream> {
    let mut socket = StdStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(request.as_bytes())?;
    Ok(socket)
}

fn is_accepted(socket: &mut StdStream) -> Outcome<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    match head.starts_with(b"HTTP/1.1 101 ") {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&head).into()),
    }
}

/// Sends one message and checks that it comes back.
fn check(socket: &mut StdStream, payload: &[u8]) -> Outcome<()> {
    socket.write_all(&frame(payload, Some([1, 2, 3, 4])))?;
    let expected = frame(payload, None);
    let mut answer = vec![0; expected.len()];
    socket.read_exact(&mut answer)?;
    if answer == expected { Ok(()) } else { Err("something else came back".into()) }
}

struct Connection {
    socket: TcpStream,
    /// How much of the current batch has been sent.
    sent: usize,
    /// How many bytes of it have not come back yet.
    missing: usize,
}

impl Connection {
    /// Sends the rest of the batch, as far as there is room.
    fn send(&mut self, batch: &[u8]) -> io::Result<()> {
        while self.sent < batch.len() {
            match self.socket.write(&batch[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is available of this answer. Returns whether everything has come back now.
    fn receive(&mut self, answer: &[u8], room: &mut [u8]) -> Outcome<bool> {
        loop {
            match self.socket.read(room) {
                Ok(0) => return Err("the server has closed a connection".into()),
                Ok(count) => {
                    let expected = &answer[answer.len() - self.missing..];
                    if !expected.starts_with(&room[..count]) {
                        return Err("something else came back".into());
                    }
                    self.missing -= count;
                    // A short read has emptied the socket.
                    if count < room.len() {
                        return Ok(self.missing == 0);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(self.missing == 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

struct Load {
    poll: Poll,
    connections: Vec<Connection>,
    room: Vec<u8>,
}

impl Load {
    fn new(sockets: Vec<StdStream>) -> Outcome<Load> {
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            socket.set_nonblocking(true)?;
            let mut socket = TcpStream::from_std(socket);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut socket, Token(number), interest)?;
            connections.push(Connection { socket, sent: 0, missing: 0 });
        }
        Ok(Load { poll, connections, room: vec![0; 256 * 1024] })
    }

    /// Each connection sends this many at a time, and again when all of them have come back.
    fn echo(&mut self, payload: &[u8], at_a_time: usize, time: Duration) -> Outcome<u64> {
        let batch = frame(payload, Some([0x12, 0x34, 0x56, 0x78])).repeat(at_a_time);
        let answer = frame(payload, None).repeat(at_a_time);
        let began = Instant::now();
        for connection in &mut self.connections {
            (connection.sent, connection.missing) = (0, answer.len());
            connection.send(&batch)?;
        }
        let (mut count, mut events) = (0, Events::with_capacity(1024));
        while began.elapsed() < time {
            self.poll.poll(&mut events, Some(Duration::from_secs(30)))?;
            if events.is_empty() {
                return Err("the server does not answer".into());
            }
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                if event.is_readable() && connection.receive(&answer, &mut self.room)? {
                    count += at_a_time as u64;
                    (connection.sent, connection.missing) = (0, answer.len());
                }
                connection.send(&batch)?;
            }
        }
        Ok(count)
    }

    /// The first connection sends a message, and the next one once all have received it.
    fn broadcast(&mut self, payload: &[u8], time: Duration) -> Outcome<u64> {
        let said = frame(payload, Some([0x12, 0x34, 0x56, 0x78]));
        let heard = frame(payload, None);
        let began = Instant::now();
        let (mut count, mut events) = (0, Events::with_capacity(1024));
        while began.elapsed() < time {
            for connection in &mut self.connections {
                connection.missing = heard.len();
            }
            self.connections[0].sent = 0;
            self.connections[0].send(&said)?;
            let mut left = self.connections.len();
            while left > 0 {
                self.poll.poll(&mut events, Some(Duration::from_secs(30)))?;
                if events.is_empty() {
                    return Err(format!("{left} connections do not hear of it").into());
                }
                for event in &events {
                    let connection = &mut self.connections[event.token().0];
                    if connection.missing > 0 && connection.receive(&heard, &mut self.room)? {
                        left -= 1;
                    }
                }
            }
            count += self.connections.len() as u64;
        }
        Ok(count)
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text =
        |at: usize| arguments.get(at).map(String::as_str).ok_or("see the head of ws-load.rs");
    let number = |at: usize| -> Outcome<usize> { Ok(text(at)?.parse()?) };
    let address: SocketAddr = text(1)?.parse()?;
    let what = text(0)?;
    let bytes = if what == "hold" { 64 } else { number(3)? };
    let payload = payload(bytes);
    let mut sockets = dial(address, number(2)?)?;
    if what != "broadcast" {
        sockets.iter_mut().try_for_each(|socket| check(socket, &payload))?;
    }
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_line(&mut String::new())?;
    let mut load = Load::new(sockets)?;
    let began = Instant::now();
    let seconds = |at| -> Outcome<Duration> { Ok(Duration::from_secs_f64(text(at)?.parse()?)) };
    let count = match what {
        "echo" => load.echo(&payload, number(4)?, seconds(5)?)?,
        "broadcast" => load.broadcast(&payload, seconds(4)?)?,
        _ => 0,
    };
    println!("{count} {:.3}", began.elapsed().as_secs_f64());
    io::stdout().flush()?;
    // The caller reads the server's figures once more before the connections end.
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}
