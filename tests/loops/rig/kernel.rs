//! Loops on the kernel's sockets. The other end is a socket of the standard library.
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

use std::any::Any;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, Inet, IpNet, Listener, Net, StreamSocket, Unix};
use rotor_core::{Backend, Config, Exit, Loop, LoopInstance, Scope};

use super::{End, MaybeSend, OnLoop, TestMachine, local};

/// How long a turn waits before the other end is polled again.
const WAIT: Duration = Duration::from_millis(10);

/// A loop on the kernel's sockets, which have paths and descriptors.
pub(crate) trait OnKernel: Sized + 'static {
    type Backend: Backend;
    type Net: IpNet<
            Stream: StreamSocket<Target = SocketAddr> + Adopt<TcpStream> + MaybeSend,
            Listener: Listener<Address = SocketAddr> + Adopt<TcpListener> + MaybeSend,
            Datagram: DatagramSocket<Address = SocketAddr> + Adopt<UdpSocket> + MaybeSend,
        >;
    type Unix: Net<
            Stream: StreamSocket<Target = PathBuf> + Adopt<unix::UnixStream> + MaybeSend,
            Listener: Listener<Address = PathBuf> + Adopt<unix::UnixListener> + MaybeSend,
            Datagram: DatagramSocket<Address = unix::SocketAddr>
                          + Adopt<unix::UnixDatagram>
                          + MaybeSend,
        >;

    fn refusal() -> Option<String> {
        None
    }

    fn new_loop<M: TestMachine>(config: &Config) -> io::Result<Loop<M, Self::Backend>>;

    /// Does what `Loop::instantiate` does. The backend is a concrete type here, so it is known
    /// whether the loop can move between threads.
    fn instantiate<M: TestMachine>(
        creator: Loop<M, Self::Backend>,
        context: M::Context,
    ) -> LoopInstance<M, Self::Backend>;
}

/// A socket that can be made from one of the standard library.
pub(crate) trait Adopt<Std>: Sized {
    fn adopt<C>(socket: Std, scope: &Scope<'_, C>) -> io::Result<Self>;
}

pub(crate) type UnixStreamOn<L> = <<L as OnKernel>::Unix as Net>::Stream;
pub(crate) type UnixListenerOn<L> = <<L as OnKernel>::Unix as Net>::Listener;
pub(crate) type UnixDatagramOn<L> = <<L as OnKernel>::Unix as Net>::Datagram;

/// Implements `Adopt` for the six socket types of a loop. Each calls the constructor of the same
/// name.
macro_rules! adopt {
    ($($socket:path: $std:path,)*) => {
        $(impl $crate::loops::Adopt<$std> for $socket {
            fn adopt<C>(socket: $std, scope: &rotor_core::Scope<'_, C>) -> std::io::Result<Self> {
                <$socket>::from_std(socket, scope)
            }
        })*
    };
}
#[allow(unused_imports, reason = "a crate's own suite has the sockets of one loop")]
pub(crate) use adopt;

adopt! {
    rotor_core::net::TcpStream: TcpStream,
    rotor_core::net::TcpListener: TcpListener,
    rotor_core::net::UdpSocket: UdpSocket,
    rotor_core::net::UnixStream: unix::UnixStream,
    rotor_core::net::UnixListener: unix::UnixListener,
    rotor_core::net::UnixDatagram: unix::UnixDatagram,
}

/// mio, the default loop: the one of `Loop::new`.
pub(crate) struct Mio;

impl OnKernel for Mio {
    type Backend = rotor_core::Mio;
    type Net = Inet;
    type Unix = Unix;

    fn new_loop<M: TestMachine>(config: &Config) -> io::Result<Loop<M, rotor_core::Mio>> {
        Loop::new(config)
    }

    fn instantiate<M: TestMachine>(
        creator: Loop<M, rotor_core::Mio>,
        context: M::Context,
    ) -> LoopInstance<M, rotor_core::Mio> {
        creator.instantiate(context)
    }
}

impl<K: OnKernel> OnLoop for K {
    type Backend = K::Backend;
    type Net = K::Net;
    type End = TcpStream;
    type PeerListener = TcpListener;
    type Running<M: TestMachine> = LoopInstance<M, K::Backend>;

    const TURNS_MAX: u32 = 100_000;

    fn refusal() -> Option<String> {
        K::refusal()
    }

    fn open<M: TestMachine>(config: &Config, context: M::Context) -> LoopInstance<M, K::Backend> {
        K::instantiate(K::new_loop::<M>(config).expect("there are descriptors"), context)
    }

    fn with<M: TestMachine, R>(
        running: &mut LoopInstance<M, K::Backend>,
        ask: impl FnOnce(&mut LoopInstance<M, K::Backend>) -> R,
    ) -> R {
        ask(running)
    }

    fn turn<M: TestMachine>(running: &mut LoopInstance<M, K::Backend>) -> Option<Exit> {
        running.turn(Some(WAIT)).expect("the loop goes on")
    }

    fn connect<M: TestMachine>(_: &mut LoopInstance<M, K::Backend>, to: SocketAddr) -> TcpStream {
        let end = TcpStream::connect(to).expect("the listener listens");
        end.set_nonblocking(true).expect("it can be");
        end.set_nodelay(true).expect("it can be");
        end
    }

    fn peer_listener<M: TestMachine>(
        _: &mut LoopInstance<M, K::Backend>,
    ) -> (TcpListener, SocketAddr) {
        let door = TcpListener::bind(local()).expect("a port is free");
        door.set_nonblocking(true).expect("it can be");
        let address = door.local_addr().expect("it is bound");
        (door, address)
    }

    fn accept_peer(door: &mut TcpListener) -> io::Result<TcpStream> {
        let (end, _) = door.accept()?;
        end.set_nonblocking(true)?;
        Ok(end)
    }

    fn closed() -> (Box<dyn Any>, SocketAddr) {
        // Bound but not listening: nobody else can listen there.
        let (socket, address) = bound();
        (Box::new(socket), address)
    }

    fn silent() -> (Box<dyn Any>, SocketAddr) {
        let (listener, address) = bound();
        listener.listen(0).expect("it is bound");
        // Once the backlog is full, the kernel leaves further attempts to connect unanswered.
        let filling = [(); 4].map(|()| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
            let socket = socket.expect("descriptors are left");
            socket.set_nonblocking(true).expect("it can be");
            let _in_progress = socket.connect(&address.into());
            socket
        });
        (Box::new((listener, filling)), address)
    }
}

fn bound() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
        .expect("descriptors are left");
    socket.bind(&local().into()).expect("a port is free");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    (socket, address.expect("it is bound"))
}

impl End for TcpStream {
    fn has_connected(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn end(&mut self) -> io::Result<()> {
        // The peer may have shut down both directions already.
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}
