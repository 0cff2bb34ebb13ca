//! Datagrams on Unix socket paths.

use std::io;
use std::os::unix::net as unix;

use rotor_core::net::{DatagramSocket, Either};

use super::{Paths, TEXT, with_scope};
use crate::every_loop::datagrams::{check_connected, check_exchange};
use crate::loops::{DatagramOn, OnKernel, UnixDatagramOn, local, on_kernel_loops};

on_kernel_loops!(datagrams_of_every_kind_go_both_ways, "others have no paths");
fn datagrams_of_every_kind_go_both_ways<L: OnKernel>() {
    let directory = Paths::new();
    let unix = |name| directory.address(name);
    check_exchange::<L, UnixDatagramOn<L>>(&unix("a"), &unix("b"));
    type Both<L> = Either<DatagramOn<L>, UnixDatagramOn<L>>;
    check_exchange::<L, Both<L>>(&Either::A(local()), &Either::A(local()));
    check_exchange::<L, Both<L>>(&Either::B(unix("c")), &Either::B(unix("d")));
}

/// An address in the abstract namespace, not in the file system (unix(7)).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn abstract_address(name: &str) -> unix::SocketAddr {
    use std::os::linux::net::SocketAddrExt;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Relaxed);
    let name = format!("rotor-test-{}-{number}-{name}", std::process::id());
    unix::SocketAddr::from_abstract_name(name).expect("it is short")
}

#[cfg(any(target_os = "linux", target_os = "android"))]
on_kernel_loops!(datagrams_of_abstract_addresses_go_both_ways, "others have no such names");
#[cfg(any(target_os = "linux", target_os = "android"))]
fn datagrams_of_abstract_addresses_go_both_ways<L: OnKernel>() {
    check_exchange::<L, UnixDatagramOn<L>>(&abstract_address("a"), &abstract_address("b"));
    check_connected::<L, UnixDatagramOn<L>>(["a", "b", "c"].map(abstract_address));
}

on_kernel_loops!(
    a_connected_datagram_socket_of_a_path_receives_only_from_its_peer,
    "others have no paths"
);
fn a_connected_datagram_socket_of_a_path_receives_only_from_its_peer<L: OnKernel>() {
    let directory = Paths::new();
    let unix = |names: [&str; 3]| names.map(|name| directory.address(name));
    check_connected::<L, UnixDatagramOn<L>>(unix(["a", "b", "c"]));
    type Both<L> = Either<DatagramOn<L>, UnixDatagramOn<L>>;
    check_connected::<L, Both<L>>([(); 3].map(|()| Either::A(local())));
    check_connected::<L, Both<L>>(unix(["d", "e", "f"]).map(Either::B));
}

on_kernel_loops!(a_datagram_to_an_unsuitable_address_is_invalid_input, "others have no paths");
fn a_datagram_to_an_unsuitable_address_is_invalid_input<L: OnKernel>() {
    let directory = Paths::new();
    with_scope::<L, _>(|scope| {
        let pathname = directory.address("a");
        let mut socket =
            Either::<DatagramOn<L>, UnixDatagramOn<L>>::bind(&Either::B(pathname), scope)
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
