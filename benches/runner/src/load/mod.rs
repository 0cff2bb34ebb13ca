//! A load generator that checks every response, for a number of requests or for a time.
//!
//! It is single-threaded and a closed loop: each connection sends as many requests as the pipeline
//! is deep, waits for all responses, checks them, and goes on while requests are left. It stops
//! when a server stops answering, and never repeats a request. [`open_loop`] sends at a constant
//! rate instead; [`held`] keeps connections in some state meanwhile; [`wrk`] runs the program of
//! that name.

mod connection;
pub mod held;
pub mod open_loop;
pub mod wrk;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll, Token};
use quick_error::quick_error;
use rustix::time::{ClockId, clock_gettime};

use crate::answer::{BODY, Checker, WrongAnswer};
use crate::histogram::Histogram;
use connection::{Connection, Progress};

/// How long the generator waits without any input from the server before it gives up. A server
/// under valgrind is fifty times slower than usual, and still answers within this time.
const SILENCE_MAX: Duration = Duration::from_secs(60);

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
        /// The server closed a connection on which responses were expected.
        Closed(owed: usize) {
            display("the server closed a connection with {} answers owed", owed)
        }
        /// The server sent more than was requested.
        Surplus {
            display("the server sent more answers than it got requests")
        }
        /// The server stopped answering.
        Silent(answered: u64, requests: u64) {
            display("the server went silent after {} of {} answers", answered, requests)
        }
        /// An external generator reported errors.
        Outside(what: String) {
            display("{}", what)
        }
        /// A system call failed.
        Io(error: io::Error) {
            display("the load generator failed")
            from()
            source(error)
        }
    }
}

/// A request and the expected response.
#[derive(Debug, Clone)]
pub struct Exchange {
    head: String,
    request_body: Vec<u8>,
    answer_body: Vec<u8>,
    close: bool,
}

impl Exchange {
    /// Makes a `GET /`, answered with [`BODY`].
    pub fn hello(address: SocketAddr) -> Exchange {
        Exchange::get(address, "/", BODY.to_vec())
    }

    /// Makes a `GET` of a path, answered with a body.
    pub fn get(address: SocketAddr, path: &str, answer_body: Vec<u8>) -> Exchange {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        Exchange { head, request_body: Vec::new(), answer_body, close: false }
    }

    /// Makes a `POST /` with a body, answered with [`BODY`].
    pub fn post(address: SocketAddr, request_body: Vec<u8>) -> Exchange {
        let length = request_body.len();
        let head = format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n");
        Exchange { head, request_body, answer_body: BODY.to_vec(), close: false }
    }

    /// Sets another body for the response.
    pub fn answered_with(mut self, answer_body: Vec<u8>) -> Exchange {
        self.answer_body = answer_body;
        self
    }

    /// Sets that the server must close the connection after its response.
    pub fn closing(mut self) -> Exchange {
        self.head.push_str("Connection: close\r\n");
        self.close = true;
        self
    }

    /// Returns the bytes to send.
    fn request(&self) -> Vec<u8> {
        [self.head.as_bytes(), b"\r\n", &self.request_body].concat()
    }
}

/// The result of a run of requests.
#[derive(Debug, Clone)]
pub struct Run {
    /// The number of requests sent and responses checked.
    pub requests: u64,
    /// The time from the first request to the last response.
    pub wall: Duration,
    /// CPU time of the generator. If it is close to `wall`, the generator was the bottleneck, not
    /// the server.
    pub generator: Duration,
    /// The time from sending a request, or the batch in which it is, to its response.
    pub latency: Histogram,
}

/// Connections to one server, ready to send.
#[derive(Debug)]
pub struct Generator {
    poll: Poll,
    address: SocketAddr,
    connections: Vec<Connection>,
    /// As many requests as the pipeline is deep.
    batch: Vec<u8>,
    request_bytes: usize,
    pipeline: usize,
    /// Whether each connection is for one request.
    close: bool,
    checker: Checker,
    input: Box<[u8]>,
}

