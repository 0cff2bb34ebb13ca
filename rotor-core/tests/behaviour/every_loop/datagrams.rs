//! Datagrams in both directions.

use std::io;

use rotor_core::net::{DatagramSocket, Either};
use rotor_core::{Config, EventSet, Interest, Response};

use super::{TEXT, event_recorder, rig_with};
use crate::actor::{Actor, idle};
use crate::loops::{DatagramOn, OnLoop, Rig, local, not_yet, on_every_loop};

/// Receives the next datagram.
pub(crate) fn receive<L: OnLoop, D: DatagramSocket>(
    rig: &mut Rig<Actor<()>, L>,
    socket: &mut D,
    buffer: &mut [u8],
) -> (usize, D::Address) {
    let mut received = None;
    rig.until(|_| {
        received = not_yet(socket.receive_from(buffer)).expect("it is bound");
        received.is_some()
    });
    received.expect("as asked")
}

/// A datagram in each direction, and nothing more.
pub(crate) fn check_exchange<L: OnLoop, D: DatagramSocket>(
    first: &D::Address,
    second: &D::Address,
) {
    let (mut rig, [mut one, mut two]) = rig_with::<L, _>(|scope| {
        [first, second].map(|address| D::bind(address, scope).expect("the address is free"))
    });
    let [to_one, to_two] = [&one, &two].map(|socket| socket.local_address().expect("it is bound"));
    let mut buffer = [0; 100];
    let nothing = one.receive_from(&mut buffer).err().expect("nothing was sent");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(one.send_to(TEXT, &to_two).expect("it can be sent"), TEXT.len());
    let (len, from) = receive(&mut rig, &mut two, &mut buffer);
    assert_eq!(&buffer[..len], TEXT);
    assert_eq!(two.send_to(b"back", &from).expect("it can be sent"), 4);
    let (len, _) = receive(&mut rig, &mut one, &mut buffer[..3]);
    assert_eq!(&buffer[..len], b"bac", "what does not fit is lost");
    assert_eq!(two.send_to(b"", &to_one).expect("it can be sent"), 0);
    assert_eq!(receive(&mut rig, &mut one, &mut buffer).0, 0, "an empty one is one");
}

/// A socket connected to its peer, and a third socket that sends to it.
pub(crate) fn check_connected<L: OnLoop, D: DatagramSocket>(addresses: [D::Address; 3]) {
    let (mut rig, [mut one, mut peer, mut stranger]) = rig_with::<L, _>(|scope| {
        addresses.map(|address| D::bind(&address, scope).expect("the address is free"))
    });
    let to_one = one.local_address().expect("it is bound");
    one.connect(&peer.local_address().expect("it is bound")).expect("it is there");
    let mut buffer = [0; 100];
    assert_eq!(one.send(TEXT).expect("it can be sent"), TEXT.len());
    let (len, from) = receive(&mut rig, &mut peer, &mut buffer);
    assert_eq!(&buffer[..len], TEXT);
    // Socket families differ in whether the third socket gets an error.
    let _refused = stranger.send_to(b"forged", &to_one);
    assert_eq!(peer.send_to(b"back", &from).expect("it can be sent"), 4);
    let (len, _) = receive(&mut rig, &mut one, &mut buffer);
    assert_eq!(&buffer[..len], b"back");
    (0..3).for_each(|_| rig.turn());
    let nothing = one.receive_from(&mut buffer).err().expect("a stranger's is thrown away");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}

on_every_loop!(datagrams_go_both_ways);
fn datagrams_go_both_ways<L: OnLoop>() {
    check_exchange::<L, DatagramOn<L>>(&local(), &local());
    check_exchange::<L, Either<DatagramOn<L>, DatagramOn<L>>>(
        &Either::A(local()),
        &Either::A(local()),
    );
}

on_every_loop!(a_connected_datagram_socket_exchanges_only_with_its_peer);
fn a_connected_datagram_socket_exchanges_only_with_its_peer<L: OnLoop>() {
    check_connected::<L, DatagramOn<L>>([(); 3].map(|()| local()));
    type Both<L> = Either<DatagramOn<L>, DatagramOn<L>>;
    check_connected::<L, Both<L>>([(); 3].map(|()| Either::B(local())));
}

