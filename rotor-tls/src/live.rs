//! `Live`: a connection that has an engine, with what came for it and what is to go out. How that
//! goes out is in `writing`.

mod pieces;
mod writing;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use rotor_core::Permit;
use rotor_core::net::StreamSocket;
use rotor_stream::Buf;

use crate::clock;
use crate::counters::{TlsCounters, UnderWay};
use crate::engine::{At, Engine};
use crate::error::TlsError;
use crate::incoming::Incoming;
use crate::sealed::WRITE_BYTES_MAX;
use crate::session::TlsSession;
use crate::stranger::is_record;

pub(crate) use self::writing::{flush, is_for_later};

/// The most bytes of records without a byte of data, one after the other: 16 of the longest. Those of
/// a handshake, behind the hello, are such: a message of it has 64 KiB at most, and in records of a
/// byte each would take 1.5 MiB. Later, keys that change and tickets are bounded by rustls besides;
/// what is left are records that hold nothing, or padding.
pub const EMPTY_BYTES_MAX: usize = 256 * 1024;

/// The most bytes that wait to be written while more is read: one write, which is no reason not to
/// read, since the peer may take it only when it is heard; and as much again of what the peer is
/// answered by itself (warnings), of which it could else have any amount made.
const OUTGOING_BYTES_MAX: usize = 2 * WRITE_BYTES_MAX;

pub(crate) struct Live {
    pub(crate) session: TlsSession,
    pub(crate) incoming: Incoming,
    /// Decoded and not yet read: what did not fit where it was wanted.
    plain: Buf,
    /// Records that the socket inside has not taken yet.
    pub(crate) outgoing: Buf,
    /// The socket inside has not taken them when it was asked last.
    is_refused: bool,
    /// How many bytes came since the last one of data.
    empty_bytes: usize,
    /// How many bytes of records the last read has decoded.
    read_cost: usize,
    read_side: ReadSide,
    /// Why it has broken off, until that is told.
    failure: Option<Box<TlsError>>,
    /// An alert says why.
    says_why: bool,
    close_sent: bool,
    /// When a client's handshake was over: what dates the tickets that come later, perhaps on
    /// another thread.
    opened: Option<Duration>,
    counters: Arc<TlsCounters>,
    /// While it shakes hands.
    pub(crate) shaking: Option<Shaking>,
}

/// What a handshake holds until it is over.
pub(crate) struct Shaking {
    pub(crate) under_way: UnderWay,
    /// Its place among those that may be under way, where they are limited.
    pub(crate) _permit: Option<Permit>,
    /// Its signatures are to be made by another thread.
    pub(crate) is_slow: bool,
    /// The client must have shown a certificate, now or when its session began.
    pub(crate) requires_certificate: bool,
    /// When the session began that this continues.
    pub(crate) session_began: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadSide {
    Open,
    /// The peer has said that it sends no more.
    Closed,
    /// The socket inside has ended, and the peer had not said so.
    Truncated,
    /// What came cannot be read.
    Broken,
}

impl Live {
    pub(crate) fn new(
        engine: Engine,
        server_name: Option<Box<str>>,
        incoming: Incoming,
        shaking: Shaking,
    ) -> Box<Live> {
        Box::new(Live {
            session: TlsSession { engine, server_name },
            incoming,
            plain: Buf::new(),
            outgoing: Buf::new(),
            is_refused: false,
            empty_bytes: 0,
            read_cost: 0,
            read_side: ReadSide::Open,
            failure: None,
            says_why: false,
            close_sent: false,
            opened: None,
            counters: shaking.under_way.counters().clone(),
            shaking: Some(shaking),
        })
    }

    /// Has the handshake go on with what is there.
    ///
    /// # Errors
    ///
    /// Why it has failed; the alert for that is in `outgoing`.
    pub(crate) fn advance(&mut self) -> Result<At, TlsError> {
        // A server's first bytes; those of a client were checked before there was an engine.
        if self.session.engine.awaits_server() && !is_record(&self.incoming.bytes)? {
            return Ok(At::NeedsInput);
        }
        // Tickets that are made at its end keep the date of the one that it began with.
        clock::set_session_began(self.shaking.as_ref().and_then(|shaking| shaking.session_began));
        loop {
            let at = self.decode(&mut [])?.1;
            // Messages wait here, with all that is around their bytes, until they are whole.
            if at == At::NeedsInput && self.empty_bytes > EMPTY_BYTES_MAX {
                return Err(TlsError::Empty);
            }
            if at != At::Plain || !self.session.engine.is_handshaking() {
                if let Some(shaking) = &mut self.shaking {
                    shaking.session_began = clock::session_began();
                }
                return Ok(at);
            }
        }
    }

    /// Whether a client came back by a ticket in which there is no certificate, to a server that
    /// must have seen one. Tickets are bound to what their server asks, so this does not happen.
    pub(crate) fn lacks_certificate(&self) -> bool {
        self.shaking.as_ref().is_some_and(|shaking| shaking.requires_certificate)
            && self.session.peer_certificates().next().is_none()
    }

    /// Decodes what is there, up to the plaintext of one record: into `buffer`, and what does not
    /// fit is kept. Returns how much of the buffer it has filled.
    #[inline]
    fn decode(&mut self, buffer: &mut [u8]) -> Result<(usize, At), TlsError> {
        self.set_clock();
        let Live { session, incoming, plain, outgoing, says_why, close_sent, .. } = self;
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
        let taken = match cfg!(debug_assertions) && *close_sent {
            true => session.engine.take_behind_close(&mut incoming.bytes, &mut keep, outgoing),
            false => session.engine.take(&mut incoming.bytes, &mut keep, outgoing),
        };
        match taken {
            Ok(at) => Ok((filled, at)),
            Err(error) => {
                *says_why = session.engine.last_words(&mut incoming.bytes, outgoing);
                Err(error.into())
            }
        }
    }

