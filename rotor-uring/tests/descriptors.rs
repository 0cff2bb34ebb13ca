//! A process without a free descriptor, so this file has only one test.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::fs::File;

use rig::{Rig, connect, not_yet};
use rotor_core::net::Listener;
use rotor_uring::UringConfig;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn the_descriptor_of_a_dropped_stream_is_free_in_the_same_turn() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let limit = Rlimit { current: Some(128), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("it is lower");
    let (mut listener, address) = rig.listen();
    let _clients = [connect(address), connect(address)];
    let mut server = rig.accept(&mut listener);
    rig.register(&mut server);
    rig.turns(2);
    let _all: Vec<File> = (0..).map_while(|_| File::open("/dev/null").ok()).collect();
    let none = listener.accept().expect_err("no descriptor is left");
    assert_eq!(Errno::from_io_error(&none), Some(Errno::MFILE));
    drop(server);
    assert!(not_yet(listener.accept()).is_some());
}