impl Generator {
    /// Opens `connections`, each of which will have up to `pipeline` simultaneous hello requests.
    ///
    /// # Errors
    ///
    /// The server does not accept a connection.
    pub fn connect(
        address: SocketAddr,
        connections: usize,
        pipeline: usize,
    ) -> Result<Generator, LoadError> {
        Generator::open(address, connections, pipeline, Exchange::hello(address))
    }

    /// Opens connections for another exchange than hello. An exchange that closes the connection
    /// has no pipeline.
    ///
    /// # Errors
    ///
    /// The server does not accept a connection.
    pub fn open(
        address: SocketAddr,
        connections: usize,
        pipeline: usize,
        exchange: Exchange,
    ) -> Result<Generator, LoadError> {
        const INPUT_BYTES: usize = 1024 * 1024;
        let poll = Poll::new()?;
        let connections = (0..connections)
            .map(|index| Connection::open(address, &poll, Token(index)))
            .collect::<Result<_, _>>()?;
        let pipeline = if exchange.close { 1 } else { pipeline };
        let request = exchange.request();
        Ok(Generator {
            poll,
            address,
            connections,
            request_bytes: request.len(),
            batch: request.repeat(pipeline),
            pipeline,
            close: exchange.close,
            checker: Checker::new(exchange.answer_body),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
        })
    }

    /// Sends `requests` over all connections together and checks every response. May be called
    /// again.
    ///
    /// # Errors
    ///
    /// A response is wrong or does not arrive. The connections cannot be used any more.
    pub fn run(&mut self, requests: u64) -> Result<Run, LoadError> {
        self.run_until(requests, None)
    }

    /// Sends requests for this time and checks every response. May be called again.
    ///
    /// # Errors
    ///
    /// As for [`run`](Generator::run).
    pub fn run_for(&mut self, time: Duration) -> Result<Run, LoadError> {
        self.run_until(u64::MAX, Some(Instant::now() + time))
    }

    fn run_until(&mut self, requests: u64, until: Option<Instant>) -> Result<Run, LoadError> {
        let (start, generator) = (Instant::now(), thread_time());
        let mut work =
            Work { unsent: requests, sent: 0, answered: 0, latency: Histogram::default() };
        for index in 0..self.connections.len() {
            self.send_batch(index, &mut work)?;
        }
        let mut events = Events::with_capacity(1024);
        while work.answered < work.sent {
            wait(&mut self.poll, &mut events, SILENCE_MAX)?;
            if events.is_empty() {
                return Err(LoadError::Silent(work.answered, work.sent));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                work.unsent = 0;
            }
            for event in &events {
                self.ready(event, &mut work)?;
            }
        }
        let Work { answered, latency, .. } = work;
        Ok(Run {
            requests: answered,
            wall: start.elapsed(),
            generator: thread_time().saturating_sub(generator),
            latency,
        })
    }

    /// Reads from a connection, and sends the next requests if no more responses are expected.
    fn ready(&mut self, event: &Event, work: &mut Work) -> Result<(), LoadError> {
        let Token(index) = event.token();
        let Some(Progress { answered, closed }) = self.receive(event)? else { return Ok(()) };
        let connection = &mut self.connections[index];
        // If a connection is for one request, its end is part of the response.
        let is_complete = connection.has_all_answers() && (closed || !self.close);
        let counted =
            if self.close { u64::from(is_complete && connection.is_in_flight()) } else { answered };
        if counted > 0 {
            work.answered += counted;
            work.latency.record_many(connection.sent_at().elapsed(), counted);
        }
        if is_complete && connection.is_in_flight() {
            connection.finish_batch();
            self.send_batch(index, work)?;
        }
        Ok(())
    }

