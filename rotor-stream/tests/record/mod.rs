//! A wrapping socket, similar to TLS: it has a handshake, uses records, changes its key during the
//! connection, and closes with its own record. The cipher is one byte; everything else is as
//! awkward as in the real protocol.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::any::Any;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::{Shutdown, SocketAddr};

use rotor_core::net::StreamSocket;
use rotor_core::{Future, Outcome, Scope, Source};

/// The maximum payload of a record, in bytes.
const PAYLOAD_MAX: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The client names a protocol.
    Hello = 1,
    /// The server agrees.
    Welcome = 2,
    Data = 3,
    /// Switches to another key; must be answered before anything else is read.
    NewKey = 4,
    KeyTaken = 5,
    Close = 6,
    /// The handshake has failed; the payload is the reason.
    Alert = 7,
}

/// Encodes a record: its kind, the length of its payload, the payload encrypted with the key.
pub(crate) fn encode(kind: Kind, payload: &[u8], key: u8) -> Vec<u8> {
    let mut record = vec![kind as u8, payload.len() as u8];
    record.extend(payload.iter().map(|byte| byte ^ key));
    record
}

/// What the two ends have negotiated.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) protocol: Vec<u8>,
}

enum HandshakeState {
    /// A server waits for the client's hello.
    AwaitsHello,
    /// A server has read the hello.
    MustSendWelcome,
    /// A client waits for the server's welcome.
    AwaitsWelcome,
    Done,
    /// Input is not decoded any more.
    Failed,
}

pub(crate) struct Record<S> {
    inner: S,
    handshake_state: HandshakeState,
    session: Session,
    /// Bytes of records that are not decoded yet.
    encoded: Vec<u8>,
    /// Decoded bytes that are not read yet.
    decoded: Vec<u8>,
    /// Records, or parts of them, that the inner socket has not accepted yet.
    unsent: Vec<u8>,
    /// The maximum number of bytes per read of the inner socket.
    read_max: usize,
    /// The last read of the inner socket returned less than requested.
    was_short: bool,
    read_key: u8,
    write_key: u8,
    /// The answer to a key change is among the unsent bytes: nothing is read before it is sent.
    answer_is_unsent: bool,
    /// A key change was sent: nothing is written before its answer is read.
    awaits_answer: bool,
    /// How many records this side sends before the one that is followed by a key change.
    records_until_new_key: Option<usize>,
    is_closed: bool,
    close_sent: bool,
    /// Whether signals come: then every other call, apart from reads and writes, is interrupted.
    has_signals: bool,
    was_interrupted: bool,
    job: Job,
}

/// Work on another thread that a handshake waits for, as a signature may be.
enum Job {
    None,
    /// To be started once the hello has been read.
    Wanted(Box<dyn FnOnce() + Send>),
    Running(Future<()>),
}

impl<S: StreamSocket> Record<S> {
    fn new(inner: S, handshake_state: HandshakeState) -> Record<S> {
        Record {
            inner,
            handshake_state,
            session: Session { protocol: Vec::new() },
            encoded: Vec::new(),
            decoded: Vec::new(),
            unsent: Vec::new(),
            read_max: 7,
            was_short: false,
            read_key: 0x55,
            write_key: 0x55,
            answer_is_unsent: false,
            awaits_answer: false,
            records_until_new_key: None,
            is_closed: false,
            close_sent: false,
            has_signals: false,
            was_interrupted: false,
            job: Job::None,
        }
    }

    pub(crate) fn server(inner: S) -> Record<S> {
        Record::new(inner, HandshakeState::AwaitsHello)
    }

    pub(crate) fn client(inner: S, protocol: &[u8]) -> Record<S> {
        let mut record = Record::new(inner, HandshakeState::AwaitsWelcome);
        record.session.protocol = protocol.to_vec();
        record.unsent = encode(Kind::Hello, protocol, 0x55);
        record
    }

    /// Makes this side change its key after `records + 1` records, and then after every third one.
    pub(crate) fn change_key_after(mut self, records: usize) -> Record<S> {
        self.records_until_new_key = Some(records);
        self
    }

