//! What goes out of a connection: records of what the protocol writes, and the end of our side.

use std::io::{self, ErrorKind};

use rotor_core::net::StreamSocket;
use rotor_stream::Buf;

use super::{Live, ReadSide, broken};

/// The most bytes of plaintext that one write takes: four records, so that a long body takes few
/// system calls and holds little.
const WRITE_BYTES_MAX: usize = 64 * 1024;

impl Live {
    /// Takes bytes to be written. What is taken is on its way, or goes with the next flush.
    #[inline]
    pub(crate) fn write<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let count = self.encrypt(inner, bytes)?;
        self.send(inner).map(|()| count)
    }

    /// The same with the last bytes of our side: `close_notify` goes with them.
    pub(crate) fn write_last<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let count = self.encrypt(inner, bytes)?;
        if count == bytes.len() {
            self.append_close(inner);
        }
        self.send(inner).map(|()| count)
    }

    /// Appends the records of some bytes to those that are to go out. Returns how many it took.
    #[inline]
    fn encrypt<S: StreamSocket>(&mut self, inner: &mut S, bytes: &[u8]) -> io::Result<usize> {
        // One write waits at most. What has not been tried yet goes with these: the tickets behind
        // a handshake, a new key.
        if self.is_refused {
            self.flush(inner)?;
        }
        // Behind an alert nothing may follow.
        if self.read_side == ReadSide::Broken {
            return Err(broken());
        }
        if self.close_sent {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let bytes = &bytes[..bytes.len().min(WRITE_BYTES_MAX)];
        self.set_clock();
        let Live { session, incoming, plain, outgoing, .. } = self;
        let mut keep = |payload: &[u8]| plain.extend(payload);
        let put = session.engine.put(bytes, &mut incoming.bytes, &mut keep, outgoing);
        match put {
            Ok(true) => self.note_peer_closed(),
            Ok(false) => {}
            Err(error) => {
                session.engine.last_words(&mut incoming.bytes, outgoing);
                self.break_off(error.into(), inner);
                return Err(self.take_failure());
            }
        }
        Ok(bytes.len())
    }

    /// Writes what waits, as far as the socket inside takes it.
    #[inline]
    fn send<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        match self.flush(inner) {
            // It is taken, if not sent: an error would have the caller write it once more.
            Err(error) if !is_for_later(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells the peer that no more will come.
    pub(crate) fn close<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        self.append_close(inner);
        self.flush(inner)
    }

    /// Appends `close_notify` to what is to go out, once, where it may be said.
    fn append_close<S: StreamSocket>(&mut self, inner: &mut S) {
        if !self.close_sent && self.read_side != ReadSide::Broken {
            self.set_clock();
            let Live { session, incoming, plain, outgoing, .. } = self;
            let mut keep = |payload: &[u8]| plain.extend(payload);
            let closed = session.engine.close(&mut incoming.bytes, &mut keep, outgoing);
            match closed {
                Ok(true) => self.note_peer_closed(),
                Ok(false) => {}
                // What cannot be closed in order has broken; the alert says so.
                Err(error) => {
                    session.engine.last_words(&mut incoming.bytes, outgoing);
                    self.break_off(error.into(), inner);
                }
            }
        }
        self.close_sent = true;
    }

    /// Writes what waits to be written.
    #[inline]
    pub(crate) fn flush<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        let flushed = flush(&mut self.outgoing, inner);
        self.is_refused = flushed.is_err();
        flushed
    }
}

/// Writes what waits to be written, all of it.
#[inline]
pub(crate) fn flush<S: StreamSocket>(outgoing: &mut Buf, inner: &mut S) -> io::Result<()> {
    while !outgoing.is_empty() {
        match inner.write(outgoing)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => outgoing.consume(count),
        }
    }
    inner.flush()
}

/// Whether an error of writing means that it goes on later.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
