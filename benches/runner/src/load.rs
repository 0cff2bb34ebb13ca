//! A load generator that sends a fixed number of requests, so that what a server did can be divided by it.
//!
//! One thread, closed loop: each connection sends as many requests as the pipeline is deep, waits for all the answers,
//! checks them, and goes on while requests are left. It stops when a server stops answering; it never asks again.

use std::io::{self, Read, Write};
use std::net::{self, SocketAddr};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use quick_error::quick_error;
use rustix::time::{ClockId, clock_gettime};

use crate::answer::{Checker, WrongAnswer};

/// How long the generator waits with nothing coming from the server at all before it gives up. A server under valgrind
/// is fifty times slower than itself, and still answers within this.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// The same for one connection to be taken.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

quick_error! {
    /// Why a run has no result.
    #[derive(Debug)]
    pub enum LoadError {
        /// A connection could not be made.
        Connect(address: SocketAddr, error: io::Error) {
            display("cannot connect to {}", address)
            source(error)
        }
        /// The server answered wrongly.
        Answer(error: WrongAnswer) {
            display("the server does not answer as it should")
            from()
            source(error)
        }
        /// The server closed a connection on which it owed answers.
        Closed(owed: usize) {
            display("the server closed a connection with {} answers owed", owed)
        }
        /// The server sent more than it was asked for.
        Surplus {
            display("the server sent more answers than it got requests")
        }
        /// The server went silent.
        Silent(answered: u64, requests: u64) {
            display("the server went silent after {} of {} answers", answered, requests)
        }
        /// A system call failed.
        Io(error: io::Error) {
            display("the load generator failed")
            from()
            source(error)
        }
    }
}

/// What a run of requests took.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Requests sent and answers checked.
    pub requests: u64,
    /// From the first request to the last answer.
    pub wall: Duration,
    /// CPU time of the generator's thread: near `wall`, it was the generator that set the pace, not the server.
    pub generator: Duration,
}

/// Connections to one server, ready to send.
#[derive(Debug)]
pub struct Generator {
    poll: Poll,
    connections: Vec<Connection>,
    /// As many requests as the pipeline is deep.
    batch: Vec<u8>,
    request_bytes: usize,
    pipeline: usize,
    checker: Checker,
    input: Box<[u8]>,
}

