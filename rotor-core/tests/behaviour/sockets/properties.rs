//! Properties of a stream: its addresses, and whether a short read drains it.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net as unix;
use std::time::Duration;

use rotor_core::EarlyScope;
use rotor_core::net::{Either, ListenOptions, Listener, StreamSocket, is_plain, read_spare};
use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size, tcp_keepidle};
#[cfg(target_os = "linux")]
use socket2::{Domain, Protocol, Socket, Type};

use super::wrapped::Wrapper;
use super::{accept, with_scope};
use crate::loops::{Adopt, ListenerOn, OnKernel, StreamOn, UnixStreamOn, local, on_kernel_loops};

/// Sockets on io_uring are not plain: received bytes are copied out of memory that the kernel
/// filled, and whether a read drains the socket depends on what the kernel was told, not on the
/// socket's type.
fn has_plain_sockets<L: OnKernel>() -> bool {
    assert_eq!(is_plain::<StreamOn<L>>(), is_plain::<UnixStreamOn<L>>());
    is_plain::<StreamOn<L>>()
}

on_kernel_loops!(
    local_and_peer_addresses_match_the_two_ends,
    "others connect in later turns; their own suites ask"
);
fn local_and_peer_addresses_match_the_two_ends<L: OnKernel>() {
    with_scope::<L, _>(|scope| {
        let listener =
            ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let mut listener = listener;
        let address = listener.local_address().expect("it is bound");
        let client = StreamOn::<L>::connect(&address, scope).expect("it is there");
        // Loopback connects before `connect` returns, or shortly after: only `accept` shows that it
        // has.
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
        assert!(
            !is_plain::<Either<StreamOn<L>, UnixStreamOn<L>>>()
                && !is_plain::<Wrapper<UnixStreamOn<L>>>()
        );
        let (one, _two) = unix::UnixStream::pair().expect("there are descriptors");
        let one = UnixStreamOn::<L>::adopt(one, scope).expect("it is of this backend");
        assert_eq!(
            (one.peer_address(), one.local_address(), one.is_connected()),
            (None, None, true)
        );
    });
}

on_kernel_loops!(
    a_plain_socket_reads_into_the_spare_capacity_of_a_vector,
    "no socket of others is plain"
);
fn a_plain_socket_reads_into_the_spare_capacity_of_a_vector<L: OnKernel>() {
    if !has_plain_sockets::<L>() {
        return;
    }
    with_scope::<L, _>(|scope| {
        let (one, mut two) = unix::UnixStream::pair().expect("there are descriptors");
        let mut one = UnixStreamOn::<L>::adopt(one, scope).expect("it is of this backend");
        let mut bytes = Vec::with_capacity(10);
        bytes.extend_from_slice(b"abc");
        let room = bytes.capacity() - 3;
        two.write_all(&vec![b'x'; room + 5]).expect("the system has room");
        for (count, len) in [(room, 3 + room), (0, 3 + room)] {
            // A full vector does not grow.
            let read = read_spare(&mut one, &mut bytes).expect("it is plain");
            assert_eq!((read.expect("it is there"), bytes.len()), (count, len));
        }
        assert!(bytes.starts_with(b"abcx") && bytes.capacity() == 3 + room);
        let mut rest = Vec::with_capacity(100);
        let read = read_spare(&mut one, &mut rest).expect("it is plain");
        assert_eq!((read.expect("it is there"), &rest[..]), (5, &b"xxxxx"[..]));
        let empty = read_spare(&mut one, &mut rest).expect("it is plain");
        assert_eq!(empty.expect_err("it is empty").kind(), io::ErrorKind::WouldBlock);
        assert!(read_spare(&mut Wrapper(one), &mut rest).is_none());
        assert_eq!(rest.len(), 5);
    });
}

