//! `Connection`: a connection with an engine, its received bytes, and the bytes to be sent.
//! `writing` sends them.

mod record_pieces;
mod writing;

use std::io::{self, ErrorKind};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::Permit;
use rotor_core::net::StreamSocket;
use rotor_stream::Buf;

use crate::clock;
use crate::counters::{HandshakeGuard, TlsCounters};
use crate::engine::{Engine, EngineState};
use crate::error::{TlsError, is_retryable};
use crate::incoming::Incoming;
use crate::non_tls_server::is_record;
use crate::sealed::WRITE_BYTES_MAX;
use crate::session::TlsSession;

pub(crate) use self::writing::flush;

/// The maximum number of bytes of consecutive records without a byte of data: 16 of the longest
/// records. The records of a handshake, after the hello, count too: its messages are at most 64 KiB
/// long, which in records of one byte would be 1.5 MiB. After the handshake, key updates and
/// tickets are also limited by rustls; what remains are records that hold nothing, or only padding.
pub const EMPTY_BYTES_MAX: usize = 256 * 1024;

/// The maximum number of bytes that may wait to be written while more is read. One write may wait,
/// since the peer may take it only after its own bytes are read. As much again is for automatic
/// answers to the peer (warnings), which it could otherwise cause without limit.
const OUTGOING_BYTES_MAX: usize = 2 * WRITE_BYTES_MAX;

pub(crate) struct Connection {
    pub(crate) session: TlsSession,
    pub(crate) incoming: Incoming,
    /// Plaintext that was decoded and not yet read, because it did not fit into the reader's
    /// buffer.
    plain: Buf,
    /// Records that the inner socket has not taken yet.
    pub(crate) outgoing: Buf,
    /// Whether the inner socket refused them the last time.
    is_write_blocked: bool,
    /// How many bytes have arrived since the last byte of data.
    empty_bytes: usize,
    /// How many bytes of records the last read has decoded.
    read_cost: usize,
    read_side: ReadSide,
    /// Why the connection has failed, until that is reported.
    failure: Option<Box<TlsError>>,
    /// Whether an alert with the reason was made.
    has_alert: bool,
    close_sent: bool,
    /// Whether the connection was counted as over without the peer's `close_notify`.
    is_truncated: bool,
    /// When a client's handshake ended. It is the date of later tickets, which may be processed on
    /// another thread.
    opened: Option<Duration>,
    counters: Arc<TlsCounters>,
    /// Present during the handshake.
    pub(crate) handshake: Option<Handshake>,
}

/// What a handshake holds until it is over.
pub(crate) struct Handshake {
    pub(crate) guard: HandshakeGuard,
    /// Its place among the handshakes under way, if they are limited.
    pub(crate) _permit: Option<Permit>,
    /// Whether another thread should make its signatures.
    pub(crate) is_slow: bool,
    /// Whether the client must have presented a certificate, now or when its session began.
    pub(crate) requires_certificate: bool,
    /// When the session began that is resumed.
    pub(crate) session_began: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadSide {
    Open,
    /// The peer has ended its side.
    Closed,
    /// The inner socket has ended, but the peer had not ended its side.
    Truncated,
    /// The received bytes cannot be read.
    Broken,
}

impl Connection {
    pub(crate) fn new(
        engine: Engine,
        server_name: Option<Box<str>>,
        incoming: Incoming,
        handshake: Handshake,
    ) -> Box<Connection> {
        Box::new(Connection {
            session: TlsSession { engine, server_name },
            incoming,
            plain: Buf::new(),
            outgoing: Buf::new(),
            is_write_blocked: false,
            empty_bytes: 0,
            read_cost: 0,
            read_side: ReadSide::Open,
            failure: None,
            has_alert: false,
            close_sent: false,
            is_truncated: false,
            opened: None,
            counters: handshake.guard.counters().clone(),
            handshake: Some(handshake),
        })
    }

    /// Continues the handshake with the received bytes.
    ///
    /// # Errors
    ///
    /// Why it has failed; the alert for that is in `outgoing`.
    pub(crate) fn advance(&mut self) -> Result<EngineState, TlsError> {
        // The first bytes of a server. Those of a client were checked before there was an engine.
        if self.session.engine.awaits_server() && !is_record(&self.incoming.bytes)? {
            return Ok(EngineState::NeedsInput);
        }
        // Tickets made at its end keep the date of the ticket with which it began.
        clock::set_session_began(
            self.handshake.as_ref().and_then(|handshake| handshake.session_began),
        );
        loop {
            let state = self.decode(&mut [])?.1;
            // Messages wait here, with their whole overhead, until they are complete.
            if state == EngineState::NeedsInput && self.empty_bytes > EMPTY_BYTES_MAX {
                return Err(TlsError::Empty);
            }
            if state != EngineState::Plaintext || !self.session.engine.is_handshaking() {
                // A ticket that was decrypted may not fit this handshake, which is then a full one.
                let is_resumed = self.session.is_resumed();
                if let Some(handshake) = &mut self.handshake {
                    handshake.session_began = clock::session_began().filter(|_| is_resumed);
                }
                return Ok(state);
            }
        }
    }