    /// Makes this side read up to this many bytes at a time, even beyond its handshake.
    pub(crate) fn with_read_max(mut self, read_max: usize) -> Record<S> {
        self.read_max = read_max;
        self
    }

    /// Makes a signal interrupt every handshake and every shutdown.
    pub(crate) fn with_signals(mut self) -> Record<S> {
        self.has_signals = true;
        self
    }

    /// Makes a server's handshake wait until another thread has done this work.
    pub(crate) fn with_job(mut self, work: impl FnOnce() + Send + 'static) -> Record<S> {
        self.job = Job::Wanted(Box::new(work));
        self
    }

    /// The handshake has failed: tells the peer, if the peer accepts it.
    fn fail(&mut self, why: &str) -> io::Error {
        self.handshake_state = HandshakeState::Failed;
        self.unsent = encode(Kind::Alert, why.as_bytes(), 0x55);
        // If not everything is sent, `flush` continues.
        let _is_sent = self.send_unsent();
        io::Error::new(ErrorKind::InvalidData, why)
    }

    /// Starts the job if needed, and returns whether it is done. If the queue has no room for it,
    /// it is skipped.
    fn is_job_done<C>(&mut self, scope: &Scope<'_, C>) -> bool {
        let future = match mem::replace(&mut self.job, Job::None) {
            Job::None => return true,
            Job::Wanted(work) => scope.offload(work).ok(),
            Job::Running(future) => Some(future),
        };
        match future.map(Future::take) {
            Some(Outcome::Pending(future)) => self.job = Job::Running(future),
            _ => return true,
        }
        false
    }

    fn simulate_signal(&mut self) -> io::Result<()> {
        self.was_interrupted = self.has_signals && !self.was_interrupted;
        if self.was_interrupted { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    fn send_unsent(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let count = self.inner.write(&self.unsent)?;
            self.unsent.drain(..count);
        }
        self.answer_is_unsent = false;
        self.inner.flush()
    }

    /// The next complete record; reads as much as needed.
    fn next_record(&mut self) -> io::Result<(u8, Vec<u8>)> {
        loop {
            if let [kind, len, rest @ ..] = &self.encoded[..]
                && let Some(payload) = rest.get(..usize::from(*len))
            {
                let decoded = (*kind, payload.iter().map(|byte| byte ^ self.read_key).collect());
                let used = 2 + usize::from(*len);
                self.encoded.drain(..used);
                return Ok(decoded);
            }
            let mut chunk = vec![0; self.read_max];
            let count = self.inner.read(&mut chunk)?;
            self.was_short = count < self.read_max;
            match count {
                0 => {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "no close record before the end",
                    ));
                }
                count => self.encoded.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// Decodes one record, but first sends a pending answer to a key change.
    fn decode_one(&mut self) -> io::Result<()> {
        if self.answer_is_unsent {
            self.send_unsent()?;
        }
        match self.next_record()? {
            (kind, payload) if kind == Kind::Data as u8 => self.decoded.extend(payload),
            (kind, payload) if kind == Kind::NewKey as u8 => {
                self.read_key = payload.first().copied().unwrap_or_default();
                self.unsent.extend(encode(Kind::KeyTaken, b"", self.write_key));
                self.answer_is_unsent = true;
            }
            (kind, _) if kind == Kind::KeyTaken as u8 && self.awaits_answer => {
                self.awaits_answer = false
            }
            (kind, _) if kind == Kind::Close as u8 => self.is_closed = true,
            (kind, _) => {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    format!("a record of kind {kind}"),
                ));
            }
        }
        Ok(())
    }
}

impl<S: StreamSocket> Read for Record<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let HandshakeState::Failed = self.handshake_state {
            return self.inner.read(buffer);
        }
        // A short read before the latest event no longer counts.
        self.was_short = false;
        while self.decoded.is_empty() && !self.is_closed {
            self.decode_one()?;
        }
        let count = buffer.len().min(self.decoded.len());
        for (slot, byte) in buffer.iter_mut().zip(self.decoded.drain(..count)) {
            *slot = byte;
        }
        Ok(count)
    }
}

