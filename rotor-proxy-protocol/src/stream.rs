//! `ProxyStream`: a socket that begins with a header, received or sent.

use std::any::{Any, TypeId};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor_core::Scope;
use rotor_core::backend::Source;
use rotor_core::net::{ReadBuf, StreamSocket};

use crate::established::Established;
use crate::header::ProxyHeader;
use crate::header_receiver::{HeaderReceiver, is_retryable};
use crate::header_sender::HeaderSender;
use crate::target::ProxyTarget;

/// A socket whose connection begins with a header of the PROXY protocol, which is received or sent.
///
/// It is a [`StreamSocket`] itself, so any [`Protocol`](rotor_stream::Protocol) runs on it. So does
/// TLS, as `TlsStream<ProxyStream<TcpStream>>`, since the header is sent unencrypted, before
/// everything else. A server gets such a socket from a [`ProxyListener`](crate::ProxyListener), a
/// client by connecting to a [`ProxyTarget`].
///
/// * The header is received or sent in the handshake, within
///   [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout).
/// * [`peer_address`](StreamSocket::peer_address) then returns the source that the header names,
///   and [`local_address`](StreamSocket::local_address) the address to which the client connected.
///   If the header names none, these are the addresses of the socket.
/// * The header itself is the [`session`](StreamSocket::session).
/// * After the header, bytes are passed on unchanged; files are sent as the inner socket sends
///   them.
///
/// # Errors
///
/// [`ProxyError::of`](crate::ProxyError::of) returns what was wrong with a header. An error of the
/// inner socket is passed on unchanged.
pub struct ProxyStream<S> {
    inner: S,
    state: State,
}

enum State {
    Receiving(Box<HeaderReceiver>),
    Sending(Box<HeaderSender>),
    /// With what is kept after the header; `None` if nothing is, as on most connections on which
    /// this side sent the header.
    Open(Option<Box<Established>>),
    /// There will be no header.
    Failed,
}

impl<S> ProxyStream<S> {
    pub(crate) fn receiving(inner: S, receiver: Box<HeaderReceiver>) -> ProxyStream<S> {
        ProxyStream { inner, state: State::Receiving(receiver) }
    }

    /// Creates the sender's end on an open connection, or on one that is being opened.
    ///
    /// [`ProxyProtocol::wrap`](crate::ProxyProtocol::wrap) makes the receiver's end.
    pub fn sending(inner: S, header: &ProxyHeader) -> ProxyStream<S> {
        ProxyStream { inner, state: State::Sending(HeaderSender::new(header)) }
    }

    /// Returns the inner socket, to query it or to set an option. Its addresses are those of the
    /// connection to the balancer.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Returns the header that was received, once it is complete.
    pub fn header(&self) -> Option<&ProxyHeader> {
        self.established()?.header.as_ref()
    }

    /// The inner socket has failed before there was a header.
    #[cold]
    fn abandon(&mut self) {
        if let State::Receiving(receiver) = &mut self.state {
            receiver.abandon();
        }
        self.set_failed();
    }

    /// There will be no header: an unsent one must not keep the connection from ending.
    #[cold]
    fn set_failed(&mut self) {
        if !self.is_open() {
            self.state = State::Failed;
        }
    }

    fn established(&self) -> Option<&Established> {
        match &self.state {
            State::Open(established) => established.as_deref(),
            _ => None,
        }
    }

    #[inline]
    fn has_read_ahead(&self) -> bool {
        self.established().is_some_and(|established| !established.read_ahead.is_empty())
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }
}

impl<S: StreamSocket> Read for ProxyStream<S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Open(Some(established)) = &mut self.state
            && let Some(read) = established
                .read_ahead
                .take(|mut left| left.read(buffer).expect("a slice can be read"))
        {
            return Ok(read);
        }
        // An empty read asks whether the inner socket is connected. Any other read before the
        // header is complete would take bytes of the header.
        if self.is_open() || buffer.is_empty() {
            self.inner.read(buffer)
        } else {
            Err(ErrorKind::NotConnected.into())
        }
    }
}

