//! Writing: records of the protocol's output, and the end of our side.

use std::io::{self, ErrorKind, IoSlice};

use rotor_core::net::StreamSocket;
use rotor_stream::Buf;

use super::record_pieces::for_each_piece;
use super::{Connection, ReadSide, broken};
use crate::error::is_retryable;
use crate::sealed::{SealedRecords, WRITE_BYTES_MAX};

impl Connection {
    /// Accepts bytes to be written. Accepted bytes are being sent, or are sent by the next flush.
    #[inline]
    pub(crate) fn write<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let count = self.encrypt(inner, slices, |sealed, inner| sealed.send(inner))?;
        if self.is_write_blocked || self.outgoing.is_empty() {
            return Ok(count);
        }
        // Too much was waiting before them for everything to be written together.
        self.send(inner).map(|()| count)
    }

    /// Does the same with the last bytes of our side, together with `close_notify`.
    pub(crate) fn write_last<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        bytes: &[u8],
    ) -> io::Result<usize> {
        // Unsent bytes wait.
        let count = self.encrypt(inner, &[IoSlice::new(bytes)], |_, _| Ok(()))?;
        if count == bytes.len() {
            self.append_close(inner);
        }
        self.send(inner).map(|()| count)
    }

    /// Makes records from some bytes, and sends them with `send`. Returns how many bytes it
    /// accepted.
    #[inline]
    fn encrypt<S: StreamSocket>(
        &mut self,
        inner: &mut S,
        slices: &[IoSlice<'_>],
        send: impl FnOnce(SealedRecords<'_>, &mut S) -> io::Result<()>,
    ) -> io::Result<usize> {
        // At most one write waits. Records that were not tried yet are sent with these bytes: the
        // tickets after a handshake, a new key.
        if self.is_write_blocked {
            self.flush(inner)?;
        }
        // Nothing may follow an alert.
        if self.read_side == ReadSide::Broken {
            return Err(broken());
        }
        if self.close_sent {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.set_clock();
        let Connection { session, incoming, plain, outgoing, has_alert, .. } = self;
        let mut keep = |payload: &[u8]| plain.extend(payload);
        let mut sealed = SealedRecords::after(outgoing);
        let mut peer_has_closed = false;
        let put = for_each_piece(slices, WRITE_BYTES_MAX, |piece| {
            let put = session.engine.encrypt(piece, &mut incoming.bytes, &mut keep, &mut sealed);
            put.map(|has_closed| peer_has_closed |= has_closed)
        });
        let count = match put {
            Ok(count) => count,
            Err(error) => {
                drop(sealed);
                // If keys of TLS 1.2 are used up, rustls tries to send `close_notify`, and there
                // must not be one.
                *has_alert = error != rustls::Error::EncryptError
                    && session.engine.append_alert(&mut incoming.bytes, outgoing);
                self.fail(error.into(), inner);
                return Err(self.take_failure());
            }
        };
        let sent = send(sealed, inner);
        self.is_write_blocked = sent.is_err();
        if peer_has_closed {
            self.set_peer_closed();
        }
        match sent {
            // The bytes are accepted, though not sent: an error would make the caller write them
            // again.
            Err(error) if !is_retryable(&error) => {
                self.record_loss(&error);
                Err(error)
            }
            _ => Ok(count),
        }
    }

    /// Writes what waits, as far as the inner socket takes it.
    #[inline]
    fn send<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        match self.flush(inner) {
            // The bytes are accepted, though not sent: an error would make the caller write them
            // again.
            Err(error) if !is_retryable(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells the peer that our side has ended.
    pub(crate) fn close<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        self.append_close(inner);
        self.flush(inner)
    }

    /// Appends `close_notify` to the output, once, if it may be sent.
    fn append_close<S: StreamSocket>(&mut self, inner: &mut S) {
        if !self.close_sent && self.read_side != ReadSide::Broken {
            self.set_clock();
            let Connection { session, incoming, plain, outgoing, has_alert, .. } = self;
            let mut keep = |payload: &[u8]| plain.extend(payload);
            let closed = session.engine.close(&mut incoming.bytes, &mut keep, outgoing);
            match closed {
                Ok(true) => self.set_peer_closed(),
                Ok(false) => {}
                // A connection that cannot be closed in an orderly way has failed; the alert says
                // so.
                Err(error) => {
                    *has_alert = session.engine.append_alert(&mut incoming.bytes, outgoing);
                    self.fail(error.into(), inner);
                }
            }
        }
        self.close_sent = true;
    }

    /// Writes waiting bytes.
    #[inline]
    pub(crate) fn flush<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        let flushed = flush(&mut self.outgoing, inner);
        self.is_write_blocked = flushed.is_err();
        flushed.inspect_err(|error| self.record_loss(error))
    }
}

/// Writes all waiting bytes.
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
