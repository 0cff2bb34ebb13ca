//! The kernel's sockets, made through the scope by machines that are generic over them.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::net::{
    DatagramSocket, Either, Inet, ListenOptions, Listener, Net, StreamSocket, TcpListener,
    TcpListeners, TcpStream, UdpSocket, Unix, UnixDatagram, UnixListener, UnixStream, is_plain,
};
use rotor_core::{
    BackendHandle, Config, EarlyScope, Exit, Interest, Loop, Response, Scope, Source, Token,
};
#[cfg(target_os = "linux")]
use socket2::{Domain, Protocol, Socket, Type};

use crate::actor::{Actor, Call, Seed, actor, idle};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog";

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A directory of one test, which is removed with all that is in it when the test ends, well or
/// badly.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rotor-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst));
        // Short: the path of a Unix socket has about a hundred bytes.
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("nobody else has such a number");
        Directory(path)
    }

    /// The path of this name, with nothing there.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn address(&self, name: &str) -> unix::SocketAddr {
        unix::SocketAddr::from_pathname(self.path(name)).expect("it is a path")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What came back to the client.
type Received = Vec<u8>;
type Machine = Actor<Received>;

/// Echoes until the peer has ended its side, then ends its own.
fn echo<S: StreamSocket>(mut socket: S) -> Seed<Received> {
    Seed::new("echo", move |scope: &mut Scope<'_, Received>| {
        scope.register(&mut socket, Interest::Both).expect("it is of this backend");
        Response::ok(actor(move |call, _: &mut Scope<'_, Received>| {
            let Call::Ready(events) = call else { return Response::keep(()) };
            assert!(!events.contains(rotor_core::EventSet::ERROR));
            let mut bytes = [0; 16];
            loop {
                match socket.read(&mut bytes) {
                    Ok(0) => return Response::done(),
                    Ok(len) => assert_eq!(socket.write(&bytes[..len]).expect("it has room"), len),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Response::keep(());
                    }
                    Err(error) => return Response::error(error),
                }
            }
        }))
    })
}

/// Takes one connection and ends.
fn accepting<L: Listener>(mut listener: L) -> Machine {
    actor(move |call, _: &mut Scope<'_, Received>| match call {
        Call::Ready(_) => match listener.accept() {
            Ok((socket, _)) => Response::spawn((), echo(socket)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Response::keep(()),
            Err(error) => Response::error(error),
        },
        Call::Spawned => Response::done(),
        _ => Response::keep(()),
    })
}

/// Connects, sends the text by a gathering write, ends its side, and reads all that comes back.
fn asking<S: StreamSocket>(mut socket: S, scope: &EarlyScope<'_>) -> Machine {
    scope.register(&mut socket, Interest::Both).expect("it is of this backend");
    let mut sent = 0;
    actor(move |call, scope: &mut Scope<'_, Received>| {
        let Call::Ready(_) = call else { return Response::keep(()) };
        Response::attempt(|| {
            if let Some(error) = socket.take_error()? {
                return Err(error.into());
            }
            // Asked only while connecting: a socket that both sides have ended may still hold bytes
            // to be read.
            if sent == 0 && !socket.is_connected() {
                return Ok(Response::keep(()));
            }
            if sent == 0 {
                socket.set_nodelay(true)?;
                socket.set_keepalive(Some(Duration::from_secs(60)))?;
                socket.set_keepalive(None)?;
                socket.set_send_buffer(64 * 1024)?;
                socket.set_receive_buffer(64 * 1024)?;
                socket.set_unsent_max(64 * 1024)?;
                let (first, second) = TEXT.split_at(7);
                sent = socket.write_vectored(&[IoSlice::new(first), IoSlice::new(second)])?;
                assert_eq!(sent, TEXT.len());
                socket.flush()?;
                socket.shutdown(Shutdown::Write)?;
            }
            let mut bytes = [0; 64];
            loop {
                match socket.read(&mut bytes) {
                    Ok(0) => return Ok(Response::done()),
                    Ok(len) => scope.extend_from_slice(&bytes[..len]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Ok(Response::keep(()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        })
    })
}

/// An echo of the text by machines that know nothing of the sockets but the traits.
fn converse<L: Listener>(
    address: &L::Address,
    target: impl FnOnce(&L) -> <L::Socket as StreamSocket>::Target,
) {
    let mut creator = Loop::<Machine>::new(&Config::new()).expect("there are descriptors");
    let mut listening = None;
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let mut listener = L::bind(address, &ListenOptions::new().backlog(5), scope)?;
            scope.register(&mut listener, Interest::Readable)?;
            listening = Some(target(&listener));
            Ok(Response::ok(accepting(listener)))
        })
    });
    made.expect("the address is free");
    let target = listening.expect("the closure ran");
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let socket = L::Socket::connect(&target, scope)?;
            Ok(Response::ok(asking(socket, scope)))
        })
    });
    made.expect("it is there");
    let mut instance = creator.instantiate(Received::new());
    assert_eq!(instance.run().expect("the backend can wait"), Exit::Empty);
    assert_eq!(instance.stats().read().failed, 0);
    assert_eq!(instance.context(), TEXT);
}