    /// Returns whether a client resumed a session with a ticket that contains no certificate,
    /// although the server requires one. Tickets are bound to the requirements of their server, so
    /// this does not happen.
    pub(crate) fn lacks_certificate(&self) -> bool {
        self.handshake.as_ref().is_some_and(|handshake| handshake.requires_certificate)
            && self.session.peer_certificates().next().is_none()
    }

    /// Decodes the plaintext of up to one record into `buffer`, and keeps what does not fit.
    /// Returns how many bytes it has written to the buffer.
    #[inline]
    fn decode(&mut self, buffer: &mut [u8]) -> Result<(usize, EngineState), TlsError> {
        self.set_clock();
        let Connection { session, incoming, plain, outgoing, has_alert, close_sent, .. } = self;
        let mut filled = 0;
        let mut keep = |payload: &[u8]| {
            let count = payload.len().min(buffer.len() - filled);
            let (now, later) = payload.split_at(count);
            buffer[filled..filled + count].copy_from_slice(now);
            filled += count;
            if !later.is_empty() {
                plain.extend(later);
            }
        };
        // Nothing follows our `close_notify` (RFC 8446 §6.1), so alerts are dropped after it.
        let mut dropped = Buf::new();
        let out = if *close_sent { &mut dropped } else { outgoing };
        let taken = match cfg!(debug_assertions) && *close_sent {
            true => session.engine.process_after_close(&mut incoming.bytes, &mut keep, out),
            false => session.engine.process_records(&mut incoming.bytes, &mut keep, out),
        };
        match taken {
            Ok(state) => Ok((filled, state)),
            Err(error) => {
                let is_made = session.engine.append_alert(&mut incoming.bytes, out);
                *has_alert = is_made && !*close_sent;
                Err(error.into())
            }
        }
    }

    /// Sets the thread's clock to the time of the handshake, because a ticket may be among the
    /// records.
    #[inline]
    fn set_clock(&self) {
        if let Some(opened) = self.opened {
            clock::restore(opened);
        }
    }

    pub(crate) fn counters(&self) -> &Arc<TlsCounters> {
        &self.counters
    }

    /// Ends the handshake: gives back what it held, and returns the value that counts it.
    pub(crate) fn end_handshake(&mut self) -> Option<HandshakeGuard> {
        self.empty_bytes = 0;
        if let Engine::Client(_) = self.session.engine {
            self.opened = clock::now();
        }
        self.handshake.take().map(|handshake| handshake.guard)
    }

    /// Reads once more for a handshake, unless the socket is empty.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the connection ends; the inner socket's error.
    pub(crate) fn fill_unless_drained<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        self.empty_bytes += self.incoming.fill_unless_drained(inner)?;
        Ok(())
    }

    /// Reads decoded bytes of the peer.
    #[inline]
    pub(crate) fn read<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        // What it noted about the socket is older than the latest event.
        self.incoming.invalidate_short_read();
        self.read_cost = 0;
        let mut filled = 0;
        if !self.plain.is_empty() {
            filled = self.plain.len().min(buffer.len());
            buffer[..filled].copy_from_slice(&self.plain[..filled]);
            self.plain.consume(filled);
        }
        loop {
            filled += self.decode_all(inner, &mut buffer[filled..]);
            match self.read_side {
                ReadSide::Closed => return Ok(filled),
                // First the bytes that were read; then the error, each time.
                _ if filled > 0 => {
                    self.incoming.shrink_if_drained();
                    return Ok(filled);
                }
                ReadSide::Broken => return Err(self.take_failure()),
                ReadSide::Truncated => return Err(ErrorKind::UnexpectedEof.into()),
                ReadSide::Open if self.outgoing.len() > OUTGOING_BYTES_MAX => {
                    return Err(ErrorKind::WouldBlock.into());
                }
                ReadSide::Open => {}
            }
            let count = self.incoming.fill(inner).inspect_err(|error| self.record_loss(error))?;
            if count == 0 {
                self.count_truncation();
                self.read_side = ReadSide::Truncated;
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.empty_bytes += count;
        }
    }