impl<S: StreamSocket> Write for ProxyStream<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_open() { self.inner.write(bytes) } else { Err(ErrorKind::NotConnected.into()) }
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_open() {
            self.inner.write_vectored(slices)
        } else {
            Err(ErrorKind::NotConnected.into())
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<S: Source> Source for ProxyStream<S> {
    rotor_core::rotor_forward_source!(inner);
}

impl<S: StreamSocket> StreamSocket for ProxyStream<S> {
    type Target = ProxyTarget<S::Target>;

    const READS_UNSEEN: bool = S::READS_UNSEEN;

    fn connect<C>(target: &ProxyTarget<S::Target>, scope: &Scope<'_, C>) -> io::Result<Self> {
        let inner = S::connect(target.address(), scope)?;
        Ok(ProxyStream::sending(inner, target.header()))
    }

    fn may_agree_on(target: &ProxyTarget<S::Target>, protocol: &[u8]) -> bool {
        S::may_agree_on(target.address(), protocol)
    }

    fn without(target: ProxyTarget<S::Target>, protocol: &[u8]) -> Option<ProxyTarget<S::Target>> {
        target.with_other_address(|address| S::without(address, protocol))
    }

    #[inline]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        if let State::Open(Some(established)) = &mut self.state
            && established.read_ahead.take(|left| buf.put_slice(left)).is_some()
        {
            return Ok(());
        }
        if self.is_open() {
            self.inner.read_unseen(buf)
        } else {
            Err(ErrorKind::NotConnected.into())
        }
    }

    rotor_core::rotor_forward_socket!(inner);

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        if let Err(error) = self.inner.handshake(scope) {
            if !is_retryable(&error) {
                self.abandon();
            }
            return Err(error);
        }
        let result = match &mut self.state {
            State::Receiving(receiver) => receiver
                .advance(&mut self.inner)
                .map(|established| (!established.is_empty()).then(|| Box::new(established))),
            State::Sending(sender) => sender.advance(&mut self.inner).map(|()| None),
            State::Open(_) | State::Failed => return Ok(()),
        };
        match result {
            Ok(established) => self.state = State::Open(established),
            Err(error) if is_retryable(&error) => return Err(error),
            Err(error) => {
                self.state = State::Failed;
                return Err(error);
            }
        }
        Ok(())
    }

    /// A handshake that waits for the rest of the header has read all that was in the socket.
    fn handshake_has_drained(&self) -> bool {
        !self.wants_write() && self.inner.handshake_has_drained()
    }

    fn cancel_handshake(&mut self) -> bool {
        self.set_failed();
        self.inner.cancel_handshake()
    }

    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_open() {
            self.inner.write_last(bytes)
        } else {
            Err(ErrorKind::NotConnected.into())
        }
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.inner.shutdown(how)
    }

    /// Returns the source that the header names, or else the peer address of the inner socket.
    fn peer_address(&self) -> Option<SocketAddr> {
        let address = self.header().and_then(ProxyHeader::source);
        address.or_else(|| self.inner.peer_address())
    }

    /// Returns the destination that the header names, or else the local address of the inner
    /// socket.
    fn local_address(&self) -> Option<SocketAddr> {
        let address = self.header().and_then(ProxyHeader::destination);
        address.or_else(|| self.inner.local_address())
    }

    fn negotiated(&self) -> Option<&[u8]> {
        self.inner.negotiated()
    }

    /// Returns the [`ProxyHeader`] if one was received; otherwise the session of the inner socket.
    fn session(&self) -> Option<&dyn Any> {
        match self.header() {
            Some(header) => Some(header),
            None => self.inner.session(),
        }
    }

    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        let own = self.header().map(|header| header as &dyn Any);
        let own = own.filter(|session| (**session).type_id() == wanted);
        own.or_else(|| self.inner.session_of(wanted))
    }

    fn is_secure(&self) -> bool {
        self.inner.is_secure()
    }

    fn holds_input(&self) -> bool {
        self.has_read_ahead() || self.inner.holds_input()
    }

    #[inline]
    fn short_read_drains(&self) -> bool {
        // Before it is open, a wrapper around it must not wait for an event: a connection that is
        // not trusted is refused at once.
        self.is_open() && !self.has_read_ahead() && self.inner.short_read_drains()
    }

    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    #[inline]
    fn wants_write(&self) -> bool {
        self.unsent_len() > 0 || self.inner.wants_write()
    }

    #[inline]
    fn awaits_rest(&self) -> bool {
        self.inner.awaits_rest()
    }

    #[inline]
    fn unsent_len(&self) -> usize {
        let of_header = match &self.state {
            State::Sending(sender) => sender.unsent_len(),
            _ => 0,
        };
        of_header + self.inner.unsent_len()
    }

    #[inline]
    fn held_bytes(&self) -> usize {
        let held = match &self.state {
            State::Receiving(receiver) => receiver.held_bytes(),
            State::Sending(sender) => sender.unsent_len(),
            State::Open(Some(established)) => established.read_ahead.held_bytes(),
            State::Open(None) | State::Failed => 0,
        };
        held + self.inner.held_bytes()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        if self.is_open() {
            self.inner.send_file(file, offset, count)
        } else {
            Err(ErrorKind::NotConnected.into())
        }
    }
}

