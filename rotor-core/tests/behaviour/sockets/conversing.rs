//! Byte streams of every kind, by machines that know the traits only; and a connection that is
//! refused.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::time::Duration;

use rotor_core::net::{
    DatagramSocket, Either, Inet, ListenOptions, Listener, Net, StreamSocket, TcpListener,
    TcpStream, UdpSocket, Unix, UnixListener, UnixStream,
};
use rotor_core::{Config, EarlyScope, Exit, Interest, Loop, Response, Scope};

use super::{Directory, TEXT, closed, local, with_scope};
use crate::actor::{Actor, Call, Seed, actor};

/// What came back to the client.
type Received = Vec<u8>;
type Machine = Actor<Received>;

/// Echoes until the peer has ended its side, then ends its own.
fn echo<S: StreamSocket + Send>(mut socket: S) -> Seed<Received> {
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
fn accepting<L: Listener<Socket: Send> + Send>(mut listener: L) -> Machine {
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
fn asking<S: StreamSocket + Send>(mut socket: S, scope: &EarlyScope<'_>) -> Machine {
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
fn converse<L: Listener<Socket: Send> + Send>(
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
    // Not every machine has IPv6.
    let ipv6 = "[::1]:0".parse().expect("an address");
    if std::net::TcpListener::bind(ipv6).is_ok() {
        converse::<TcpListener>(&ipv6, |listener| listener.local_address().expect("it is bound"));
    }
    let unix = directory.path("a");
    converse::<UnixListener>(&unix, |_| unix.clone());
    type Both = Either<TcpListener, UnixListener>;
    converse::<Both>(&Either::A(local()), |listener| {
        Either::A(listener.local_address().expect("it is bound"))
    });
    let unix = directory.path("b");
    converse::<Both>(&Either::B(unix.clone()), |_| Either::B(unix.clone()));
    // A family as one parameter.
    fn family<N: Net<Listener: Send, Stream: Send>>(
        address: &<N::Listener as Listener>::Address,
        target: impl FnOnce(&N::Listener) -> <N::Stream as StreamSocket>::Target,
    ) {
        converse::<N::Listener>(address, target);
    }
    family::<Inet>(&local(), |listener| listener.local_address().expect("it is bound"));
    let unix = directory.path("c");
    family::<Unix>(&unix, |_| unix.clone());
}

#[test]
fn a_refused_connection_says_why() {
    let (_port, refused) = closed();
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
