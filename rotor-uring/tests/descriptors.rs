//! A process without a free descriptor, so this file has only one test.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::any::Any;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use rig::{Rig, connect};
use rotor_core::net::{DatagramSocket, ListenOptions, Listener, StreamSocket};
use rotor_uring::{
    UringConfig, UringTcpListener, UringTcpStream, UringUdpSocket, UringUnixListener,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Opened = io::Result<Box<dyn Any>>;

fn boxed<T: 'static>(opened: io::Result<T>) -> Opened {
    opened.map(|one| Box::new(one) as Box<dyn Any>)
}

/// What takes descriptors; how many it takes; and how it takes them.
type Taker = (&'static str, usize, fn(&mut Rig, &mut UringTcpListener, SocketAddr) -> Opened);

const TAKERS: [Taker; 5] = [
    ("accept", 1, |_, listener, _| boxed(listener.accept())),
    ("connect", 1, |rig, _, address| {
        boxed(rig.with(|scope| UringTcpStream::connect(&address, scope)))
    }),
    ("listen", 1, |rig, _, _| {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        boxed(rig.with(|scope| UringTcpListener::bind(&any, &ListenOptions::new(), scope)))
    }),
    ("listen at a path", 1, |rig, _, _| {
        // In the abstract namespace, so that no file is left.
        let path = PathBuf::from(format!("\0rotor-descriptors-{}", std::process::id()));
        boxed(rig.with(|scope| UringUnixListener::bind(&path, &ListenOptions::new(), scope)))
    }),
    ("datagrams", 2, |rig, _, _| {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        boxed(rig.with(|scope| UringUdpSocket::bind(&any, scope)))
    }),
];

/// Whether it failed because no descriptor is left. The error of a listener names its address, and
/// has the system's error as its source.
fn has_no_descriptor(opened: &Opened) -> bool {
    opened.as_ref().is_err_and(|error| {
        let source = error.get_ref().and_then(|error| error.source());
        let cause = source.and_then(|source| source.downcast_ref()).unwrap_or(error);
        Errno::from_io_error(cause) == Some(Errno::MFILE)
    })
}

#[test]
fn the_descriptor_of_a_dropped_stream_is_free_in_the_same_turn() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let limit = Rlimit { current: Some(128), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("it is lower");
    let (mut listener, address) = rig.listen();
    for (name, count, take) in TAKERS {
        let _clients: Vec<_> = (0..=count).map(|_| connect(address)).collect();
        let mut servers: Vec<_> = (0..count).map(|_| rig.accept(&mut listener)).collect();
        servers.iter_mut().for_each(|server| rig.register(server));
        rig.turns(2);
        let _all: Vec<File> = (0..).map_while(|_| File::open("/dev/null").ok()).collect();
        assert!(has_no_descriptor(&take(&mut rig, &mut listener, address)), "{name}");
        drop(servers);
        let taken = take(&mut rig, &mut listener, address);
        assert!(taken.is_ok(), "{name}: {:?}", taken.err());
        // The last client waits in the backlog; it must not be the next one's.
        drop(taken);
        while listener.accept().is_ok() {}
        rig.turn();
    }
}
