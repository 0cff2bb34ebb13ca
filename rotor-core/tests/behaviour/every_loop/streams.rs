//! Byte streams, used by machines that know only the traits; and connection attempts that fail.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::time::Duration;

use rotor_core::net::{Either, ListenOptions, Listener, StreamSocket};
use rotor_core::{Config, Exit, Interest, Response, Scope};

use super::{TEXT, rig_with};
use crate::actor::{Actor, Call, Seed, actor};
use crate::loops::{ListenerOn, MaybeSend, OnLoop, Rig, StreamOn, local, on_every_loop};

/// What came back to the client.
type Received = Vec<u8>;
type Machine = Actor<Received>;

/// Echoes until the peer has ended its write side, then ends its own.
fn echo<S: StreamSocket + MaybeSend>(mut socket: S) -> Seed<Received> {
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

/// Accepts one connection and ends.
fn acceptor<L: Listener<Socket: MaybeSend> + MaybeSend>(mut listener: L) -> Machine {
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

/// Connects, sends the text with a vectored write, ends its write side, and reads all that comes
/// back.
fn requester<S: StreamSocket + MaybeSend>(mut socket: S, scope: &Scope<'_, Received>) -> Machine {
    scope.register(&mut socket, Interest::Both).expect("it is of this backend");
    let mut sent = 0;
    actor(move |call, scope: &mut Scope<'_, Received>| {
        let Call::Ready(_) = call else { return Response::keep(()) };
        Response::attempt(|| {
            if let Some(error) = socket.take_error()? {
                return Err(error.into());
            }
            // Checked only while connecting: a socket that both sides have ended may still hold
            // unread bytes.
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
                // A vectored write may write less than everything, as any write may.
                sent += socket.write(&TEXT[sent..])?;
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

/// An echo of the text, by machines that know the sockets only through the traits.
pub(crate) fn check_echo<L: OnLoop, D: Listener<Socket: MaybeSend> + MaybeSend>(
    address: &D::Address,
    target: impl FnOnce(&D) -> <D::Socket as StreamSocket>::Target,
) {
    let mut rig = Rig::<Machine, L>::new(&Config::new(), Received::new());
    let mut listening = None;
    rig.add(|scope| {
        Response::attempt(|| {
            let mut listener = D::bind(address, &ListenOptions::new().backlog(5), scope)?;
            scope.register(&mut listener, Interest::Readable)?;
            listening = Some(target(&listener));
            Ok(Response::ok(acceptor(listener)))
        })
    });
    let target = listening.expect("the closure ran");
    rig.add(|scope| {
        Response::attempt(|| {
            let socket = D::Socket::connect(&target, scope)?;
            Ok(Response::ok(requester(socket, scope)))
        })
    });
    assert_eq!(rig.run(), Exit::Empty);
    assert_eq!(rig.with(|instance| instance.stats().read().failed), 0);
    rig.context(|received| assert_eq!(*received, TEXT));
}

on_every_loop!(streams_carry_bytes_both_ways);
fn streams_carry_bytes_both_ways<L: OnLoop>() {
    type PeerListener<L> = ListenerOn<L>;
    check_echo::<L, PeerListener<L>>(&local(), |listener| {
        listener.local_address().expect("it is bound")
    });
    // Not every computer has IPv6.
    let ipv6 = "[::1]:0".parse().expect("an address");
    if std::net::TcpListener::bind(ipv6).is_ok() {
        check_echo::<L, PeerListener<L>>(&ipv6, |listener| {
            listener.local_address().expect("it is bound")
        });
    }
    check_echo::<L, Either<PeerListener<L>, PeerListener<L>>>(&Either::B(local()), |listener| {
        Either::B(listener.local_address().expect("it is bound"))
    });
}

on_every_loop!(a_refused_connection_fails_its_machine);
fn a_refused_connection_fails_its_machine<L: OnLoop>() {
    let (_port, refused) = L::closed();
    let mut rig = Rig::<Machine, L>::new(&Config::new(), Received::new());
    rig.add(|scope| {
        Response::attempt(|| {
            let socket = StreamOn::<L>::connect(&refused, scope)?;
            Ok(Response::ok(requester(socket, scope)))
        })
    });
    assert_eq!(rig.run(), Exit::Empty);
    assert_eq!(rig.with(|instance| instance.stats().read().failed), 1);
}

on_every_loop!(a_connection_attempt_is_pending_until_it_succeeds_or_fails);
fn a_connection_attempt_is_pending_until_it_succeeds_or_fails<L: OnLoop>() {
    let connect = |to| {
        rig_with::<L, _>(move |scope| StreamOn::<L>::connect(&to, scope).expect("it only begins"))
    };
    let (_port, nobody) = L::closed();
    let (mut rig, mut socket) = connect(nobody);
    let mut failed = None;
    rig.until(|_| {
        match socket.has_connected() {
            Ok(is_connected) => assert!(!is_connected, "nobody listens"),
            Err(failure) => failed = Some(failure.kind()),
        }
        failed.is_some()
    });
    assert_eq!(failed, Some(io::ErrorKind::ConnectionRefused));
    let (_silent, address) = L::silent();
    let (mut rig, mut socket) = connect(address);
    assert!(socket.local_address().is_some());
    for _ in 0..3 {
        assert!(!socket.has_connected().expect("asking changes nothing"));
        rig.turn();
    }
    let mut rig = Rig::<Actor<()>, L>::new(&Config::new(), ());
    let (_door, address) = rig.peer_listener();
    let mut socket = None;
    rig.add(|scope| {
        socket = Some(StreamOn::<L>::connect(&address, scope).expect("it only begins"));
        Response::ok(crate::actor::idle())
    });
    let mut socket = socket.expect("the closure ran");
    rig.until(|_| socket.has_connected().expect("somebody listens"));
}