/// Listens with TCP or a protocol with the same interface; `None` if the system does not support
/// it.
#[cfg(target_os = "linux")]
fn listen_with<L: OnKernel>(
    protocol: Protocol,
    scope: &EarlyScope<'_>,
) -> Option<(ListenerOn<L>, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).ok()?;
    socket.bind(&local().into()).and_then(|()| socket.listen(8)).expect("a port is free");
    let listener = ListenerOn::<L>::adopt(socket.into(), scope).expect("it is of this backend");
    let address = listener.local_address().expect("it is bound");
    Some((listener, address))
}

#[cfg(target_os = "linux")]
on_kernel_loops!(a_short_read_drains_only_sockets_known_to_be_plain_tcp, "it is about recv(2)");
#[cfg(target_os = "linux")]
fn a_short_read_drains_only_sockets_known_to_be_plain_tcp<L: OnKernel>() {
    if !has_plain_sockets::<L>() {
        return;
    }
    with_scope::<L, _>(|scope| {
        let bound =
            ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let bound_to = bound.local_address().expect("it is bound");
        let given = listen_with::<L>(Protocol::TCP, scope).expect("every system has TCP");
        for (mut listener, address) in [(bound, bound_to), given] {
            let client = StreamOn::<L>::connect(&address, scope).expect("it is there");
            assert!(client.short_read_drains() && accept(&mut listener).short_read_drains());
            assert!(!client.holds_input());
        }
        if let Some((mut listener, address)) = listen_with::<L>(Protocol::MPTCP, scope) {
            let connecting =
                Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("as above");
            connecting.connect(&address.into()).expect("it is there");
            let client =
                StreamOn::<L>::adopt(connecting.into(), scope).expect("it is of this backend");
            assert!(!client.short_read_drains() && !accept(&mut listener).short_read_drains());
        }
        let (one, two) = unix::UnixStream::pair().expect("there are descriptors");
        let [one, two] = [one, two]
            .map(|socket| UnixStreamOn::<L>::adopt(socket, scope).expect("it is of this backend"));
        assert!(!one.short_read_drains(), "a descriptor may come with the bytes");
        assert!(!one.holds_input());
        let (_listener, address) =
            listen_with::<L>(Protocol::TCP, scope).expect("every system has TCP");
        let tcp = StreamOn::<L>::connect(&address, scope).expect("it is there");
        let [one_kind, the_other] = [Either::A(tcp), Either::B(two)];
        assert!(one_kind.short_read_drains() && !the_other.short_read_drains(), "each for itself");
        assert!(!one_kind.holds_input() && !the_other.holds_input());
    });
}

on_kernel_loops!(
    socket_options_out_of_range_are_clamped_to_the_nearest_value,
    "others have no such options"
);
fn socket_options_out_of_range_are_clamped_to_the_nearest_value<L: OnKernel>() {
    with_scope::<L, _>(|scope| {
        let listener = std::net::TcpListener::bind(local()).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let tcp = std::net::TcpStream::connect(address).expect("it listens");
        let same = tcp.try_clone().expect("descriptors are left");
        let tcp = StreamOn::<L>::adopt(tcp, scope).expect("it is of this backend");
        for (idle, seconds) in [(0, 1), (500, 1), (1_000, 1), (60_000, 60), (86_400_000, 32_767)] {
            let idle = Duration::from_millis(idle);
            tcp.set_keepalive(Some(idle)).expect("it is no mistake");
            assert_eq!(tcp_keepidle(&same).expect("it can be asked"), Duration::from_secs(seconds));
        }
        // A size whose lowest 32 bits are all zero.
        let huge = 1 << 32;
        tcp.set_send_buffer(huge).expect("it is no mistake");
        tcp.set_receive_buffer(huge).expect("it is no mistake");
        assert!(socket_send_buffer_size(&same).expect("it can be asked") > 100_000);
        assert!(socket_recv_buffer_size(&same).expect("it can be asked") > 100_000);
        let (one, _other) = unix::UnixStream::pair().expect("descriptors are left");
        let same = one.try_clone().expect("descriptors are left");
        let one = UnixStreamOn::<L>::adopt(one, scope).expect("it is of this backend");
        one.set_send_buffer(huge).expect("it is no mistake");
        assert!(socket_send_buffer_size(&same).expect("it can be asked") > 100_000);
    });
}
