//! What a `ProxyStream` forwards to the inner socket: the call reaches it, and its answer is
//! returned.

mod kit;

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use kit::{Log, Test, config};
use rotor_core::backend::{BackendHandle, Source};
use rotor_core::net::StreamSocket;
use rotor_core::{Interest, Scope, Token};
use rotor_proxy_protocol::{ProxyHeader, ProxyProtocol, ProxyStream, Untrusted};

/// Records its calls, and answers differently from the defaults.
#[derive(Clone, Default)]
struct RecordingSocket {
    calls: Rc<RefCell<Vec<&'static str>>>,
    unsent: usize,
    wants_write: bool,
}

impl RecordingSocket {
    fn record<T>(&self, what: &'static str, answer: T) -> T {
        self.calls.borrow_mut().push(what);
        answer
    }
}

impl Read for RecordingSocket {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.record("read", Ok(7))
    }
}

impl Write for RecordingSocket {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        self.record("write", Ok(7))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.record("flush", Ok(()))
    }
}

impl Source for RecordingSocket {
    fn register(&mut self, _: &dyn BackendHandle, _: Token, _: Interest) -> io::Result<()> {
        self.record("register", Ok(()))
    }
    fn deregister(&mut self, _: &dyn BackendHandle) -> io::Result<()> {
        self.record("deregister", Ok(()))
    }
}

impl StreamSocket for RecordingSocket {
    type Target = ();

    fn connect<C>(_: &(), _: &Scope<'_, C>) -> io::Result<RecordingSocket> {
        Ok(RecordingSocket::default())
    }
    fn shutdown(&mut self, _: Shutdown) -> io::Result<()> {
        self.record("shutdown", Ok(()))
    }
    fn reset(&mut self) -> io::Result<()> {
        self.record("reset", Ok(()))
    }
    fn write_last(&mut self, _: &[u8]) -> io::Result<usize> {
        self.record("write_last", Ok(7))
    }
    fn peer_address(&self) -> Option<SocketAddr> {
        self.record("peer_address", Some(([10, 0, 0, 1], 7).into()))
    }
    fn local_address(&self) -> Option<SocketAddr> {
        self.record("local_address", Some(([10, 0, 0, 2], 7).into()))
    }
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.record("take_error", Ok(Some(io::ErrorKind::Other.into())))
    }
    fn is_connected(&self) -> bool {
        self.record("is_connected", false)
    }
    fn has_connected(&mut self) -> io::Result<bool> {
        self.record("has_connected", Ok(false))
    }
    fn cancel_handshake(&mut self) -> bool {
        self.record("cancel_handshake", true)
    }
    fn negotiated(&self) -> Option<&[u8]> {
        self.record("negotiated", Some(b"h2"))
    }
    fn session(&self) -> Option<&dyn Any> {
        self.record("session", Some(&7_u8))
    }
    fn session_of(&self, _: TypeId) -> Option<&dyn Any> {
        self.record("session_of", Some(&7_u8))
    }
    fn is_secure(&self) -> bool {
        self.record("is_secure", true)
    }
    fn set_nodelay(&self, _: bool) -> io::Result<()> {
        self.record("set_nodelay", Ok(()))
    }
    fn set_keepalive(&self, _: Option<Duration>) -> io::Result<()> {
        self.record("set_keepalive", Ok(()))
    }
    fn holds_input(&self) -> bool {
        self.record("holds_input", false)
    }
    fn set_send_buffer(&self, _: usize) -> io::Result<()> {
        self.record("set_send_buffer", Ok(()))
    }
    fn set_receive_buffer(&self, _: usize) -> io::Result<()> {
        self.record("set_receive_buffer", Ok(()))
    }
    fn set_unsent_max(&self, _: u32) -> io::Result<()> {
        self.record("set_unsent_max", Ok(()))
    }
    fn short_read_drains(&self) -> bool {
        self.record("short_read_drains", true)
    }
    fn read_cost(&self) -> usize {
        self.record("read_cost", 7)
    }
    fn wants_read(&self) -> bool {
        self.record("wants_read", true)
    }
    fn wants_write(&self) -> bool {
        self.record("wants_write", self.wants_write)
    }
    fn awaits_rest(&self) -> bool {
        self.record("awaits_rest", true)
    }
    fn unsent_len(&self) -> usize {
        self.record("unsent_len", self.unsent)
    }
    fn held_bytes(&self) -> usize {
        self.record("held_bytes", 7)
    }
    fn send_file(&mut self, _: &File, _: u64, _: usize) -> io::Result<usize> {
        self.record("send_file", Ok(7))
    }
}

