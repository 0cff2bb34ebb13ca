//! Connections that are kept in some state while others are measured: ways in which real clients
//! cost a server something without making requests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::{Exchange, Generator, LoadError};
use crate::answer::{Answers, Checker};

/// How long a server may keep a reader of a large body waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// The receive buffer of clients that read slowly or not at all, in bytes. It is small, so that
/// what they do not read stays with the server. The kernel doubles it.
const RECEIVE_BUFFER_BYTES: usize = 4096;

/// Connections that have had one response and make no further requests.
#[derive(Debug)]
pub struct Idle(Generator, u64);

impl Idle {
    /// Opens this many connections and makes a hello request on each.
    ///
    /// # Errors
    ///
    /// A connection is not accepted, or a request not answered.
    pub fn open(address: SocketAddr, connections: usize) -> Result<Idle, LoadError> {
        let mut generator = Generator::connect(address, connections, 1)?;
        generator.run(connections as u64)?;
        Ok(Idle(generator, connections as u64))
    }

    /// Makes a hello request on each connection again, which shows that the server has kept them
    /// all.
    ///
    /// # Errors
    ///
    /// A request is not answered.
    pub fn finish(mut self) -> Result<(), LoadError> {
        self.0.run(self.1).map(drop)
    }
}

/// Connections on which the client has read the first half of a response and does not read on.
#[derive(Debug)]
pub struct HalfAnswers {
    sockets: Vec<(TcpStream, Answers)>,
    checker: Checker,
    answer_bytes: usize,
}

impl HalfAnswers {
    /// Opens this many connections, makes a request on each, and reads half of each response's
    /// body.
    ///
    /// # Errors
    ///
    /// A connection is not accepted, or the first half is wrong or does not arrive.
    pub fn open(
        address: SocketAddr,
        connections: usize,
        exchange: &Exchange,
    ) -> Result<HalfAnswers, LoadError> {
        let mut held = HalfAnswers {
            sockets: Vec::with_capacity(connections),
            checker: Checker::new(exchange.answer_body.clone()),
            answer_bytes: exchange.answer_body.len(),
        };
        let request = exchange.request();
        for _ in 0..connections {
            let mut socket = connect_slow(address)?;
            socket.write_all(&request)?;
            held.sockets.push((socket, Answers::default()));
        }
        for index in 0..connections {
            held.read(index, held.answer_bytes / 2)?;
        }
        Ok(held)
    }

    /// Reads the second halves.
    ///
    /// # Errors
    ///
    /// A second half is wrong or does not arrive.
    pub fn finish(mut self) -> Result<(), LoadError> {
        (0..self.sockets.len()).try_for_each(|index| self.read(index, usize::MAX))
    }

