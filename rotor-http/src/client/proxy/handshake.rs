//! `Handshake`: a tunnel that is being asked for.

use std::io::{self, ErrorKind};

use rotor_core::net::{ReadAhead, StreamSocket};

use super::error::TunnelError;
use super::target::TunnelRequest;
use crate::h1::field_storage::FieldStorage;
use crate::h1::head::HeadReader;
use crate::h1::response_semantics::ResponseSemantics;
use crate::limits::Limits;
use crate::semantics::method::Method;

/// How many bytes are read at a time: enough for most responses.
const READ_BYTES: usize = 512;

const LIMITS: Limits = Limits::new();

/// The request for a tunnel while it is sent, and the part of the response that has arrived.
pub(super) struct Handshake {
    request: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    reader: HeadReader,
    interim: u32,
}

impl Handshake {
    pub(super) fn new(request: &TunnelRequest) -> Box<Handshake> {
        Box::new(Handshake {
            request: request.to_bytes(),
            sent: 0,
            received: Vec::new(),
            reader: HeadReader::new(),
            interim: 0,
        })
    }

    /// Returns how many bytes of the request the socket has not accepted yet.
    pub(super) fn unsent_len(&self) -> usize {
        self.request.len() - self.sent
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.request.capacity() + self.received.capacity()
    }

    /// Continues until the tunnel stands, and returns what was read beyond the response. After
    /// `WouldBlock` and `Interrupted` it can be called again; other errors are final.
    pub(super) fn advance<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<ReadAhead> {
        while self.unsent_len() > 0 {
            match inner.write(&self.request[self.sent..])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                sent => self.sent += sent,
            }
        }
        // An inner wrapper may hold the bytes.
        inner.flush()?;
        loop {
            let mut room = [0; READ_BYTES];
            let read = match inner.read(&mut room)? {
                0 => return Err(TunnelError::Closed.into()),
                read => read,
            };
            if let Some(ahead) = self.receive(&room[..read])? {
                return Ok(ahead);
            }
        }
    }

    /// Takes the next bytes of the response. Returns those that follow it once the tunnel stands.
    fn receive(&mut self, bytes: &[u8]) -> Result<Option<ReadAhead>, TunnelError> {
        self.received.extend_from_slice(bytes);
        loop {
            let mut storage = FieldStorage::new();
            let head = self.reader.read_response(&self.received, &mut storage, &LIMITS)?;
            let Some(head) = head else { return Ok(None) };
            // The framing of a 2xx response to CONNECT has no meaning (RFC 9110 §9.3.6).
            let semantics = ResponseSemantics::from_head(&head, Method::Connect, false)?;
            let (status, len) = (head.status(), head.input_len());
            if semantics.is_interim {
                self.interim += 1;
                if self.interim > LIMITS.interim_responses_max {
                    return Err(TunnelError::TooManyInterim);
                }
                self.received.drain(..len);
            } else if status.is_success() {
                return Ok(Some(ReadAhead::new(self.received.split_off(len))));
            } else {
                return Err(TunnelError::Refused(status));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rotor_stream::Host;

    use super::super::target::TunnelTarget;
    use super::*;
    use crate::semantics::error::{HeadError, ResponseHeadError};
    use crate::semantics::status::Status;

    fn handshake() -> Box<Handshake> {
        let target = TunnelTarget::new((), &Host::new("a", 443)).expect("it is a host");
        Handshake::new(target.request())
    }

    /// The result of these pieces: what follows the response, once it is complete.
    fn receive<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Vec<u8>>, TunnelError> {
        let mut handshake = handshake();
        let mut pieces = pieces.into_iter();
        for piece in &mut pieces {
            if let Some(mut ahead) = handshake.receive(piece)? {
                let mut all = Vec::new();
                ahead.take(|left| {
                    all.extend_from_slice(left);
                    left.len()
                });
                all.extend(pieces.flatten());
                return Ok(Some(all));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_response_ends_at_the_empty_line_however_it_is_split() {
        for (response, result) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Ok(())),
            ("HTTP/1.0 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.1 204\r\n\r\n", Ok(())),
            // A length has no meaning here, and the bytes after the head are the server's.
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", Ok(())),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Ok(())),
            ("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.1 403 Forbidden\r\n\r\n", Err(TunnelError::Refused(Status::FORBIDDEN))),
            (
                "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\n",
                Err(TunnelError::Refused(Status::PROXY_AUTHENTICATION_REQUIRED)),
            ),
            // Not a status that makes a tunnel.
            ("HTTP/1.1 302 Found\r\n\r\n", Err(TunnelError::Refused(Status::FOUND))),
        ] {
            let all = format!("{response}abc");
            let all = all.as_bytes();
            let expected = result.map(|()| Some(b"abc".to_vec()));
            assert_eq!(receive([all]), expected, "{response}");
            assert_eq!(receive(all.chunks(1)), expected, "{response}");
            for cut in 1..all.len() {
                assert_eq!(
                    receive([&all[..cut], &all[cut..]]),
                    expected,
                    "{response} cut at {cut}"
                );
            }
            let unfinished = &all[..response.len() - 1];
            assert_eq!(receive([unfinished]), Ok(None), "{response}");
        }
    }

    #[test]
    fn anything_but_a_response_is_malformed() {
        let head = |error: HeadError| Err(TunnelError::Head(ResponseHeadError::Head(error)));
        for (bytes, expected) in [
            (&b"SSH-2.0-OpenSSH_9\r\n"[..], head(HeadError::Version)),
            (b"\x15\x03\x01\0\x02\x02\x16", head(HeadError::Tls)),
            (b"HTTP/1.1 20x OK\r\n\r\n", head(HeadError::StatusLine)),
            (
                b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
                Err(TunnelError::Head(ResponseHeadError::UnexpectedSwitch)),
            ),
        ] {
            assert_eq!(receive([bytes]), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_response_without_end_is_refused() {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
        assert_eq!(receive([&interim[..]]), Err(TunnelError::TooManyInterim));
        let head = [&b"HTTP/1.1 200 OK\r\n"[..], &b"A: b\r\n".repeat(101)].concat();
        assert!(matches!(receive([&head[..]]), Err(TunnelError::Head(_))));
    }
}
