//! Byte streams on Unix socket paths, used by the machines of `every_loop`.

use std::io;

use rotor_core::net::{Either, ListenOptions, Listener, Net, StreamSocket};

use super::{Paths, with_scope};
use crate::every_loop::streams::check_echo;
use crate::loops::{
    ListenerOn, MaybeSend, OnKernel, UnixListenerOn, UnixStreamOn, local, on_kernel_loops,
};

on_kernel_loops!(
    streams_of_every_kind_carry_bytes_both_ways,
    "smoltcp has no paths; those of the simulator: tests/loops/transcripts"
);
fn streams_of_every_kind_carry_bytes_both_ways<L: OnKernel>() {
    let directory = Paths::new();
    let unix = directory.path("a");
    check_echo::<L, UnixListenerOn<L>>(&unix, |_| unix.clone());
    type Both<L> = Either<ListenerOn<L>, UnixListenerOn<L>>;
    check_echo::<L, Both<L>>(&Either::A(local()), |listener| {
        Either::A(listener.local_address().expect("it is bound"))
    });
    let unix = directory.path("b");
    check_echo::<L, Both<L>>(&Either::B(unix.clone()), |_| Either::B(unix.clone()));
    // A socket family as a single type parameter.
    fn family<L: OnKernel, N: Net<Listener: MaybeSend, Stream: MaybeSend>>(
        address: &<N::Listener as Listener>::Address,
        target: impl FnOnce(&N::Listener) -> <N::Stream as StreamSocket>::Target,
    ) {
        check_echo::<L, N::Listener>(address, target);
    }
    family::<L, <L as OnKernel>::Net>(&local(), |listener| {
        listener.local_address().expect("it is bound")
    });
    let unix = directory.path("c");
    family::<L, L::Unix>(&unix, |_| unix.clone());
}

#[cfg(any(target_os = "linux", target_os = "android"))]
on_kernel_loops!(streams_of_abstract_names_carry_bytes_both_ways, "others have no such names");
#[cfg(any(target_os = "linux", target_os = "android"))]
fn streams_of_abstract_names_carry_bytes_both_ways<L: OnKernel>() {
    let directory = Paths::new();
    let name = directory.abstract_path("a");
    check_echo::<L, UnixListenerOn<L>>(&name, |_| name.clone());
    assert!(!directory.path("a").exists());
    with_scope::<L, _>(|scope| {
        let nobody = UnixStreamOn::<L>::connect(&directory.abstract_path("nobody"), scope);
        let kind = nobody.err().map(|error| error.kind());
        assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused));
        let options = ListenOptions::new().unix_mode(0o600);
        let open = UnixListenerOn::<L>::bind(&name, &options, scope);
        let kind = open.err().map(|error| error.kind());
        assert_eq!(kind, Some(io::ErrorKind::Unsupported), "a mode would keep nobody out");
    });
}

on_kernel_loops!(a_path_where_nobody_listens_is_not_found, "smoltcp has no paths");
fn a_path_where_nobody_listens_is_not_found<L: OnKernel>() {
    let directory = Paths::new();
    with_scope::<L, _>(|scope| {
        let nobody = UnixStreamOn::<L>::connect(&directory.path("nobody"), scope);
        assert_eq!(nobody.err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
    });
}