    /// Reads this many bytes, or up to the end of the response.
    fn read(&mut self, index: usize, mut bytes: usize) -> Result<(), LoadError> {
        let (socket, answers) = &mut self.sockets[index];
        let mut input = [0; RECEIVE_BUFFER_BYTES];
        while bytes > 0 {
            let count = socket.read(&mut input[..bytes.min(RECEIVE_BUFFER_BYTES)])?;
            if count == 0 {
                return Err(LoadError::Closed(1));
            }
            bytes -= count;
            if answers.take(&input[..count], &mut self.checker)? > 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Clients that request a large body again and again and read it a little at a time, on a thread of
/// their own.
#[derive(Debug)]
pub struct SlowReaders {
    connections: u64,
    is_over: Arc<AtomicBool>,
    /// The number of responses that were read so far.
    answered: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), LoadError>>,
}

impl SlowReaders {
    /// How much each client reads at a time.
    const STEP_BYTES: usize = 4096;

    /// The time between two reads: with the step, 200 KiB a second for each reader.
    const STEP_TIME: Duration = Duration::from_millis(20);

    /// Starts this many clients.
    ///
    /// # Errors
    ///
    /// A connection is not accepted.
    pub fn start(
        address: SocketAddr,
        connections: usize,
        exchange: &Exchange,
    ) -> Result<SlowReaders, LoadError> {
        let mut sockets = Vec::with_capacity(connections);
        for _ in 0..connections {
            let socket = connect_slow(address)?;
            socket.set_nonblocking(true)?;
            sockets.push((socket, Answers::default(), true));
        }
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (request, checker) = (exchange.request(), Checker::new(exchange.answer_body.clone()));
        let thread = thread::spawn({
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            move || SlowReaders::read(&mut sockets, &request, checker, &is_over, &answered)
        });
        Ok(SlowReaders { connections: connections as u64, is_over, answered, thread })
    }

    fn read(
        sockets: &mut [(TcpStream, Answers, bool)],
        request: &[u8],
        mut checker: Checker,
        is_over: &AtomicBool,
        answered: &AtomicU64,
    ) -> Result<(), LoadError> {
        let mut input = [0; SlowReaders::STEP_BYTES];
        while !is_over.load(Ordering::Relaxed) {
            for (socket, answers, asks) in &mut *sockets {
                if *asks {
                    socket.write_all(request)?; // Of a few bytes, for which an idle socket has room.
                    *asks = false;
                }
                match socket.read(&mut input) {
                    Ok(0) => return Err(LoadError::Closed(1)),
                    Ok(count) if answers.take(&input[..count], &mut checker)? > 0 => {
                        answered.fetch_add(1, Ordering::Relaxed);
                        *asks = true;
                    }
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(e.into()),
                }
            }
            thread::sleep(SlowReaders::STEP_TIME);
        }
        Ok(())
    }

    /// Stops the clients. Returns how many responses they have read, all of them correct.
    ///
    /// # Errors
    ///
    /// A response was wrong, its connection ended, or no response has come to its end.
    pub fn finish(self) -> Result<u64, LoadError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| LoadError::Io(io::Error::other("the slow readers panicked")))??;
        match self.answered.load(Ordering::Relaxed) {
            0 => Err(LoadError::Silent(0, self.connections)),
            answered => Ok(answered),
        }
    }
}

/// Connects with a small receive buffer. It must be set first, because it limits the window that is
/// announced to the server.
fn connect_slow(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.connect(&address.into())?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::{HalfAnswers, Idle, LoadError, SlowReaders};
    use crate::load::Exchange;

    fn body() -> Vec<u8> {
        (b'a'..=b'z').cycle().take(16 * 1024).collect()
    }

    /// Responds to every request with a body. Each connection has its own thread.
    fn serve(body: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let answer = [head.as_bytes(), &body].concat();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (mut socket, answer) = (socket.expect("a connection"), answer.clone());
                thread::spawn(move || {
                    let mut input = [0; 1000];
                    while socket.read(&mut input).is_ok_and(|count| count > 0) {
                        if socket.write_all(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    #[test]
    fn idle_connections_are_still_open_at_the_end() {
        let idle = Idle::open(serve(b"Hello, World!".to_vec()), 10).expect("it answers");
        idle.finish().expect("it answers again");
    }

    #[test]
    fn half_answers_are_read_and_then_the_rest() {
        let address = serve(body());
        let held = HalfAnswers::open(address, 10, &Exchange::get(address, "/", body()))
            .expect("it answers");
        held.finish().expect("the rest is right");
    }

    #[test]
    fn a_wrong_second_half_is_detected() {
        let mut wrong = body();
        *wrong.last_mut().expect("not empty") ^= 1;
        let address = serve(wrong);
        let held = HalfAnswers::open(address, 1, &Exchange::get(address, "/", body()))
            .expect("the half is right");
        assert!(held.finish().is_err());
    }

    #[test]
    fn slow_readers_that_get_no_answer_are_detected() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let readers = SlowReaders::start(address, 2, &Exchange::get(address, "/", body()))
            .expect("it listens");
        match readers.finish() {
            Err(LoadError::Silent(0, 2)) => {}
            other => panic!("expected silence, got {other:?}"),
        }
    }

    #[test]
    fn slow_readers_read_whole_answers() {
        let address = serve(body());
        let readers = SlowReaders::start(address, 4, &Exchange::get(address, "/", body()))
            .expect("it listens");
        while readers.answered.load(Ordering::Relaxed) == 0 && !readers.thread.is_finished() {
            thread::yield_now();
        }
        assert!(readers.finish().expect("right answers") > 0);
    }
}
