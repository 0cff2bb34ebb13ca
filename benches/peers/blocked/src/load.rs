//! The load: connections that each send a request when the previous one has been answered, as wrk
//! does.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::BoxError;
use crate::servers::{FAST, SLOW};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: blocked\r\n\r\n";

/// One over this is the share of the time that is not counted.
const WARM_UP: u32 = 5;

#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    pub(crate) connections: usize,
}

/// What was observed of a server.
#[derive(Default)]
pub(crate) struct Seen {
    /// The latencies of the requests that were not blocked on purpose, sorted.
    pub(crate) others: Vec<Duration>,
    pub(crate) slow: usize,
    pub(crate) time: Duration,
    pub(crate) cpu_time: Duration,
}

impl Load {
    /// Loads the server at this address for this time.
    pub(crate) fn run(
        self,
        address: SocketAddr,
        time: Duration,
        cpu_time: impl Fn() -> Duration,
    ) -> Result<Seen, BoxError> {
        let connections = self.connections / self.threads;
        let mut clients = Vec::new();
        for _ in 0..self.threads {
            clients.push(Client::connect(address, connections)?);
        }
        // If a listener's backlog is full, connecting takes a second, which is not to be measured.
        let begun = Instant::now();
        let (counted_from, until) = (begun + time / WARM_UP, begun + time);
        let clients: Vec<_> = clients
            .into_iter()
            .map(|client| thread::spawn(move || client.run(counted_from, until)))
            .collect();
        thread::sleep(counted_from.saturating_duration_since(Instant::now()));
        let before = cpu_time();
        thread::sleep(until.saturating_duration_since(Instant::now()));
        let mut seen = Seen {
            time: until - counted_from,
            cpu_time: cpu_time().saturating_sub(before),
            ..Seen::default()
        };
        for client in clients {
            let (others, slow) = client.join().map_err(|_| "a client has panicked")??;
            seen.others.extend(others);
            seen.slow += slow;
        }
        seen.others.sort_unstable();
        Ok(seen)
    }
}

struct Connection {
    stream: TcpStream,
    sent: Instant,
    answer: Vec<u8>,
}

/// The connections of one thread.
struct Client {
    poll: Poll,
    connections: Vec<Connection>,
}

impl Client {
    fn connect(address: SocketAddr, connections: usize) -> io::Result<Client> {
        let poll = Poll::new()?;
        let mut all = Vec::with_capacity(connections);
        for number in 0..connections {
            let stream = StdStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
            all.push(Connection { stream, sent: Instant::now(), answer: Vec::new() });
        }
        Ok(Client { poll, connections: all })
    }

    /// Returns the latencies of the other requests, and how many requests were blocked on purpose.
    fn run(mut self, counted_from: Instant, until: Instant) -> io::Result<(Vec<Duration>, usize)> {
        for connection in &mut self.connections {
            connection.send()?;
        }
        let (mut others, mut slow) = (Vec::new(), 0);
        let mut events = Events::with_capacity(256);
        while Instant::now() < until {
            self.poll.poll(&mut events, Some(Duration::from_millis(10)))?;
            for event in &events {
                let Some(connection) = self.connections.get_mut(event.token().0) else { continue };
                let Some(is_slow) = connection.receive()? else { continue };
                let now = Instant::now();
                if now >= counted_from && now < until {
                    if is_slow {
                        slow += 1;
                    } else {
                        others.push(now - connection.sent);
                    }
                }
                connection.send()?;
            }
        }
        Ok((others, slow))
    }
}

impl Connection {
    /// The request is shorter than any socket's buffer.
    fn send(&mut self) -> io::Result<()> {
        self.sent = Instant::now();
        self.stream.write_all(REQUEST)
    }

    /// Reads what is available. Returns, once the request is answered, whether it was blocked on
    /// purpose.
    fn receive(&mut self) -> io::Result<Option<bool>> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let ends_with = |body: &str| self.answer.ends_with(body.as_bytes());
        let is_slow = match (ends_with(FAST), ends_with(SLOW)) {
            (true, _) => false,
            (_, true) => true,
            _ => return Ok(None),
        };
        self.answer.clear();
        Ok(Some(is_slow))
    }
}