    /// Sends the remaining output and reads what is available; `None` if there is nothing to read.
    fn receive(&mut self, event: &Event) -> Result<Option<Progress>, LoadError> {
        let Token(index) = event.token();
        let connection = &mut self.connections[index];
        if event.is_writable() {
            connection.send(&self.batch)?;
        }
        // The kernel reports every new socket as writable; only a readable one is worth a read.
        if !event.is_readable() && !event.is_read_closed() && !event.is_error() {
            return Ok(None);
        }
        connection.receive(&mut self.input, event.is_read_closed(), &mut self.checker).map(Some)
    }

    fn send_batch(&mut self, index: usize, work: &mut Work) -> Result<(), LoadError> {
        let count = usize::try_from(work.unsent).unwrap_or(usize::MAX).min(self.pipeline);
        if count == 0 {
            return Ok(());
        }
        if self.close && self.connections[index].is_used() {
            self.connections[index] = Connection::begin(self.address, &self.poll, Token(index))?;
        }
        work.unsent -= count as u64;
        work.sent += count as u64;
        let connection = &mut self.connections[index];
        connection.start_batch(count, count * self.request_bytes);
        connection.send(&self.batch)
    }
}

/// What a run has done, and what is left.
struct Work {
    unsent: u64,
    sent: u64,
    answered: u64,
    latency: Histogram,
}

/// Waits. A signal does not end the run.
fn wait(poll: &mut Poll, events: &mut Events, time_max: Duration) -> io::Result<()> {
    loop {
        match poll.poll(events, Some(time_max)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
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
    use std::time::Duration;

    use super::{Exchange, Generator, LoadError, Run};

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

    /// Accepts one connection and sends `answer` once per four requests, in pieces of `piece`
    /// bytes. Closes after `times` answers, or when the peer closes.
    fn serve_fours(answer: String, piece: usize, times: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_nodelay(true).expect("a TCP socket");
            for _ in 0..times {
                let mut input = Vec::new();
                while !input.ends_with(b"\r\n\r\n") || input.split(|byte| *byte == b'G').count() < 5
                {
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
    fn a_run_for_a_time_ends_with_all_answers() {
        let mut generator =
            Generator::connect(serve_fours(ANSWER.repeat(4), 1000, usize::MAX), 1, 4)
                .expect("it listens");
        let run = generator.run_for(Duration::from_millis(20)).expect("right answers");
        assert!(run.requests >= 4 && run.requests.is_multiple_of(4), "{}", run.requests);
        assert_eq!(run.latency.total(), run.requests);
    }

    #[test]
    fn a_connection_for_each_request_is_closed_by_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.expect("a connection");
                let mut input = [0; 1000];
                let count = socket.read(&mut input).expect("a request");
                assert!(input[..count].ends_with(b"\r\nConnection: close\r\n\r\n"));
                socket.write_all(ANSWER.as_bytes()).expect("the client reads");
            }
        });
        let mut generator =
            Generator::open(address, 3, 1, Exchange::hello(address).closing()).expect("it listens");
        for _ in 0..2 {
            assert_eq!(generator.run(100).expect("right answers").requests, 100);
        }
    }

    #[test]
    fn too_many_answers_are_detected() {
        match run(ANSWER.repeat(5), 1000, 3) {
            Err(LoadError::Surplus) => {}
            other => panic!("expected a surplus, got {other:?}"),
        }
    }

    #[test]
    fn a_wrong_answer_is_detected() {
        match run(ANSWER.repeat(3) + &ANSWER.replace("World", "Moons"), 1, 3) {
            Err(LoadError::Answer(_)) => {}
            other => panic!("expected a wrong answer, got {other:?}"),
        }
    }

    #[test]
    fn a_closed_connection_is_detected() {
        match run(ANSWER.repeat(4), 1000, 2) {
            // The kernel reports an error if our requests reached the closed socket.
            Err(LoadError::Closed(4) | LoadError::Io(_)) => {}
            other => panic!("expected an end, got {other:?}"),
        }
    }
}
