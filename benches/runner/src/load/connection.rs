//! One connection of a load generator.

use std::io::{self, Read, Write};
use std::net::{self, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Poll, Token};
use rustix::net::{RecvFlags, recv};

use super::LoadError;
use crate::answer::{Answers, Checker};

/// How long it may take until a connection is accepted.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    /// The number of responses that have not arrived yet.
    owed: usize,
    /// Whether something was sent on it.
    used: bool,
    /// Whether requests were sent since all earlier ones were complete.
    under_way: bool,
    sent_at: Instant,
    /// The part of the batch that the socket has not taken yet.
    to_send: Range<usize>,
    answers: Answers,
}

/// The result of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// The number of responses that it completed.
    pub(super) answered: u64,
    /// Whether the server has ended the connection.
    pub(super) closed: bool,
}

impl Connection {
    /// Connects, and waits until the connection is established.
    pub(super) fn open(
        address: SocketAddr,
        poll: &Poll,
        token: Token,
    ) -> Result<Connection, LoadError> {
        let socket = net::TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)
            .map_err(|e| LoadError::Connect(address, e))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Connection::register(TcpStream::from_std(socket), poll, token)
    }

    /// Begins to connect; output waits until the connection is established.
    pub(super) fn begin(
        address: SocketAddr,
        poll: &Poll,
        token: Token,
    ) -> Result<Connection, LoadError> {
        let socket = TcpStream::connect(address).map_err(|e| LoadError::Connect(address, e))?;
        Connection::register(socket, poll, token)
    }

    fn register(mut socket: TcpStream, poll: &Poll, token: Token) -> Result<Connection, LoadError> {
        poll.registry().register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Connection {
            socket,
            owed: 0,
            used: false,
            under_way: false,
            sent_at: Instant::now(),
            to_send: 0..0,
            answers: Answers::default(),
        })
    }

    /// Starts to send this many requests, which have this many bytes together.
    pub(super) fn start_batch(&mut self, requests: usize, bytes: usize) {
        self.owed = requests;
        self.used = true;
        self.under_way = true;
        self.sent_at = Instant::now();
        self.to_send = 0..bytes;
    }

    /// Notes that all requests are complete.
    pub(super) fn finish_batch(&mut self) {
        self.under_way = false;
    }

    pub(super) fn has_all_answers(&self) -> bool {
        self.owed == 0
    }

    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.under_way
    }

    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Sends as much of the remaining output as the socket takes.
    pub(super) fn send(&mut self, batch: &[u8]) -> Result<(), LoadError> {
        while !self.to_send.is_empty() {
            match self.socket.write(&batch[self.to_send.clone()]) {
                Ok(0) => return Err(LoadError::Closed(self.owed)),
                Ok(count) => self.to_send.start += count,
                // The latter if it is not connected yet.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
                    ) =>
                {
                    break;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Reads until the socket is empty.
    pub(super) fn receive(
        &mut self,
        input: &mut [u8],
        read_closed: bool,
        checker: &mut Checker,
    ) -> Result<Progress, LoadError> {
        let mut answered = 0;
        loop {
            // Bytes that need not be checked stay in the kernel (tcp(7), MSG_TRUNC).
            let skippable = self.answers.skippable().min(input.len());
            let (asked, result) = match skippable {
                0 => (input.len(), self.socket.read(input)),
                left => (left, discard(&self.socket, &mut input[..left])),
            };
            let count = match result {
                // If no response is expected, the server may do this. It is noticed at the next
                // request, if there is one.
                Ok(0) if self.owed == 0 => return Ok(Progress { answered, closed: true }),
                Ok(0) => return Err(LoadError::Closed(self.owed)),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress { answered, closed: false });
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            let complete = match skippable {
                0 => self.answers.take(&input[..count], checker)?,
                _ => self.answers.skip(count),
            };
            self.owed = self.owed.checked_sub(complete).ok_or(LoadError::Surplus)?;
            if self.owed == 0 && self.answers.is_within_answer() {
                return Err(LoadError::Surplus);
            }
            answered += complete as u64;
            if count < asked && !read_closed {
                return Ok(Progress { answered, closed: false });
            }
        }
    }
}

/// Reads and discards at most as many bytes as fit into `room`, without copying them if the system
/// supports that.
fn discard(socket: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    let flags = if cfg!(target_os = "linux") { RecvFlags::TRUNC } else { RecvFlags::empty() };
    let (_, count) = recv(socket, room, flags)?;
    Ok(count)
}