impl<S: StreamSocket> Write for Record<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_unsent()?;
        while self.awaits_answer {
            // Data that came before the answer must be read first.
            if !self.decoded.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.decode_one()?;
        }
        self.send_unsent()?;
        let payload = &bytes[..bytes.len().min(PAYLOAD_MAX)];
        self.unsent = encode(Kind::Data, payload, self.write_key);
        match &mut self.records_until_new_key {
            Some(0) => {
                self.records_until_new_key = Some(2);
                let key = self.write_key.wrapping_mul(31).wrapping_add(7);
                self.unsent.extend(encode(Kind::NewKey, &[key], self.write_key));
                self.write_key = key;
                self.awaits_answer = true;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        match self.send_unsent() {
            // The payload is accepted even if it is not sent: `flush` continues. On an error the
            // caller would write it a second time.
            Ok(()) => Ok(payload.len()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(payload.len())
            }
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_unsent()
    }
}

impl<S: Source> Source for Record<S> {
    rotor_core::rotor_forward_source!(inner);
}

impl<S: StreamSocket> StreamSocket for Record<S> {
    type Target = S::Target;

    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        S::connect(target, scope).map(|inner| Record::client(inner, b"echo"))
    }

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        self.simulate_signal()?;
        self.send_unsent()?;
        match self.handshake_state {
            HandshakeState::AwaitsHello => {
                let (kind, protocol) = self.next_record()?;
                if kind != Kind::Hello as u8 {
                    return Err(self.fail("no hello"));
                }
                self.session.protocol = protocol;
                self.handshake_state = HandshakeState::MustSendWelcome;
                self.handshake(scope)
            }
            HandshakeState::MustSendWelcome => {
                if !self.is_job_done(scope) {
                    return Err(ErrorKind::WouldBlock.into());
                }
                self.unsent = encode(Kind::Welcome, b"", self.write_key);
                self.handshake_state = HandshakeState::Done;
                self.send_unsent()
            }
            HandshakeState::AwaitsWelcome => {
                let (kind, _) = self.next_record()?;
                if kind != Kind::Welcome as u8 {
                    return Err(self.fail("no welcome"));
                }
                self.handshake_state = HandshakeState::Done;
                Ok(())
            }
            HandshakeState::Done | HandshakeState::Failed => Ok(()),
        }
    }

    fn cancel_handshake(&mut self) -> bool {
        let has_begun = !self.encoded.is_empty();
        if has_begun {
            let _says_why = self.fail("late");
        }
        has_begun
    }

    fn negotiated(&self) -> Option<&[u8]> {
        matches!(self.handshake_state, HandshakeState::Done).then_some(&self.session.protocol)
    }

    fn session(&self) -> Option<&dyn Any> {
        matches!(self.handshake_state, HandshakeState::Done).then_some(&self.session as &dyn Any)
    }

    fn is_secure(&self) -> bool {
        matches!(self.handshake_state, HandshakeState::Done)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.simulate_signal()?;
        if !self.close_sent && !matches!(self.handshake_state, HandshakeState::Failed) {
            assert!(
                self.unsent.is_empty(),
                "a stream flushes what a wrapper holds before it closes"
            );
            self.unsent.extend(encode(Kind::Close, b"", self.write_key));
            self.close_sent = true;
        }
        self.send_unsent()?;
        self.inner.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.inner.local_address()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.inner.take_error()
    }

    fn is_connected(&self) -> bool {
        self.inner.is_connected()
    }

    fn holds_input(&self) -> bool {
        !self.encoded.is_empty() || !self.decoded.is_empty()
    }

    fn short_read_drains(&self) -> bool {
        self.was_short && !self.holds_input() && self.inner.short_read_drains()
    }

    fn wants_read(&self) -> bool {
        self.awaits_answer
    }

    fn wants_write(&self) -> bool {
        !self.unsent.is_empty()
    }
}
