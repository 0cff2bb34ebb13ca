//! `Wire`: a connection between a server's machine and a client that is written by hand, with the
//! loop of the machine. In memory here, on the loops of the kernel in `kernel`.

use std::io::ErrorKind;
use std::time::Duration;

use rotor::proxy_protocol::ProxyStream;
use rotor::stream::Stream;
use rotor::stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor::tls::TlsStream;

use crate::rig::{Seen, Serving, Site};

/// The machine of a connection whose bytes come from such a socket.
pub(crate) type Machine<S> =
    Stream<rotor::http::server::Connection<Site>, TlsStream<ProxyStream<S>>>;

pub(crate) trait Wire {
    /// Sends bytes to the machine, unless the connection is gone.
    fn send(&mut self, bytes: &[u8]);

    /// Takes what the machine has sent.
    fn take_received(&mut self) -> Vec<u8>;

    /// Makes the way to the client take little more from now on.
    fn fill(&mut self);

    /// Ends the client's side.
    fn end(&mut self);

    fn reset(&mut self);

    /// Makes writes of the machine fail.
    fn fail_writes(&mut self);

    /// Lets the loop work until nothing is due.
    fn settle(&mut self);

    /// Lets time pass until the next deadline has fired. Returns whether there was one.
    fn advance_to_deadline(&mut self) -> bool;

    fn drain(&mut self, time: Duration);

    /// Whether the machine has dropped its socket.
    fn is_dropped(&mut self) -> bool;

    fn context(&self) -> &Seen;

    /// The errors that ended machines.
    fn failures(&self) -> Vec<String>;
}

/// In memory.
pub(crate) struct Scripted {
    test: TestLoop<Machine<ScriptedSocket>>,
    peer: Peer,
}

impl Scripted {
    pub(crate) fn open(serving: Serving) -> Scripted {
        let mut test = TestLoop::new(Seen::default());
        let (socket, peer) = pair(test.world());
        test.add(|scope| Stream::connected(serving.wrap(socket), serving.seed, scope));
        Scripted { test, peer }
    }
}

impl Wire for Scripted {
    fn send(&mut self, bytes: &[u8]) {
        self.peer.send(bytes);
    }

    fn take_received(&mut self) -> Vec<u8> {
        self.peer.take_received()
    }

    fn fill(&mut self) {
        self.peer.limit_room(1_000);
    }

    fn end(&mut self) {
        self.peer.end();
    }

    fn reset(&mut self) {
        self.peer.reset();
    }

    fn fail_writes(&mut self) {
        self.peer.fail_writes(ErrorKind::BrokenPipe);
    }

    fn settle(&mut self) {
        self.test.settle();
    }

    fn advance_to_deadline(&mut self) -> bool {
        self.test.advance_to_deadline().is_some()
    }

    fn drain(&mut self, time: Duration) {
        self.test.drain(time);
    }

    fn is_dropped(&mut self) -> bool {
        self.peer.is_dropped()
    }

    fn context(&self) -> &Seen {
        self.test.context()
    }

    fn failures(&self) -> Vec<String> {
        self.test.failures()
    }
}