/// An open stream: its peer is in a network that sends no header.
fn open(socket: &RecordingSocket) -> ProxyStream<RecordingSocket> {
    let behind = ProxyProtocol::new(config().untrusted(Untrusted::Direct));
    let mut stream = behind.wrap(socket.clone(), None);
    let mut test = Test::new(Log::new());
    let opened = test.instance().add_machine_with(|scope| {
        stream.handshake(scope).expect("there is no header");
        rotor_core::Response::error("it was only to be lent a scope")
    });
    assert!(opened.is_err());
    socket.calls.borrow_mut().clear();
    stream
}

type Query = fn(&mut ProxyStream<RecordingSocket>) -> bool;

#[test]
fn other_calls_are_forwarded_to_the_inner_socket() {
    let socket = RecordingSocket { unsent: 7, ..RecordingSocket::default() };
    let mut stream = open(&socket);
    let file = File::open("/dev/null").expect("it is there");
    assert_eq!(stream.send_file(&file, 0, 9).ok(), Some(7));
    assert_eq!(*socket.calls.borrow(), ["send_file"]);
    let all: [(&str, Query); 29] = [
        ("read", |it| it.read(&mut [0; 9]).ok() == Some(7)),
        ("write", |it| it.write(b"any").ok() == Some(7)),
        ("write", |it| it.write_vectored(&[io::IoSlice::new(b"any")]).ok() == Some(7)),
        ("flush", |it| it.flush().is_ok()),
        ("shutdown", |it| it.shutdown(Shutdown::Write).is_ok()),
        ("reset", |it| it.reset().is_ok()),
        ("write_last", |it| it.write_last(b"any").ok() == Some(7)),
        ("peer_address", |it| it.peer_address() == Some(([10, 0, 0, 1], 7).into())),
        ("local_address", |it| it.local_address() == Some(([10, 0, 0, 2], 7).into())),
        ("take_error", |it| it.take_error().is_ok_and(|error| error.is_some())),
        ("is_connected", |it| !it.is_connected()),
        ("has_connected", |it| it.has_connected().ok() == Some(false)),
        ("cancel_handshake", |it| it.cancel_handshake()),
        ("negotiated", |it| it.negotiated() == Some(b"h2")),
        ("session", |it| it.session().is_some_and(|session| session.is::<u8>())),
        ("session_of", |it| it.session_of(TypeId::of::<u8>()).is_some()),
        ("is_secure", |it| it.is_secure()),
        ("set_nodelay", |it| it.set_nodelay(true).is_ok()),
        ("set_keepalive", |it| it.set_keepalive(None).is_ok()),
        ("holds_input", |it| !it.holds_input()),
        ("set_send_buffer", |it| it.set_send_buffer(9).is_ok()),
        ("set_receive_buffer", |it| it.set_receive_buffer(9).is_ok()),
        ("set_unsent_max", |it| it.set_unsent_max(9).is_ok()),
        ("short_read_drains", |it| it.short_read_drains()),
        ("read_cost", |it| it.read_cost() == 7),
        ("wants_read", |it| it.wants_read()),
        ("awaits_rest", |it| it.awaits_rest()),
        ("unsent_len", |it| it.unsent_len() == 7),
        ("held_bytes", |it| it.held_bytes() == 7),
    ];
    for (name, query) in all {
        socket.calls.borrow_mut().clear();
        assert!(query(&mut stream), "{name}");
        assert_eq!(*socket.calls.borrow(), [name]);
    }
}

#[test]
fn an_unsent_header_counts_as_unsent_bytes() {
    let header = ProxyHeader::local();
    for (unsent, wants_write) in [(0, false), (0, true), (7, false), (7, true)] {
        let socket = RecordingSocket { unsent, wants_write, ..RecordingSocket::default() };
        assert_eq!(open(&socket).wants_write(), unsent > 0 || wants_write);
        let sending = ProxyStream::sending(socket, &header);
        assert!(sending.wants_write());
        assert_eq!(sending.unsent_len(), header.to_bytes().len() + unsent);
    }
}
