//! Addresses that are bound, refused, and shared.

use std::io;

use rotor_core::net::{DatagramSocket, ListenOptions, Listener, TcpListeners};

use super::{Paths, with_scope};
use crate::loops::{
    Adopt, DatagramOn, ListenerOn, OnKernel, UnixDatagramOn, UnixListenerOn, local, on_kernel_loops,
};

on_kernel_loops!(
    an_address_that_cannot_be_opened_is_named_with_the_cause,
    "others have no error of the system to show"
);
fn an_address_that_cannot_be_opened_is_named_with_the_cause<L: OnKernel>() {
    let directory = Paths::new();
    let path = directory.path("taken");
    let _unix = std::os::unix::net::UnixListener::bind(&path).expect("nobody else is there");
    let tcp = std::net::TcpListener::bind(local()).expect("a port is free");
    let tcp = tcp.local_addr().map(|address| (tcp, address)).expect("it is bound");
    let udp = std::net::UdpSocket::bind(local()).expect("a port is free");
    let udp = udp.local_addr().map(|address| (udp, address)).expect("it is bound");
    let named = std::os::unix::net::SocketAddr::from_pathname(&path).expect("it is short");
    let options = ListenOptions::new();
    let refused = with_scope::<L, _>(|scope| {
        [
            (ListenerOn::<L>::bind(&tcp.1, &options, scope).err(), tcp.1.to_string()),
            (TcpListeners::bind(tcp.1, &options, 2).err(), tcp.1.to_string()),
            (DatagramOn::<L>::bind(&udp.1, scope).err(), udp.1.to_string()),
            (UnixListenerOn::<L>::bind(&path, &options, scope).err(), path.display().to_string()),
            (UnixDatagramOn::<L>::bind(&named, scope).err(), path.display().to_string()),
        ]
    });
    for (error, address) in refused {
        let error = error.expect("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(error.to_string(), format!("cannot listen on {address}"));
        let cause = std::error::Error::source(&error).expect("the system said why");
        let cause = cause.downcast_ref::<io::Error>().expect("as the system says it");
        assert!(
            cause.raw_os_error().is_some() && cause.kind() == io::ErrorKind::AddrInUse,
            "{cause:?}"
        );
    }
}

/// How many of the connections made to `listeners` each listener accepts.
fn accepted_by_each<L: OnKernel>(listeners: TcpListeners, connections: usize) -> Vec<usize> {
    let address = listeners.local_address();
    let clients: Vec<_> = (0..connections)
        .map(|_| std::net::TcpStream::connect(address).expect("it listens"))
        .collect();
    let counts = with_scope::<L, _>(|scope| {
        let adopted = listeners
            .map(|listener| ListenerOn::<L>::adopt(listener, scope).expect("of this backend"));
        let mut adopted: Vec<ListenerOn<L>> = adopted.collect();
        let mut counts = vec![0; adopted.len()];
        // Loopback has delivered all connections, or nearly all: the first listeners are polled
        // again before the later ones.
        while counts.iter().sum::<usize>() < connections {
            let next = adopted.iter_mut().position(|listener| listener.accept().is_ok());
            if let Some(next) = next {
                counts[next] += 1;
            }
        }
        counts
    });
    drop(clients);
    counts
}

on_kernel_loops!(
    listeners_of_one_address_spread_its_connections_and_lose_none,
    "others share no address"
);
fn listeners_of_one_address_spread_its_connections_and_lose_none<L: OnKernel>() {
    let listeners = TcpListeners::bind(local(), &ListenOptions::new(), 3).expect("a port is free");
    assert_eq!((listeners.len(), listeners.is_empty()), (3, false));
    assert_ne!(listeners.local_address().port(), 0);
    let counts = accepted_by_each::<L>(listeners, 90);
    assert_eq!(counts.iter().sum::<usize>(), 90);
    if cfg!(target_os = "linux") {
        assert!(counts.iter().all(|count| *count > 0), "each has a queue of its own: {counts:?}");
    }
}

on_kernel_loops!(
    a_shared_listener_gives_each_connection_to_the_first_that_accepts,
    "others share no address"
);
fn a_shared_listener_gives_each_connection_to_the_first_that_accepts<L: OnKernel>() {
    let first = std::net::TcpListener::bind(local()).expect("a port is free");
    let address = first.local_addr().expect("it is bound");
    let listeners = TcpListeners::from_std(first, 3).expect("there are descriptors");
    assert_eq!((listeners.len(), listeners.local_address()), (3, address));
    assert_eq!(accepted_by_each::<L>(listeners, 20), [20, 0, 0]);
    for count in [0, 1] {
        let one =
            TcpListeners::bind(local(), &ListenOptions::new(), count).expect("a port is free");
        assert_eq!(one.len(), 1, "at least one");
    }
}

#[test]
fn too_many_listeners_for_the_memory_are_an_error_at_once() {
    let first = std::net::TcpListener::bind(local()).expect("a port is free");
    let count = usize::MAX;
    for refused in [
        TcpListeners::from_std(first, count),
        TcpListeners::bind(local(), &ListenOptions::new(), count),
    ] {
        assert_eq!(refused.expect_err("too many").kind(), std::io::ErrorKind::OutOfMemory);
    }
}

on_kernel_loops!(
    an_address_is_shared_only_if_every_listener_asks_for_it,
    "smoltcp shares no address; those of the simulator: tests/simulation, shared_ports"
);
fn an_address_is_shared_only_if_every_listener_asks_for_it<L: OnKernel>() {
    with_scope::<L, _>(|scope| {
        let alone =
            ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope).expect("a port is free");
        let address = alone.local_address().expect("it is bound");
        let options = ListenOptions::new().reuse_port(true);
        let taken = ListenerOn::<L>::bind(&address, &options, scope).err().expect("it is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(ListenOptions::new().backlog(7).backlog_len(), 7);
    });
}
