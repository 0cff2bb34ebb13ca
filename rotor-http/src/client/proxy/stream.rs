//! `TunnelStream`: a socket to a server, through a proxy.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor_core::Scope;
use rotor_core::backend::Source;
use rotor_core::net::{ReadAhead, ReadBuf, StreamSocket};

use super::handshake::Handshake;
use super::target::TunnelTarget;

/// A socket that connects to a proxy and asks it for a tunnel to a server (CONNECT, RFC 9110
/// §9.3.6). After that it is a connection to the server, which any
/// [`Protocol`](rotor_stream::Protocol) can use. With TLS around it,
/// `TlsStream<TunnelStream<TcpStream>>`, it makes the connections of a pool for `https://` URLs
/// through a proxy.
///
/// * The tunnel is asked for in the handshake, within
///   [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout), which therefore has to
///   be long enough for the proxy to connect to the server.
/// * [`peer_address`](StreamSocket::peer_address) and
///   [`local_address`](StreamSocket::local_address) are those of the connection to the proxy: only
///   the proxy knows the server's address.
/// * If the inner socket encrypts, it does so only as far as the proxy. So this socket is not
///   [secure](StreamSocket::is_secure), and has neither a [`session`](StreamSocket::session) nor a
///   [`negotiated`](StreamSocket::negotiated) protocol; the TLS around it has them. The inner TLS
///   must not offer HTTP/2, as the tunnel is asked for over HTTP/1.1.
///
/// # Errors
///
/// [`TunnelError::of`](super::TunnelError::of) returns why the proxy made no tunnel. An error of
/// the inner socket is passed on unchanged.
#[doc(alias = "CONNECT")]
#[doc(alias = "HTTPS_PROXY")]
pub struct TunnelStream<S> {
    inner: S,
    state: State,
}

enum State {
    Asking(Box<Handshake>),
    /// With the bytes that the proxy sent along with its response; `None` once they were read.
    Open(Option<Box<ReadAhead>>),
    /// There will be no tunnel.
    Failed,
}

impl<S> TunnelStream<S> {
    /// Returns the inner socket, which is connected to the proxy, to query it or to set an option.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    #[inline]
    fn expect_open(&self) -> io::Result<()> {
        if self.is_open() { Ok(()) } else { Err(ErrorKind::NotConnected.into()) }
    }

    /// Passes the bytes that were read with the proxy's response to `put`. Returns `None` if the
    /// inner socket must be read instead.
    #[inline]
    fn take_ahead(&mut self, put: impl FnOnce(&[u8]) -> usize) -> Option<usize> {
        let State::Open(Some(ahead)) = &mut self.state else { return None };
        let taken = ahead.take(put);
        if ahead.is_empty() {
            self.state = State::Open(None);
        }
        taken
    }
}

impl<S: StreamSocket> Read for TunnelStream<S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ahead = self.take_ahead(|mut left| left.read(buffer).expect("a slice can be read"));
        match (&self.state, ahead) {
            (_, Some(read)) => Ok(read),
            // An empty read asks whether the inner socket is connected. Any other read would take
            // bytes of the proxy's response.
            (State::Asking(_), None) if !buffer.is_empty() => Err(ErrorKind::NotConnected.into()),
            _ => self.inner.read(buffer),
        }
    }
}

impl<S: StreamSocket> Write for TunnelStream<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.expect_open()?;
        self.inner.write(bytes)
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.expect_open()?;
        self.inner.write_vectored(slices)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<S: Source> Source for TunnelStream<S> {
    rotor_core::rotor_forward_source!(inner);
}

impl<S: StreamSocket> StreamSocket for TunnelStream<S> {
    type Target = TunnelTarget<S::Target>;

    const READS_UNSEEN: bool = S::READS_UNSEEN;

    fn connect<C>(target: &TunnelTarget<S::Target>, scope: &Scope<'_, C>) -> io::Result<Self> {
        let inner = S::connect(target.proxy(), scope)?;
        Ok(TunnelStream { inner, state: State::Asking(Handshake::new(target.request())) })
    }

    #[inline]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        if self.take_ahead(|left| buf.put_slice(left)).is_some() {
            return Ok(());
        }
        match self.state {
            State::Asking(_) => Err(ErrorKind::NotConnected.into()),
            _ => self.inner.read_unseen(buf),
        }
    }

    rotor_core::rotor_forward_socket!(inner);

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        let result = self.inner.handshake(scope).and_then(|()| match &mut self.state {
            State::Asking(handshake) => handshake.advance(&mut self.inner).map(Some),
            State::Open(_) | State::Failed => Ok(None),
        });
        match result {
            Ok(Some(ahead)) => {
                self.state = State::Open((!ahead.is_empty()).then(|| Box::new(ahead)));
            }
            Ok(None) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Err(error);
            }
            Err(error) => {
                // The rest of the request must not keep the connection from ending.
                self.state = State::Failed;
                return Err(error);
            }
        }
        Ok(())
    }

    // `handshake_has_drained` keeps its default: the response is read until `WouldBlock`.

    fn cancel_handshake(&mut self) -> bool {
        if !self.is_open() {
            self.state = State::Failed;
        }
        self.inner.cancel_handshake()
    }

    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.expect_open()?;
        self.inner.write_last(bytes)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.inner.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.inner.local_address()
    }

    fn holds_input(&self) -> bool {
        matches!(self.state, State::Open(Some(_))) || self.inner.holds_input()
    }

    #[inline]
    fn short_read_drains(&self) -> bool {
        matches!(self.state, State::Open(None)) && self.inner.short_read_drains()
    }

    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    #[inline]
    fn wants_write(&self) -> bool {
        let asks = matches!(&self.state, State::Asking(handshake) if handshake.unsent_len() > 0);
        asks || self.inner.wants_write()
    }

    #[inline]
    fn awaits_rest(&self) -> bool {
        self.inner.awaits_rest()
    }

    #[inline]
    fn unsent_len(&self) -> usize {
        let of_request = match &self.state {
            State::Asking(handshake) => handshake.unsent_len(),
            State::Open(_) | State::Failed => 0,
        };
        of_request + self.inner.unsent_len()
    }

    #[inline]
    fn held_bytes(&self) -> usize {
        let held = match &self.state {
            State::Asking(handshake) => handshake.held_bytes(),
            State::Open(Some(ahead)) => ahead.held_bytes(),
            State::Open(None) | State::Failed => 0,
        };
        held + self.inner.held_bytes()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        self.expect_open()?;
        self.inner.send_file(file, offset, count)
    }
}

impl<S> fmt::Debug for TunnelStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Asking(_) => "TunnelStream(asks for the tunnel)",
            State::Open(_) => "TunnelStream(open)",
            State::Failed => "TunnelStream(failed)",
        })
    }
}