    /// Decodes as much as fits into the buffer, up to anything that cannot be decoded.
    fn decode_all<S: StreamSocket>(&mut self, inner: &mut S, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let unread = self.incoming.bytes.len();
        // A record for which there is no room is not decoded.
        while filled < buffer.len() && self.read_side == ReadSide::Open && self.needs_engine() {
            let error = match self.decode(&mut buffer[filled..]) {
                Ok((count, EngineState::Plaintext)) => {
                    filled += count;
                    self.empty_bytes = 0;
                    continue;
                }
                Ok((_, EngineState::PeerClosed)) => {
                    self.read_side = ReadSide::Closed;
                    break;
                }
                Ok((_, EngineState::NeedsInput)) if self.empty_bytes <= EMPTY_BYTES_MAX => break,
                Ok((_, EngineState::NeedsInput)) => TlsError::Empty,
                Err(error) => error,
            };
            self.fail(error, inner);
        }
        self.read_cost += unread.saturating_sub(self.incoming.bytes.len());
        filled
    }

    /// Returns whether the engine must be called: usually there is one record, and nothing after
    /// it.
    #[inline]
    fn needs_engine(&self) -> bool {
        !self.incoming.bytes.is_empty() || self.session.engine.wants_write()
    }

    /// Handles received bytes that cannot be read; the alert for that is in `outgoing`.
    #[cold]
    fn fail<S: StreamSocket>(&mut self, error: TlsError, inner: &mut S) {
        self.read_side = ReadSide::Broken;
        TlsCounters::add(&self.counters.broken);
        // The alert, if the socket takes it; otherwise it is flushed later.
        let _is_sent = self.flush(inner);
        log::debug!("a TLS connection has broken off: {}", rotor_core::with_causes(&error));
        self.failure = Some(Box::new(error));
    }

    /// Notes an error of the inner socket, such as a reset by the peer.
    #[inline]
    fn record_loss(&mut self, error: &io::Error) {
        // An error in the handshake is counted by its outcome.
        if !is_retryable(error) && self.handshake.is_none() && self.read_side == ReadSide::Open {
            self.count_truncation();
        }
    }

    /// Counts, once, that the connection is over although the peer had not ended its side.
    #[cold]
    fn count_truncation(&mut self) {
        if !mem::replace(&mut self.is_truncated, true) {
            TlsCounters::add(&self.counters.truncated);
        }
    }

    /// Returns whether the connection has failed, and the inner socket has taken the alert with the
    /// reason.
    pub(crate) fn has_sent_alert(&self) -> bool {
        self.has_alert && self.outgoing.is_empty()
    }

    #[cold]
    fn take_failure(&mut self) -> io::Error {
        self.failure.take().map_or_else(broken, |failure| (*failure).into())
    }

    /// Notes that the peer has ended its side, if that was found by something other than a read.
    /// Bytes that were decoded before can still be read.
    pub(crate) fn set_peer_closed(&mut self) {
        if self.read_side == ReadSide::Open {
            self.read_side = ReadSide::Closed;
        }
    }

    /// Aborts the handshake. Returns the bytes that must still be sent, with `close_notify` at the
    /// end; none if that is not possible.
    #[cold]
    pub(crate) fn cancel(self: Box<Self>) -> Buf {
        let Connection { mut session, mut incoming, mut outgoing, .. } = *self;
        if session.engine.cancel(&mut incoming.bytes, &mut outgoing) {
            outgoing
        } else {
            Buf::new()
        }
    }

    pub(crate) fn read_cost(&self) -> usize {
        self.read_cost
    }

    /// Returns whether there is input that no event of the inner socket will report.
    pub(crate) fn holds_input(&self) -> bool {
        !self.plain.is_empty() || self.incoming.has_record() || self.read_side != ReadSide::Open
    }

    /// Returns the memory of waiting bytes in both directions.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.bytes.capacity() + self.plain.capacity() + self.outgoing.capacity()
    }

    /// Returns whether nothing is left to be read before the next event. That includes an end of
    /// the stream, which causes no event if the inner socket stays open after it.
    #[inline]
    pub(crate) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        self.plain.is_empty()
            && self.read_side == ReadSide::Open
            && self.incoming.has_drained(inner)
            && !self.incoming.has_record()
    }
}

fn broken() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the TLS connection has broken off")
}

#[cfg(test)]
mod tests;