    /// Has the thread's clock say when the handshake was, where a ticket may be among what comes.
    #[inline]
    fn set_clock(&self) {
        if let Some(opened) = self.opened {
            clock::set_again(opened);
        }
    }

    pub(crate) fn counters(&self) -> &Arc<TlsCounters> {
        &self.counters
    }

    /// The handshake is over: gives back what it held, and returns what is to count it.
    pub(crate) fn end_shaking(&mut self) -> Option<UnderWay> {
        self.empty_bytes = 0;
        if let Engine::Client(_) = self.session.engine {
            self.opened = clock::now();
        }
        self.shaking.take().map(|shaking| shaking.under_way)
    }

    /// Reads once more for a handshake, unless there is nothing.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` where the connection ends; what the socket inside says.
    pub(crate) fn fill_unless_drained<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        self.empty_bytes += self.incoming.fill_unless_drained(inner)?;
        Ok(())
    }

    /// Reads what the peer has sent, decoded.
    #[inline]
    pub(crate) fn read<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        // What it noted about the socket is older than the latest event.
        self.incoming.forget_short();
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
                    self.incoming.settle();
                    return Ok(filled);
                }
                ReadSide::Broken => return Err(self.take_failure()),
                ReadSide::Truncated => return Err(ErrorKind::UnexpectedEof.into()),
                ReadSide::Open if self.outgoing.len() > OUTGOING_BYTES_MAX => {
                    return Err(ErrorKind::WouldBlock.into());
                }
                ReadSide::Open => {}
            }
            let count = self.incoming.fill(inner)?;
            if count == 0 {
                TlsCounters::add(&self.counters.truncated);
                self.read_side = ReadSide::Truncated;
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.empty_bytes += count;
        }
    }

    /// Decodes as much as fits into the buffer, up to what cannot be decoded.
    fn decode_all<S: StreamSocket>(&mut self, inner: &mut S, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        let unread = self.incoming.bytes.len();
        // A record for which there is no room is not decoded.
        while filled < buffer.len() && self.read_side == ReadSide::Open && self.has_work() {
            let error = match self.decode(&mut buffer[filled..]) {
                Ok((count, At::Plain)) => {
                    filled += count;
                    self.empty_bytes = 0;
                    continue;
                }
                Ok((_, At::PeerClosed)) => {
                    self.read_side = ReadSide::Closed;
                    break;
                }
                Ok((_, At::NeedsInput)) if self.empty_bytes <= EMPTY_BYTES_MAX => break,
                Ok((_, At::NeedsInput)) => TlsError::Empty,
                Err(error) => error,
            };
            self.break_off(error, inner);
        }
        self.read_cost += unread.saturating_sub(self.incoming.bytes.len());
        filled
    }

    /// Whether the engine is to be asked: nearly always there is one record, and nothing behind it.
    #[inline]
    fn has_work(&self) -> bool {
        !self.incoming.bytes.is_empty() || self.session.engine.wants_write()
    }

    /// What came cannot be read, wherever that was found; the alert for it is in `outgoing`.
    #[cold]
    fn break_off<S: StreamSocket>(&mut self, error: TlsError, inner: &mut S) {
        self.read_side = ReadSide::Broken;
        TlsCounters::add(&self.counters.broken);
        // The alert, if the socket takes it; otherwise it is flushed later.
        let _is_sent = self.flush(inner);
        log::debug!("a TLS connection has broken off: {}", rotor_core::with_causes(&error));
        self.failure = Some(Box::new(error));
    }

    /// Whether it has broken off, and the alert that says why is with the socket inside.
    pub(crate) fn has_told_why(&self) -> bool {
        self.says_why && self.outgoing.is_empty()
    }

    #[cold]
    fn take_failure(&mut self) -> io::Error {
        self.failure.take().map_or_else(broken, |failure| (*failure).into())
    }

    /// The peer has said that it sends no more, while something else was done than to read: what
    /// was decoded before is still to be read.
    pub(crate) fn note_peer_closed(&mut self) {
        if self.read_side == ReadSide::Open {
            self.read_side = ReadSide::Closed;
        }
    }

    /// Gives the handshake up. Returns what is still to be sent, with `close_notify` behind it;
    /// nothing where that cannot be said.
    #[cold]
    pub(crate) fn cancel(self: Box<Self>) -> Buf {
        let Live { mut session, mut incoming, mut outgoing, .. } = *self;
        if session.engine.cancel(&mut incoming.bytes, &mut outgoing) {
            outgoing
        } else {
            Buf::new()
        }
    }

    pub(crate) fn read_cost(&self) -> usize {
        self.read_cost
    }

    /// Whether there is something to read of which no event of the socket inside will tell.
    pub(crate) fn holds_input(&self) -> bool {
        !self.plain.is_empty() || self.incoming.has_record() || self.read_side != ReadSide::Open
    }

    /// The memory of what waits, in both directions.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.bytes.capacity() + self.plain.capacity() + self.outgoing.capacity()
    }

    /// Whether nothing is left to be read before the next event: no end either, for which there is
    /// no event where the socket inside stays open behind it.
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
