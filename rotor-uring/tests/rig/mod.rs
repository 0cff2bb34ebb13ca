//! A loop on io_uring. The test holds the sockets; machines only provide their tokens.
#![allow(dead_code, reason = "each suite uses a part of it")]
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Config, Interest, Loop, LoopInstance, Scope};
use rotor_uring::{Uring, UringConfig, UringHandle, UringStats, UringTcpListener, UringTcpStream};
use socket2::SockRef;

#[path = "../../../tests/loops/held.rs"]
mod held;

pub(crate) use held::*;

pub(crate) struct Rig {
    pub(crate) instance: LoopInstance<Note, Uring>,
    handle: UringHandle,
}

impl Rig {
    /// Returns `None` and prints why if the system refuses.
    pub(crate) fn open(config: &UringConfig) -> Option<Rig> {
        let uring = match Uring::open(config) {
            Ok(uring) => uring,
            Err(refused) => {
                eprintln!("skipped: {refused}");
                return None;
            }
        };
        let limits = Config::new().machines_max(100_000);
        let creator = Loop::<Note, _>::with_backend(uring, &limits).expect("there is memory");
        let mut instance = creator.instantiate(Told::new());
        let handle = within(&mut instance, |scope| {
            UringHandle::of(scope, "a test").expect("it is of this backend").clone()
        });
        Some(Rig { instance, handle })
    }

    /// Calls `ask` with the scope of a new machine.
    pub(crate) fn with<T>(&mut self, ask: impl FnOnce(&mut Scope<'_, Told>) -> T) -> T {
        within(&mut self.instance, ask)
    }

    pub(crate) fn turn(&mut self) {
        self.instance.turn(Some(Duration::ZERO)).expect("the loop goes on");
    }

    pub(crate) fn turns(&mut self, count: usize) {
        (0..count).for_each(|_| self.turn());
    }

    /// Takes turns until the condition holds.
    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&mut Rig) -> bool) {
        for _ in 0..100_000 {
            if is_so(self) {
                return;
            }
            self.instance.turn(Some(Duration::from_millis(1))).expect("the loop goes on");
        }
        panic!("it does not come to that: {:?}", self.stats());
    }

    pub(crate) fn stats(&self) -> UringStats {
        self.handle.stats()
    }

    pub(crate) fn take_events(&mut self) -> Told {
        std::mem::take(self.instance.context_mut())
    }

    pub(crate) fn listen(&mut self) -> (UringTcpListener, SocketAddr) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        self.with(|scope| {
            let listener = UringTcpListener::bind(&any, &ListenOptions::new(), scope);
            let mut listener = listener.expect("a port is free");
            scope.register(&mut listener, Interest::Readable).expect("of this backend");
            let address = listener.local_address().expect("it is bound");
            (listener, address)
        })
    }

    /// Accepts the next connection of a listener.
    pub(crate) fn accept(&mut self, listener: &mut UringTcpListener) -> UringTcpStream {
        let mut accepted = None;
        self.until(|_| {
            accepted = not_yet(listener.accept());
            accepted.is_some()
        });
        accepted.expect("as asked").0
    }

    pub(crate) fn register(&mut self, socket: &mut UringTcpStream) {
        self.with(|scope| scope.register(socket, Interest::Both)).expect("of this backend");
    }

    /// A registered connection, and its other end, which is non-blocking.
    pub(crate) fn pair(&mut self) -> (UringTcpStream, TcpStream) {
        let (mut listener, address) = self.listen();
        let client = connect(address);
        let mut server = self.accept(&mut listener);
        self.register(&mut server);
        (server, client)
    }

    /// Reads `count` bytes, or up to the end.
    pub(crate) fn read(&mut self, socket: &mut impl Read, count: Option<usize>) -> Vec<u8> {
        let mut got = Vec::new();
        self.until(|_| read_on(socket, count, &mut got));
        got
    }
}

/// Writes until neither the kernel nor the stream takes more. Returns the two ends, and the number
/// of bytes.
pub(crate) fn fill_stream(rig: &mut Rig) -> (UringTcpStream, TcpStream, usize) {
    let (mut server, client) = rig.pair();
    server.set_send_buffer(4_096).expect("it can be");
    // Otherwise its kernel may take as much as the stream does, but later.
    SockRef::from(&client).set_recv_buffer_size(4_096).expect("it can be");
    let (text, mut taken) = (text(16 << 20), 0);
    rig.until(|rig| {
        // As much in each turn as it takes, so that the kernel has room for a part of it at last.
        let before = taken;
        while let Some(count) = not_yet(server.write(&text[taken..taken + 10_000])) {
            taken += count;
        }
        rig.turns(100);
        taken == before
    });
    (server, client, taken)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("it can be");
    client
}

/// Sends a datagram from any port.
pub(crate) fn send_datagram(bytes: &[u8], target: SocketAddr) {
    let sender = UdpSocket::bind(("127.0.0.1", 0)).expect("a port is free");
    assert_eq!(sender.send_to(bytes, target).ok(), Some(bytes.len()));
}