impl Generator {
    /// Opens `connections`, each of which will have up to `pipeline` requests under way.
    ///
    /// # Errors
    /// When the server does not take a connection.
    pub fn connect(address: SocketAddr, connections: usize, pipeline: usize) -> Result<Generator, LoadError> {
        const INPUT_BYTES: usize = 64 * 1024;
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let poll = Poll::new()?;
        let connections = (0..connections)
            .map(|index| Connection::open(address, &poll, Token(index)))
            .collect::<Result<_, _>>()?;
        Ok(Generator {
            poll,
            connections,
            request_bytes: request.len(),
            batch: request.repeat(pipeline).into_bytes(),
            pipeline,
            checker: Checker::default(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
        })
    }

    /// Sends `requests` over all connections together and checks every answer. May be called again.
    ///
    /// # Errors
    /// When an answer is wrong or does not come. The connections are of no use then.
    pub fn run(&mut self, requests: u64) -> Result<Run, LoadError> {
        let (wall, generator) = (Instant::now(), thread_time());
        let mut unsent = requests;
        for index in 0..self.connections.len() {
            self.send_batch(index, &mut unsent)?;
        }
        let mut answered = 0;
        let mut events = Events::with_capacity(1024);
        while answered < requests {
            match self.poll.poll(&mut events, Some(SILENCE_MAX)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            if events.is_empty() {
                return Err(LoadError::Silent(answered, requests));
            }
            for event in &events {
                answered += self.ready(event, &mut unsent)?;
            }
        }
        Ok(Run { requests, wall: wall.elapsed(), generator: thread_time().saturating_sub(generator) })
    }

    /// Takes what has come on a connection; how many answers it completed.
    fn ready(&mut self, event: &Event, unsent: &mut u64) -> Result<u64, LoadError> {
        let Token(index) = event.token();
        let connection = &mut self.connections[index];
        if event.is_writable() {
            connection.send(&self.batch)?;
        }
        // The kernel reports writable for every new socket; only what can be read is worth a read.
        if !event.is_readable() && !event.is_read_closed() && !event.is_error() {
            return Ok(0);
        }
        let answered = connection.receive(&mut self.input, event.is_read_closed(), &mut self.checker)?;
        if self.connections[index].owed == 0 {
            self.send_batch(index, unsent)?;
        }
        Ok(answered)
    }

    fn send_batch(&mut self, index: usize, unsent: &mut u64) -> Result<(), LoadError> {
        let count = usize::try_from(*unsent).unwrap_or(usize::MAX).min(self.pipeline);
        *unsent -= count as u64;
        let connection = &mut self.connections[index];
        connection.owed = count;
        connection.to_send = 0..count * self.request_bytes;
        connection.send(&self.batch)
    }
}

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    /// Answers that have not come yet.
    owed: usize,
    /// The part of the batch that the socket has not taken yet.
    to_send: std::ops::Range<usize>,
    /// The beginning of an answer whose end has not come yet.
    begun: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr, poll: &Poll, token: Token) -> Result<Connection, LoadError> {
        let socket = net::TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)
            .map_err(|e| LoadError::Connect(address, e))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Connection { socket, owed: 0, to_send: 0..0, begun: Vec::new() })
    }

    fn send(&mut self, batch: &[u8]) -> Result<(), LoadError> {
        while !self.to_send.is_empty() {
            match self.socket.write(&batch[self.to_send.clone()]) {
                Ok(0) => return Err(LoadError::Closed(self.owed)),
                Ok(count) => self.to_send.start += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Reads until the socket is drained; how many answers that completed.
    fn receive(
        &mut self,
        input: &mut [u8],
        read_closed: bool,
        checker: &mut Checker,
    ) -> Result<u64, LoadError> {
        let mut answered = 0;
        loop {
            let count = match self.socket.read(input) {
                // With nothing owed that is the server's right; it shows at the next request if there is one.
                Ok(0) if self.owed == 0 => return Ok(answered),
                Ok(0) => return Err(LoadError::Closed(self.owed)),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(answered),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            answered += self.check(&input[..count], checker)?;
            if count < input.len() && !read_closed {
                return Ok(answered);
            }
        }
    }

    fn check(&mut self, input: &[u8], checker: &mut Checker) -> Result<u64, LoadError> {
        if self.begun.is_empty() {
            let (answered, length) = check_all(input, checker)?;
            self.begun.extend_from_slice(&input[length..]);
            return self.settle(answered);
        }
        self.begun.extend_from_slice(input);
        let (answered, length) = check_all(&self.begun, checker)?;
        self.begun.drain(..length);
        self.settle(answered)
    }

    fn settle(&mut self, answered: usize) -> Result<u64, LoadError> {
        self.owed = self.owed.checked_sub(answered).ok_or(LoadError::Surplus)?;
        if self.owed == 0 && !self.begun.is_empty() {
            return Err(LoadError::Surplus);
        }
        Ok(answered as u64)
    }
}

/// Checks all complete answers: how many there are, and where the last of them ends.
fn check_all(bytes: &[u8], checker: &mut Checker) -> Result<(usize, usize), WrongAnswer> {
    let (mut answered, mut end) = (0, 0);
    while end < bytes.len() {
        let Some(length) = checker.check(&bytes[end..])? else { break };
        answered += 1;
        end += length;
    }
    Ok((answered, end))
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::thread;

    use super::{Generator, LoadError, Run};

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

    /// Takes one connection, answers every four requests with `answer`, in pieces of so many bytes, and closes when the
    /// peer does or after so many answers.
    fn serve_fours(answer: String, piece: usize, times: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_nodelay(true).expect("a TCP socket");
            for _ in 0..times {
                let mut input = Vec::new();
                while !input.ends_with(b"\r\n\r\n") || input.split(|byte| *byte == b'G').count() < 5 {
                    let mut byte = [0];
                    if socket.read(&mut byte).unwrap_or(0) == 0 {
                        return;
                    }
                    input.push(byte[0]);
                }
                if answer.as_bytes().chunks(piece).any(|bytes| socket.write_all(bytes).is_err()) {
                    return;
                }
            }
        });
        address
    }

    fn run(answer: String, piece: usize, times: usize) -> Result<Run, LoadError> {
        Generator::connect(serve_fours(answer, piece, times), 1, 4)?.run(12)
    }

    #[test]
    fn answers_in_pieces_are_counted() {
        assert_eq!(run(ANSWER.repeat(4), 1, 3).expect("right answers").requests, 12);
    }

    #[test]
    fn too_many_answers_are_noticed() {
        match run(ANSWER.repeat(5), 1000, 3) {
            Err(LoadError::Surplus) => {}
            other => panic!("expected a surplus, got {other:?}"),
        }
    }

    #[test]
    fn a_wrong_answer_is_noticed() {
        match run(ANSWER.repeat(3) + &ANSWER.replace("World", "Moons"), 1, 3) {
            Err(LoadError::Answer(_)) => {}
            other => panic!("expected a wrong answer, got {other:?}"),
        }
    }

    #[test]
    fn a_closed_connection_is_noticed() {
        match run(ANSWER.repeat(4), 1000, 2) {
            // The kernel says the latter when our requests met the closed socket.
            Err(LoadError::Closed(4) | LoadError::Io(_)) => {}
            other => panic!("expected an end, got {other:?}"),
        }
    }
}
