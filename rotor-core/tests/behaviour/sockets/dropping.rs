//! A socket that is dropped or deregistered, and input that arrives afterwards.

use std::io;
use std::os::unix::net as unix;
use std::time::Duration;

use rotor_core::net::TcpListeners;
use rotor_core::{Config, Interest, Response, Scope, Source};

use super::{Paths, TEXT};
use crate::actor::{Actor, actor};
use crate::loops::{
    Adopt, DatagramOn, ListenerOn, MaybeSend, OnKernel, Rig, UnixDatagramOn, UnixListenerOn, local,
    on_kernel_loops,
};

/// A machine drops a source that has a second descriptor; then input arrives there.
fn assert_quiet_when_dropped<L: OnKernel, S: Source + MaybeSend + 'static>(
    make: impl FnOnce(&Scope<'_, ()>) -> io::Result<S>,
    something_comes: impl FnOnce(),
) {
    let config = Config::new().exit(rotor_core::ExitPolicy::OnRequest);
    let mut rig = Rig::<Actor<()>, L>::new(&config, ());
    rig.add(|scope| {
        Response::attempt(|| {
            let mut source = make(scope)?;
            scope.register(&mut source, Interest::Both)?;
            Ok(Response::ok(actor(move |_, _| {
                let _owned = &source;
                Response::keep(())
            })))
        })
    });
    rig.with(|instance| instance.handle().drain(Duration::ZERO));
    rig.run();
    assert_eq!(rig.machines(), 0);
    let stale = |rig: &mut Rig<Actor<()>, L>| rig.with(|instance| instance.stats().read().stale);
    let before = stale(&mut rig);
    something_comes();
    (0..3).for_each(|_| rig.turn());
    assert_eq!(stale(&mut rig), before, "the loop is told of a source that is gone");
}

on_kernel_loops!(
    a_dropped_listener_shared_with_others_reports_no_events,
    "others have no descriptors"
);
fn a_dropped_listener_shared_with_others_reports_no_events<L: OnKernel>() {
    let listener = std::net::TcpListener::bind(local()).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let shared =
        TcpListeners::from_std(listener, 2).expect("descriptors are left").collect::<Vec<_>>();
    let [mine, _theirs] = <[_; 2]>::try_from(shared).expect("there are two");
    let mut client = None;
    assert_quiet_when_dropped::<L, _>(
        |scope| ListenerOn::<L>::adopt(mine, scope),
        || client = std::net::TcpStream::connect(address).ok(),
    );
    assert!(client.is_some(), "the address is open");

    let directory = Paths::new();
    let listener = unix::UnixListener::bind(directory.path("l")).expect("it is free");
    let mine = listener.try_clone().expect("descriptors are left");
    let mut client = None;
    assert_quiet_when_dropped::<L, _>(
        |scope| UnixListenerOn::<L>::adopt(mine, scope),
        || client = unix::UnixStream::connect(directory.path("l")).ok(),
    );
    assert!(client.is_some(), "the address is open");
}

on_kernel_loops!(
    a_dropped_datagram_socket_shared_with_others_reports_no_events,
    "others have no descriptors"
);
fn a_dropped_datagram_socket_shared_with_others_reports_no_events<L: OnKernel>() {
    let socket = std::net::UdpSocket::bind(local()).expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    let mine = socket.try_clone().expect("descriptors are left");
    assert_quiet_when_dropped::<L, _>(
        |scope| DatagramOn::<L>::adopt(mine, scope),
        || assert_eq!(socket.send_to(TEXT, address).expect("it is sent"), TEXT.len()),
    );

    let directory = Paths::new();
    let socket = unix::UnixDatagram::bind(directory.path("d")).expect("it is free");
    let mine = socket.try_clone().expect("descriptors are left");
    assert_quiet_when_dropped::<L, _>(
        |scope| UnixDatagramOn::<L>::adopt(mine, scope),
        || assert_eq!(socket.send_to(TEXT, directory.path("d")).expect("it is sent"), TEXT.len()),
    );
}