impl<S> fmt::Debug for ProxyStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Receiving(_) => f.write_str("ProxyStream(awaits its header)"),
            State::Sending(_) => f.write_str("ProxyStream(sends its header)"),
            State::Open(_) => f.debug_tuple("ProxyStream").field(&self.header()).finish(),
            State::Failed => f.write_str("ProxyStream(failed)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rotor_core::backend::Source;
    use rotor_core::net::ReadAhead;
    use rotor_core::{BackendHandle, Interest, Token};
    use rotor_stream::{Destination, Resolution};

    use super::*;

    /// A socket with these bytes left to read. It can only be read with `read_unseen`.
    struct Unseen(&'static [u8]);

    impl Read for Unseen {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::Other.into())
        }
    }

    impl Write for Unseen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Source for Unseen {
        fn register(&mut self, _: &dyn BackendHandle, _: Token, _: Interest) -> io::Result<()> {
            Ok(())
        }
        fn deregister(&mut self, _: &dyn BackendHandle) -> io::Result<()> {
            Ok(())
        }
    }

    impl StreamSocket for Unseen {
        /// The protocols that it offers.
        type Target = &'static str;
        const READS_UNSEEN: bool = true;

        fn connect<C>(_: &&'static str, _: &Scope<'_, C>) -> io::Result<Unseen> {
            Err(ErrorKind::Unsupported.into())
        }
        fn may_agree_on(target: &&'static str, protocol: &[u8]) -> bool {
            target.as_bytes().starts_with(protocol)
        }
        fn without(target: &'static str, protocol: &[u8]) -> Option<&'static str> {
            target.as_bytes().starts_with(protocol).then_some("http/1.1")
        }
        fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
            let count = buf.put_slice(self.0);
            self.0 = &self.0[count..];
            Ok(())
        }
        fn shutdown(&mut self, _: Shutdown) -> io::Result<()> {
            Ok(())
        }
        fn peer_address(&self) -> Option<SocketAddr> {
            None
        }
        fn local_address(&self) -> Option<SocketAddr> {
            None
        }
    }

    #[test]
    fn a_cancelled_handshake_leaves_nothing_to_be_sent() {
        let mut stream = ProxyStream::sending(Unseen(b""), &ProxyHeader::local());
        assert!(stream.wants_write());
        assert!(!stream.cancel_handshake());
        assert_eq!((stream.wants_write(), stream.unsent_len()), (false, 0));
    }

    #[test]
    fn a_target_offers_the_protocols_of_its_address() {
        type Socket = ProxyStream<Unseen>;
        let target = |offers| ProxyTarget::new(offers, ProxyHeader::local());
        assert!(Socket::may_agree_on(&target("h2 http/1.1"), b"h2"));
        assert!(!Socket::may_agree_on(&target("http/1.1"), b"h2"));
        assert!(Socket::without(target("h2 http/1.1"), b"h2") == Some(target("http/1.1")));
        assert!(Socket::without(target("http/1.1"), b"h2").is_none());
    }

    /// A name that is known, and offers HTTP/2.
    struct Named;

    impl Destination<Unseen, ()> for Named {
        fn may_agree_on(&self, protocol: &[u8]) -> bool {
            protocol == b"h2"
        }
        fn without(self, protocol: &[u8]) -> Option<Named> {
            (protocol == b"h2").then_some(Named)
        }
        fn resolve(&self, _: &Scope<'_, ()>) -> Resolution<&'static str> {
            Resolution::Known("h2 http/1.1")
        }
    }

    #[test]
    fn a_destination_offers_the_protocols_of_its_name() {
        fn is_offered(named: &impl Destination<ProxyStream<Unseen>, ()>, protocol: &[u8]) -> bool {
            named.may_agree_on(protocol)
        }
        let named = || ProxyTarget::new(Named, ProxyHeader::local());
        assert!(is_offered(&named(), b"h2") && !is_offered(&named(), b"http/1.1"));
        assert!(Destination::<ProxyStream<Unseen>, ()>::without(named(), b"h2").is_some());
        assert!(Destination::<ProxyStream<Unseen>, ()>::without(named(), b"http/1.1").is_none());
    }

    #[test]
    fn unseen_reads_return_bytes_read_ahead_first() {
        let established = Established::new(None, ReadAhead::new(b"abc".to_vec()), None);
        let state = State::Open(Some(Box::new(established)));
        let mut stream = ProxyStream { inner: Unseen(b"defg"), state };
        const { assert!(ProxyStream::<Unseen>::READS_UNSEEN) };
        for expected in ["ab", "c", "de", "fg", ""] {
            let (mut memory, mut filled) = ([0; 2], 0);
            let mut buf = ReadBuf::new(&mut memory, &mut filled);
            assert!(stream.read_unseen(&mut buf).is_ok());
            assert_eq!(&memory[..filled], expected.as_bytes());
        }
        let mut stream = ProxyStream { inner: Unseen(b"of the header"), state: State::Failed };
        let (mut memory, mut filled) = ([0; 2], 0);
        let error = stream.read_unseen(&mut ReadBuf::new(&mut memory, &mut filled));
        assert_eq!(error.map_err(|error| error.kind()), Err(ErrorKind::NotConnected));
    }
}
