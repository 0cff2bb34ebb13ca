//! One connection: it reads bytes, counts blank lines, and writes prepared responses.

use std::io::{self, Read, Write};

use mio::event::Event;
use mio::net::TcpStream;

use crate::answer::Answer;
use crate::requests::Requests;

/// The size of a read: several hundred hello requests, and well within the first-level cache.
const READ_BYTES: usize = 16 * 1024;

/// The longest request head held in pieces, in bytes. A longer one closes the connection; otherwise
/// all input of a peer that never sends a blank line would be kept.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Whether a connection goes on after an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Close,
}

/// Buffers that the connections of a loop share: only one connection runs at a time, and an idle
/// one needs no buffer.
pub(crate) struct Scratch {
    answer: Answer,
    input: Box<[u8]>,
    output: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new(answer: Answer) -> Scratch {
        Scratch { answer, input: vec![0; READ_BYTES].into_boxed_slice(), output: Vec::new() }
    }
}

pub(crate) struct Connection {
    socket: TcpStream,
    requests: Requests,
    /// Responses that the socket has not taken yet. While there are any, nothing is read: the peer
    /// must take its responses before it gets more.
    unsent: Vec<u8>,
    /// Whether there may be bytes in the socket for which there is no further edge.
    unread: bool,
    /// Whether the peer has ended its side, so that a short read no longer means that the socket is
    /// empty: the end of the stream is still to be read.
    read_closed: bool,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream) -> Connection {
        Connection {
            socket,
            requests: Requests::default(),
            unsent: Vec::new(),
            unread: false,
            read_closed: false,
        }
    }

    pub(crate) fn ready(&mut self, event: &Event, scratch: &mut Scratch) -> Fate {
        self.unread |= event.is_readable();
        self.read_closed |= event.is_read_closed() || event.is_error();
        self.unread |= self.read_closed;
        // An error of a socket ends only this connection. There is no log.
        self.advance(event.is_writable(), scratch).unwrap_or(Fate::Close)
    }

    fn advance(&mut self, writable: bool, scratch: &mut Scratch) -> io::Result<Fate> {
        if !self.unsent.is_empty() {
            let sent_all = writable && self.send_unsent()?;
            if !sent_all {
                return Ok(Fate::Keep);
            }
            if scratch.answer.close {
                return Ok(Fate::Close);
            }
        }
        while self.unread {
            let count = match self.socket.read(&mut scratch.input) {
                Ok(0) => return Ok(Fate::Close),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.unread = false;
                    break;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            // On plain TCP a short read means that the socket is empty, which saves the read that
            // would return `WouldBlock`.
            self.unread = count == scratch.input.len() || self.read_closed;
            let Scratch { answer, input, output } = scratch;
            let requests = self.requests.take(&input[..count]);
            if self.requests.begun_bytes() > HEAD_BYTES_MAX {
                return Ok(Fate::Close);
            }
            if requests == 0 {
                continue;
            }
            if !self.answer(requests, &answer.bytes, output)? {
                return Ok(Fate::Keep);
            }
            if answer.close {
                return Ok(Fate::Close);
            }
        }
        Ok(Fate::Keep)
    }

    /// Writes the responses. Returns `false` if some of them are left for when the socket is
    /// writable again.
    fn answer(&mut self, requests: usize, answer: &[u8], output: &mut Vec<u8>) -> io::Result<bool> {
        // Grown to the deepest pipeline seen so far; fewer responses are a prefix of it.
        while output.len() < requests * answer.len() {
            output.extend_from_slice(answer);
        }
        let answers = &output[..requests * answer.len()];
        let sent = write_some(&mut self.socket, answers)?;
        self.unsent.extend_from_slice(&answers[sent..]);
        Ok(self.unsent.is_empty())
    }

    fn send_unsent(&mut self) -> io::Result<bool> {
        let sent = write_some(&mut self.socket, &self.unsent)?;
        self.unsent.drain(..sent);
        if self.unsent.is_empty() {
            self.unsent = Vec::new();
        }
        Ok(self.unsent.is_empty())
    }
}

/// Writes until everything is sent or the socket takes no more. Returns how much it took.
fn write_some(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match socket.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(sent)
}