on_every_loop!(
    a_connected_datagram_socket_reports_a_refused_datagram,
    not smoltcp: "it is told of no error that comes by ICMP"
);
fn a_connected_datagram_socket_reports_a_refused_datagram<L: OnLoop>() {
    let (mut rig, [mut deaf, mut socket]) = rig_with::<L, _>(|scope| {
        [(); 2].map(|()| DatagramOn::<L>::bind(&local(), scope).expect("a port is free"))
    });
    // Its port is taken, and it receives only from itself.
    let closed = deaf.local_address().expect("it is bound");
    deaf.connect(&closed).expect("nothing is sent");
    socket.connect(&closed).expect("nothing is sent");
    socket.send(TEXT).expect("it can be sent");
    let mut failure = None;
    for _ in 0..1_000 {
        match socket.receive_from(&mut [0; 9]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => {
                failure = Some(received.expect_err("nobody answers").kind());
                break;
            }
        }
        rig.turn();
    }
    assert_eq!(failure, Some(io::ErrorKind::ConnectionRefused));
    let nothing = socket.receive_from(&mut [0; 9]).expect_err("it was told once");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}

on_every_loop!(
    a_refusal_that_came_before_registering_is_reported,
    not smoltcp: "it is told of no error that comes by ICMP"
);
fn a_refusal_that_came_before_registering_is_reported<L: OnLoop>() {
    let mut rig = Rig::<Actor<EventSet>, L>::new(&Config::new(), EventSet::EMPTY);
    let mut sockets = None;
    rig.add(|scope| {
        sockets =
            Some([(); 2].map(|()| DatagramOn::<L>::bind(&local(), scope).expect("it is free")));
        Response::ok(idle())
    });
    let [mut deaf, mut socket] = sockets.expect("the closure ran");
    // Its port is taken, and it receives only from itself.
    let closed = deaf.local_address().expect("it is bound");
    deaf.connect(&closed).expect("nothing is sent");
    socket.connect(&closed).expect("nothing is sent");
    socket.send(TEXT).expect("it can be sent");
    // Enough for the refusal to come.
    (0..20).for_each(|_| rig.turn());
    rig.add(|scope| {
        scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
        Response::ok(event_recorder())
    });
    let mut is_reported = false;
    for _ in 0..100 {
        is_reported = is_reported || rig.context(|events| events.contains(EventSet::ERROR));
        if !is_reported {
            rig.turn();
        }
    }
    assert!(is_reported);
    let refused = socket.receive_from(&mut [0; 9]).expect_err("nobody answers").kind();
    assert_eq!(refused, io::ErrorKind::ConnectionRefused);
}

on_every_loop!(a_datagram_to_port_zero_is_an_error);
fn a_datagram_to_port_zero_is_an_error<L: OnLoop>() {
    let (_rig, mut socket) =
        rig_with::<L, _>(|scope| DatagramOn::<L>::bind(&local(), scope).expect("a port is free"));
    let nobody = socket.send_to(TEXT, &local()).expect_err("no socket has that port").kind();
    // Linux; BSD.
    let kinds = [io::ErrorKind::InvalidInput, io::ErrorKind::AddrNotAvailable];
    assert!(kinds.contains(&nobody), "{nobody:?}");
}

on_every_loop!(a_datagram_too_long_for_the_protocol_is_refused_as_such);
fn a_datagram_too_long_for_the_protocol_is_refused_as_such<L: OnLoop>() {
    const TOO_LONG: &[u8] = &[7; 65_536];
    let (_rig, [mut socket, mut peer]) = rig_with::<L, _>(|scope| {
        [(); 2].map(|()| DatagramOn::<L>::bind(&local(), scope).expect("a port is free"))
    });
    let target = peer.local_address().expect("it is bound");
    // `EMSGSIZE`, whose number depends on the system.
    let of_system = std::net::UdpSocket::bind(local()).expect("a port is free");
    let expected = of_system.send_to(TOO_LONG, of_system.local_addr().expect("it is bound"));
    let expected = expected.expect_err("it is too long").raw_os_error();
    let refused = socket.send_to(TOO_LONG, &target).expect_err("it is too long");
    assert_eq!(refused.raw_os_error(), expected, "{refused}");
    let nothing = peer.receive_from(&mut [0; 9]).expect_err("nothing was sent");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}