#[test]
fn streams_of_every_kind_carry_bytes_both_ways() {
    let directory = Directory::new();
    converse::<TcpListener>(&local(), |listener| listener.local_address().expect("it is bound"));
    converse::<TcpListener>(&"[::1]:0".parse().expect("an address"), |listener| {
        listener.local_address().expect("it is bound")
    });
    let unix = directory.path("a");
    converse::<UnixListener>(&unix, |_| unix.clone());
    type Both = Either<TcpListener, UnixListener>;
    converse::<Both>(&Either::A(local()), |listener| {
        Either::A(listener.local_address().expect("it is bound"))
    });
    let unix = directory.path("b");
    converse::<Both>(&Either::B(unix.clone()), |_| Either::B(unix.clone()));
    // A family as one parameter.
    fn family<N: Net>(
        address: &<N::Listener as Listener>::Address,
        target: impl FnOnce(&N::Listener) -> <N::Stream as StreamSocket>::Target,
    ) {
        converse::<N::Listener>(address, target);
    }
    family::<Inet>(&local(), |listener| listener.local_address().expect("it is bound"));
    let unix = directory.path("c");
    family::<Unix>(&unix, |_| unix.clone());
}

/// A datagram there and back, and nothing more.
fn exchange<D: DatagramSocket>(first: &D::Address, second: &D::Address) {
    with_scope(|scope| {
        let mut one = D::bind(first, scope).expect("the address is free");
        let mut two = D::bind(second, scope).expect("the address is free");
        let (to_one, to_two) =
            (one.local_address().expect("it is bound"), two.local_address().expect("it is bound"));
        let mut buffer = [0; 100];
        let nothing = one.receive_from(&mut buffer).err().expect("nothing was sent");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(one.send_to(TEXT, &to_two).expect("it can be sent"), TEXT.len());
        let (len, from) = two.receive_from(&mut buffer).expect("it has come");
        assert_eq!(&buffer[..len], TEXT);
        assert_eq!(two.send_to(b"back", &from).expect("it can be sent"), 4);
        let (len, _) = one.receive_from(&mut buffer[..3]).expect("it has come");
        assert_eq!(&buffer[..len], b"bac", "what does not fit is lost");
        assert_eq!(two.send_to(b"", &to_one).expect("it can be sent"), 0);
        assert_eq!(one.receive_from(&mut buffer).expect("an empty one is one").0, 0);
    });
}

