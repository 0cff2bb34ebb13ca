//! Datagrams of every kind.

use std::io;
use std::os::unix::net as unix;

use rotor_core::net::{DatagramSocket, Either, UdpSocket, UnixDatagram};

use super::{Directory, TEXT, local, with_scope};

/// The next datagram, or what the system says in its place. Loopback brings it before the sender
/// goes on, or nearly.
fn receive<D: DatagramSocket>(
    socket: &mut D,
    buffer: &mut [u8],
) -> io::Result<(usize, D::Address)> {
    loop {
        match socket.receive_from(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received,
        }
    }
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
        let (len, from) = receive(&mut two, &mut buffer).expect("it has come");
        assert_eq!(&buffer[..len], TEXT);
        assert_eq!(two.send_to(b"back", &from).expect("it can be sent"), 4);
        let (len, _) = receive(&mut one, &mut buffer[..3]).expect("it has come");
        assert_eq!(&buffer[..len], b"bac", "what does not fit is lost");
        assert_eq!(two.send_to(b"", &to_one).expect("it can be sent"), 0);
        assert_eq!(receive(&mut one, &mut buffer).expect("an empty one is one").0, 0);
    });
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
        let (len, from) = receive(&mut peer, &mut buffer).expect("it has come");
        assert_eq!(&buffer[..len], TEXT);
        // Kinds of socket differ in whether the stranger hears of it.
        let _refused = stranger.send_to(b"forged", &to_one);
        assert_eq!(peer.send_to(b"back", &from).expect("it can be sent"), 4);
        let (len, _) = receive(&mut one, &mut buffer).expect("it has come");
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
        // Its port is taken, and it hears nobody but itself.
        let mut deaf = UdpSocket::bind(&local(), scope).expect("a port is free");
        let closed = deaf.local_address().expect("it is bound");
        deaf.connect(&closed).expect("nothing is sent");
        let mut socket = UdpSocket::bind(&local(), scope).expect("a port is free");
        socket.connect(&closed).expect("nothing is sent");
        socket.send(TEXT).expect("it can be sent");
        let error = receive(&mut socket, &mut [0; 9]).expect_err("nobody answers");
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
