//! Sockets that are converted to standard library sockets.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::net as unix;
use std::time::Duration;

use rotor_core::net::{self, ListenOptions, Listener};
use rotor_core::{Config, ExitPolicy, Interest, Loop, Response};

use super::TEXT;
use crate::actor::{Actor, idle};
use crate::loops::local;

#[test]
fn a_socket_converted_to_std_works_and_reports_no_events_to_its_loop() {
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance =
        Loop::<Actor<()>>::new(&config).expect("there are descriptors").instantiate(());
    let (mine, mut other) = unix::UnixStream::pair().expect("there are descriptors");
    let (mut given, mut address) = (None, None);
    let made = instance.add_machine_with(|scope| {
        let mut stream = net::UnixStream::from_std(mine, scope).expect("it is of this loop");
        scope.register(&mut stream, Interest::Both).expect("it is of this loop");
        given = stream.into_std(scope).ok();
        let listener = net::TcpListener::bind(&local(), &ListenOptions::new(), scope);
        let listener = listener.expect("a port is free");
        address = listener.local_address();
        assert_eq!(listener.into_std(scope).and_then(|it| it.local_addr()).ok(), address);
        let udp = UdpSocket::bind(local()).expect("a port is free");
        let port = udp.local_addr().expect("it is bound");
        let udp = net::UdpSocket::from_std(udp, scope).and_then(|udp| udp.into_std(scope));
        assert_eq!(udp.and_then(|udp| udp.local_addr()).ok(), Some(port));
        Response::ok(idle())
    });
    made.expect("there is room");
    let mut given = given.expect("it was registered here");
    other.write_all(TEXT).expect("there is room");
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let stats = instance.stats().read();
    assert_eq!((stats.events, stats.stale), (0, 0));
    given.set_nonblocking(false).expect("it is a socket");
    let mut buffer = [0; TEXT.len()];
    given.read_exact(&mut buffer).expect("it has come");
    assert_eq!(buffer, TEXT);
    drop(given);
    other.set_nonblocking(true).expect("it is a socket");
    assert_eq!(other.read(&mut buffer).expect("it is closed"), 0, "there was no second descriptor");
}