/// Runs something with the scope of a machine on the default backend.
fn with_scope<T>(ask: impl FnOnce(&mut EarlyScope<'_>) -> T) -> T {
    let mut answer = None;
    let mut creator = Loop::<Actor<()>>::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(idle())
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

#[test]
fn datagrams_of_every_kind_go_both_ways() {
    let directory = Directory::new();
    let unix_address = |name| directory.address(name);
    exchange::<UdpSocket>(&local(), &local());
    exchange::<UnixDatagram>(&unix_address("a"), &unix_address("b"));
    exchange::<Either<UdpSocket, UnixDatagram>>(&Either::A(local()), &Either::A(local()));
    exchange::<Either<UdpSocket, UnixDatagram>>(
        &Either::B(unix_address("c")),
        &Either::B(unix_address("d")),
    );
}

/// A socket that is tied to its peer, and a stranger.
fn connected<D: DatagramSocket>(addresses: [D::Address; 3]) {
    with_scope(|scope| {
        let [mut one, mut peer, mut stranger] =
            addresses.map(|address| D::bind(&address, scope).expect("the address is free"));
        let to_one = one.local_address().expect("it is bound");
        one.connect(&peer.local_address().expect("it is bound")).expect("it is there");
        let mut buffer = [0; 100];
        assert_eq!(one.send(TEXT).expect("it can be sent"), TEXT.len());
        let (len, from) = peer.receive_from(&mut buffer).expect("it has come");
        assert_eq!(&buffer[..len], TEXT);
        // Kinds of socket differ in whether the stranger hears of it.
        let _refused = stranger.send_to(b"forged", &to_one);
        assert_eq!(peer.send_to(b"back", &from).expect("it can be sent"), 4);
        let (len, _) = one.receive_from(&mut buffer).expect("it has come");
        assert_eq!(&buffer[..len], b"back");
        let nothing = one.receive_from(&mut buffer).err().expect("a stranger's is thrown away");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    });
}

#[test]
fn a_connected_datagram_socket_sends_to_its_peer_and_hears_nobody_else() {
    let directory = Directory::new();
    let unix = |names: [&str; 3]| names.map(|name| directory.address(name));
    connected::<UdpSocket>([(); 3].map(|()| local()));
    connected::<UnixDatagram>(unix(["a", "b", "c"]));
    connected::<Either<UdpSocket, UnixDatagram>>([(); 3].map(|()| Either::A(local())));
    connected::<Either<UdpSocket, UnixDatagram>>(unix(["d", "e", "f"]).map(Either::B));
}

#[test]
fn a_connected_datagram_socket_hears_that_nobody_takes_what_it_sends() {
    with_scope(|scope| {
        let closed = UdpSocket::bind(&local(), scope).and_then(|socket| socket.local_address());
        let mut socket = UdpSocket::bind(&local(), scope).expect("a port is free");
        socket.connect(&closed.expect("a port was free")).expect("nothing is sent");
        socket.send(TEXT).expect("it can be sent");
        let error = socket.receive_from(&mut [0; 9]).expect_err("nobody answers");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let nothing = socket.receive_from(&mut [0; 9]).expect_err("it was told once");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    });
}

#[test]
fn a_datagram_to_an_address_that_cannot_be_is_invalid_input() {
    let directory = Directory::new();
    with_scope(|scope| {
        let pathname = directory.address("a");
        let mut socket = Either::<UdpSocket, UnixDatagram>::bind(&Either::B(pathname), scope)
            .expect("it is free");
        let wrong = socket.send_to(TEXT, &Either::A(local())).expect_err("it is of the other kind");
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        let (unnamed, _) = unix::UnixDatagram::pair().expect("there are descriptors");
        let unnamed = unnamed.local_addr().expect("it has one");
        let nobody = socket.send_to(TEXT, &Either::B(unnamed)).expect_err("it has no path");
        assert_eq!(nobody.kind(), io::ErrorKind::InvalidInput);
        let unnamed = unix::UnixDatagram::unbound().and_then(|socket| socket.local_addr());
        for peer in [Either::A(local()), Either::B(unnamed.expect("it has one"))] {
            let wrong = socket.connect(&peer).expect_err("it cannot be a peer");
            assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn a_refused_connection_says_why() {
    // A port that was free a moment ago.
    let refused = std::net::TcpListener::bind(local()).and_then(|listener| listener.local_addr());
    let refused = refused.expect("a port is free");
    let mut creator = Loop::<Machine>::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let socket = TcpStream::connect(&refused, scope)?;
            Ok(Response::ok(asking(socket, scope)))
        })
    });
    made.expect("it only begins to connect");
    let mut instance = creator.instantiate(Received::new());
    assert_eq!(instance.run().expect("the backend can wait"), Exit::Empty);
    assert_eq!(instance.stats().read().failed, 1);
    let directory = Directory::new();
    with_scope(|scope| {
        let nobody =
            UnixStream::connect(&directory.path("nobody"), scope).expect_err("nobody listens");
        assert_eq!(nobody.kind(), io::ErrorKind::NotFound);
        let taken = UdpSocket::bind(&local(), scope).expect("a port is free");
        let taken = taken.local_address().expect("it is bound");
        let socket = UdpSocket::bind(&taken, scope).err();
        assert!(socket.is_none_or(|error| error.kind() == io::ErrorKind::AddrInUse));
    });
}

#[test]
fn an_address_that_was_not_opened_is_named_with_why() {
    let directory = Directory::new();
    let path = directory.path("taken");
    let _unix = std::os::unix::net::UnixListener::bind(&path).expect("nobody else is there");
    let tcp = std::net::TcpListener::bind(local()).expect("a port is free");
    let tcp = tcp.local_addr().map(|address| (tcp, address)).expect("it is bound");
    let udp = std::net::UdpSocket::bind(local()).expect("a port is free");
    let udp = udp.local_addr().map(|address| (udp, address)).expect("it is bound");
    let named = std::os::unix::net::SocketAddr::from_pathname(&path).expect("it is short");
    let options = ListenOptions::new();
    let refused = with_scope(|scope| {
        [
            (TcpListener::bind(&tcp.1, &options, scope).err(), tcp.1.to_string()),
            (TcpListeners::bind(tcp.1, &options, 2).err(), tcp.1.to_string()),
            (UdpSocket::bind(&udp.1, scope).err(), udp.1.to_string()),
            (UnixListener::bind(&path, &options, scope).err(), path.display().to_string()),
            (UnixDatagram::bind(&named, scope).err(), path.display().to_string()),
        ]
    });
    for (error, address) in refused {
        let error = error.expect("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(error.to_string(), format!("cannot listen on {address}"));
        let cause = std::error::Error::source(&error).expect("the system said why");
        let cause = cause.downcast_ref::<io::Error>().expect("as the system says it");
        assert!(
            cause.raw_os_error().is_some() && cause.kind() == io::ErrorKind::AddrInUse,
            "{cause:?}"
        );
    }
}

#[test]
fn addresses_are_those_of_both_ends() {
    with_scope(|scope| {
        let listener =
            TcpListener::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let mut listener = listener;
        let address = listener.local_address().expect("it is bound");
        let client = TcpStream::connect(&address, scope).expect("it is there");
        // Loopback connects at once, or nearly: `accept` is what shows that it has.
        let (server, peer) = loop {
            match listener.accept() {
                Ok(accepted) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!(peer, client.local_address());
        assert_eq!(server.peer_address(), client.local_address());
        assert_eq!(server.local_address(), Some(address));
        assert!(server.is_connected());
        assert!(is_plain::<TcpStream>() && is_plain::<UnixStream>());
        assert!(!is_plain::<Either<TcpStream, UnixStream>>() && !is_plain::<Wrapped>());
        let (one, _two) = unix::UnixStream::pair().expect("there are descriptors");
        let one = UnixStream::from_std(one, scope).expect("it is of this backend");
        assert_eq!(
            (one.peer_address(), one.local_address(), one.is_connected()),
            (None, None, true)
        );
    });
}

/// The next connection of a listener that somebody is connecting to.
fn accept<L: Listener>(listener: &mut L) -> L::Socket {
    loop {
        match listener.accept() {
            Ok((socket, _)) => return socket,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}

/// Listens with TCP or what looks like it; nothing where the system does not know that.
#[cfg(target_os = "linux")]
fn listen_with(protocol: Protocol, scope: &EarlyScope<'_>) -> Option<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).ok()?;
    socket.bind(&local().into()).and_then(|()| socket.listen(8)).expect("a port is free");
    let listener = TcpListener::from_std(socket.into(), scope).expect("it is of this backend");
    let address = listener.local_address().expect("it is bound");
    Some((listener, address))
}

#[test]
#[cfg(target_os = "linux")]
fn a_short_read_drains_what_is_known_to_be_plain_tcp_and_nothing_else() {
    with_scope(|scope| {
        let bound =
            TcpListener::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let bound_to = bound.local_address().expect("it is bound");
        let given = listen_with(Protocol::TCP, scope).expect("every system has TCP");
        for (mut listener, address) in [(bound, bound_to), given] {
            let client = TcpStream::connect(&address, scope).expect("it is there");
            assert!(client.short_read_drains() && accept(&mut listener).short_read_drains());
            assert!(!client.holds_input());
        }
        if let Some((mut listener, address)) = listen_with(Protocol::MPTCP, scope) {
            let connecting =
                Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("as above");
            connecting.connect(&address.into()).expect("it is there");
            let client =
                TcpStream::from_std(connecting.into(), scope).expect("it is of this backend");
            assert!(!client.short_read_drains() && !accept(&mut listener).short_read_drains());
        }
        let (one, two) = unix::UnixStream::pair().expect("there are descriptors");
        let [one, two] = [one, two]
            .map(|socket| UnixStream::from_std(socket, scope).expect("it is of this backend"));
        assert!(!one.short_read_drains(), "a descriptor may come with the bytes");
        assert!(!one.holds_input());
        let (_listener, address) = listen_with(Protocol::TCP, scope).expect("every system has TCP");
        let tcp = TcpStream::connect(&address, scope).expect("it is there");
        let [one_kind, the_other] = [Either::A(tcp), Either::B(two)];
        assert!(one_kind.short_read_drains() && !the_other.short_read_drains(), "each for itself");
        assert!(!one_kind.holds_input() && !the_other.holds_input());
    });
}

/// Connects to where nobody listens, and says how that ends.
fn refused<S: StreamSocket<Target = SocketAddr>>(scope: &EarlyScope<'_>) -> io::Error {
    // A port that was free a moment ago.
    let nobody = std::net::TcpListener::bind(local()).and_then(|listener| listener.local_addr());
    let mut socket =
        S::connect(&nobody.expect("a port is free"), scope).expect("it only begins to connect");
    // Loopback refuses before `connect` comes back, or nearly.
    let failure = (0..100_000).find_map(|_| socket.has_connected().err());
    failure.expect("it is known to be over")
}

/// Asks an attempt to connect that hangs, since its listener has no room for it, a few times.
fn assert_hangs<S: StreamSocket<Target = SocketAddr>>(scope: &EarlyScope<'_>) {
    let listener = TcpListener::bind(&local(), &ListenOptions::new().backlog(0), scope)
        .expect("a port is free");
    let address = listener.local_address().expect("it is bound");
    let mut attempts: Vec<S> = Vec::new();
    // Loopback connects before `connect` comes back, as far as there is room.
    while attempts.last_mut().is_none_or(|last| last.has_connected().expect("it has not failed")) {
        assert!(attempts.len() < 100, "a queue of none has no end");
        attempts.push(S::connect(&address, scope).expect("it only begins to connect"));
    }
    let last = attempts.last_mut().expect("there was one");
    assert!((0..3).all(|_| !last.has_connected().expect("asking changes nothing")));
}

#[test]
fn an_attempt_to_connect_is_under_way_until_it_succeeds_or_says_why_it_failed() {
    with_scope(|scope| {
        assert_eq!(refused::<TcpStream>(scope).kind(), io::ErrorKind::ConnectionRefused);
        let of_wrapper = refused::<Wrapped<TcpStream>>(scope);
        assert_eq!(
            of_wrapper.kind(),
            io::ErrorKind::ConnectionRefused,
            "though it asks for no error"
        );
        assert_hangs::<TcpStream>(scope);
        assert_hangs::<Wrapped<TcpStream>>(scope);
    });
}

/// A wrapper that leaves all it may to the defaults.
struct Wrapped<S = UnixStream>(S);

impl<S: StreamSocket> Read for Wrapped<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: StreamSocket> Write for Wrapped<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<S: StreamSocket> Source for Wrapped<S> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        Source::register(&mut self.0, backend, token, interest)
    }
    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        Source::deregister(&mut self.0, backend)
    }
}

impl<S: StreamSocket> StreamSocket for Wrapped<S> {
    type Target = S::Target;
    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        S::connect(target, scope).map(Wrapped)
    }
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
    fn peer_address(&self) -> Option<SocketAddr> {
        self.0.peer_address()
    }
    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }
}

#[test]
fn a_wrapper_has_safe_defaults() {
    with_scope(|scope| {
        let (one, _two) = unix::UnixStream::pair().expect("there are descriptors");
        let mut wrapped = Wrapped(UnixStream::from_std(one, scope).expect("it is of this backend"));
        assert!(wrapped.holds_input() && !wrapped.short_read_drains());
        assert!(!wrapped.wants_read() && !wrapped.wants_write() && !wrapped.is_connected());
        assert!(wrapped.take_error().expect("nothing to ask").is_none());
        wrapped
            .set_nodelay(true)
            .and_then(|()| wrapped.set_keepalive(None))
            .expect("they are ignored");
        wrapped
            .set_send_buffer(1)
            .and_then(|()| wrapped.set_receive_buffer(1))
            .expect("they are ignored");
        wrapped.set_unsent_max(1).expect("it is ignored");
        scope.register(&mut wrapped, Interest::Both).expect("it is of this backend");
        scope.deregister(&mut wrapped).expect("it is registered");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_the_kernel_cannot_send_is_copied() {
    // The kernel has no pages of it: sendfile(2) refuses.
    let path = "/proc/self/cmdline";
    let content = std::fs::read(path).expect("every process has one");
    let file = File::open(path).expect("as above");
    with_scope(|scope| {
        let (one, mut two) = unix::UnixStream::pair().expect("there are descriptors");
        let mut socket = UnixStream::from_std(one, scope).expect("it is of this backend");
        assert_eq!(socket.send_file(&file, 2, 1 << 20).expect("there is room"), content.len() - 2);
        let end = content.len() as u64;
        assert_eq!(
            socket.send_file(&file, end, 1 << 20).expect("it is no failure"),
            0,
            "the file ends there"
        );
        drop(socket);
        let mut sent = Vec::new();
        two.read_to_end(&mut sent).expect("it was sent");
        assert_eq!(sent, content[2..]);
    });
}

/// Sends a file in pieces from every interesting offset, and compares what arrives.
fn send_file_by<S: StreamSocket>(make: impl Fn(unix::UnixStream, &EarlyScope<'_>) -> S) {
    // Larger than what is copied at a time.
    let content: Vec<u8> = (0..40_000u32).map(|byte| (byte % 251) as u8).collect();
    let directory = Directory::new();
    let path = directory.path("file");
    std::fs::write(&path, &content).expect("there is room");
    let file = File::open(&path).expect("it was written");
    with_scope(|scope| {
        for (offset, count) in
            [(0, 40_000), (1, 16_384), (1, 16_385), (39_999, 10), (20_000, 50_000), (7, 0)]
        {
            let (one, mut two) = unix::UnixStream::pair().expect("there are descriptors");
            let mut socket = make(one, scope);
            two.set_nonblocking(true).expect("it can be");
            let (mut sent, mut received) = (0, Vec::new());
            while sent < count {
                match socket.send_file(&file, offset + sent as u64, count - sent) {
                    Ok(0) => break,
                    Ok(len) => sent += len,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
                let mut bytes = [0; 1_000];
                while let Ok(len) = two.read(&mut bytes) {
                    received.extend_from_slice(&bytes[..len]);
                }
            }
            let end = content.len().min(offset as usize + count);
            assert!(received == content[offset as usize..end], "{offset} {count}");
            let past = socket.send_file(&file, 40_000, 10).expect("there is room");
            assert_eq!(past, 0, "0 says that the file ends before");
        }
    });
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn files_are_sent_by_the_kernel_and_by_copying_alike() {
    let unix = |socket, scope: &EarlyScope<'_>| {
        UnixStream::from_std(socket, scope).expect("of this backend")
    };
    send_file_by(unix);
    send_file_by(|socket, scope| Wrapped(unix(socket, scope)));
    send_file_by(|socket, scope| Either::<TcpStream, UnixStream>::B(unix(socket, scope)));
    send_file_by(|socket, scope| Either::<Wrapped, TcpStream>::A(Wrapped(unix(socket, scope))));
}

/// Has a machine drop a source of which there is another descriptor; then something comes there.
fn assert_quiet_when_dropped<S: Source + 'static>(
    make: impl FnOnce(&Scope<'_, Received>) -> io::Result<S>,
    something_comes: impl FnOnce(),
) {
    let config = Config::new().exit(rotor_core::ExitPolicy::OnRequest);
    let mut instance =
        Loop::<Machine>::new(&config).expect("there are descriptors").instantiate(Received::new());
    let made = instance.add_machine_with(|scope| {
        Response::attempt(|| {
            let mut source = make(scope)?;
            scope.register(&mut source, Interest::Both)?;
            Ok(Response::ok(actor(move |_, _| {
                let _owned = &source;
                Response::keep(())
            })))
        })
    });
    made.expect("it is of this backend");
    instance.handle().drain(Duration::ZERO);
    while instance.turn(Some(Duration::ZERO)).expect("polling never fails").is_none() {}
    assert_eq!(instance.machines().len(), 0);
    let before = instance.stats().read();
    something_comes();
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let after = instance.stats().read();
    assert_eq!(after.stale - before.stale, 0, "the loop is told of a source that is gone");
}

#[test]
fn a_listener_that_others_have_as_well_tells_its_loop_nothing_once_it_is_dropped() {
    let listener = std::net::TcpListener::bind(local()).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let shared =
        TcpListeners::from_std(listener, 2).expect("descriptors are left").collect::<Vec<_>>();
    let [mine, _theirs] = <[_; 2]>::try_from(shared).expect("there are two");
    let mut client = None;
    assert_quiet_when_dropped(
        |scope| TcpListener::from_std(mine, scope),
        || client = std::net::TcpStream::connect(address).ok(),
    );
    assert!(client.is_some(), "the address is open");

    let directory = Directory::new();
    let listener = unix::UnixListener::bind(directory.path("l")).expect("it is free");
    let mine = listener.try_clone().expect("descriptors are left");
    let mut client = None;
    assert_quiet_when_dropped(
        |scope| UnixListener::from_std(mine, scope),
        || client = unix::UnixStream::connect(directory.path("l")).ok(),
    );
    assert!(client.is_some(), "the address is open");
}

#[test]
fn a_datagram_socket_that_others_have_as_well_tells_its_loop_nothing_once_it_is_dropped() {
    let socket = std::net::UdpSocket::bind(local()).expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    let mine = socket.try_clone().expect("descriptors are left");
    assert_quiet_when_dropped(
        |scope| UdpSocket::from_std(mine, scope),
        || assert_eq!(socket.send_to(TEXT, address).expect("it is sent"), TEXT.len()),
    );

    let directory = Directory::new();
    let socket = unix::UnixDatagram::bind(directory.path("d")).expect("it is free");
    let mine = socket.try_clone().expect("descriptors are left");
    assert_quiet_when_dropped(
        |scope| UnixDatagram::from_std(mine, scope),
        || assert_eq!(socket.send_to(TEXT, directory.path("d")).expect("it is sent"), TEXT.len()),
    );
}

#[test]
fn a_dropped_socket_reports_nothing_and_a_deregistered_one_neither() {
    let mut creator = Loop::<Actor<u32>>::new(&Config::new()).expect("there are descriptors");
    let sender = std::net::UdpSocket::bind(local()).expect("a port is free");
    for is_dropped in [true, false] {
        let made = creator.add_machine_with(|scope| {
            let mut socket = UdpSocket::bind(&local(), scope).expect("a port is free");
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            sender
                .send_to(b"x", socket.local_address().expect("it is bound"))
                .expect("it can be sent");
            let kept = if is_dropped {
                drop(socket);
                None
            } else {
                scope.deregister(&mut socket).expect("it is registered");
                Some(socket)
            };
            Response::ok(actor(move |call, scope: &mut Scope<'_, u32>| {
                let _kept = &kept;
                **scope += u32::from(matches!(call, Call::Ready(_)));
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(0);
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(*instance.context(), 0);
}

/// How many of the connections that are made to `listeners` each of them gets.
fn accepted_by_each(listeners: TcpListeners, connections: usize) -> Vec<usize> {
    let address = listeners.local_address();
    let clients: Vec<_> = (0..connections)
        .map(|_| std::net::TcpStream::connect(address).expect("it listens"))
        .collect();
    let counts = with_scope(|scope| {
        let adopted = listeners
            .map(|listener| TcpListener::from_std(listener, scope).expect("of this backend"));
        let mut adopted: Vec<TcpListener> = adopted.collect();
        adopted
            .iter_mut()
            .map(|listener| std::iter::from_fn(|| listener.accept().ok()).count())
            .collect()
    });
    drop(clients);
    counts
}

#[test]
fn listeners_of_one_address_spread_its_connections_and_lose_none() {
    let listeners = TcpListeners::bind(local(), &ListenOptions::new(), 3).expect("a port is free");
    assert_eq!((listeners.len(), listeners.is_empty()), (3, false));
    assert_ne!(listeners.local_address().port(), 0);
    let counts = accepted_by_each(listeners, 90);
    assert_eq!(counts.iter().sum::<usize>(), 90);
    if cfg!(target_os = "linux") {
        assert!(counts.iter().all(|count| *count > 0), "each has a queue of its own: {counts:?}");
    }
}

#[test]
fn a_shared_listener_gives_each_connection_to_whoever_accepts_first() {
    let first = std::net::TcpListener::bind(local()).expect("a port is free");
    let address = first.local_addr().expect("it is bound");
    let listeners = TcpListeners::from_std(first, 3).expect("there are descriptors");
    assert_eq!((listeners.len(), listeners.local_address()), (3, address));
    assert_eq!(accepted_by_each(listeners, 20), [20, 0, 0]);
    for count in [0, 1] {
        let one =
            TcpListeners::bind(local(), &ListenOptions::new(), count).expect("a port is free");
        assert_eq!(one.len(), 1, "at least one");
    }
}

#[test]
fn an_address_is_shared_only_by_those_who_all_ask_for_it() {
    with_scope(|scope| {
        let alone =
            TcpListener::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let address = alone.local_address().expect("it is bound");
        let options = ListenOptions::new().reuse_port(true);
        let taken = TcpListener::bind(&address, &options, scope).expect_err("it is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(ListenOptions::new().backlog(7).backlog_len(), 7);
        let _descriptor = alone.as_fd();
    });
}
