//! A socket that is dropped, or deregistered, and what comes to it afterwards.

use std::io;
use std::os::unix::net as unix;
use std::time::Duration;

use rotor_core::net::{
    DatagramSocket, TcpListener, TcpListeners, UdpSocket, UnixDatagram, UnixListener,
};
use rotor_core::{Config, Interest, Loop, Response, Scope, Source};

use super::{Directory, TEXT, local};
use crate::actor::{Actor, Call, actor};

/// Has a machine drop a source of which there is another descriptor; then something comes there.
fn assert_quiet_when_dropped<S: Source + Send + 'static>(
    make: impl FnOnce(&Scope<'_, ()>) -> io::Result<S>,
    something_comes: impl FnOnce(),
) {
    let config = Config::new().exit(rotor_core::ExitPolicy::OnRequest);
    let mut instance =
        Loop::<Actor<()>>::new(&config).expect("there are descriptors").instantiate(());
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
