//! The example `tcp_echo_server`.

use rotor::net::{ListenOptions, Listener};
use rotor::{BoxError, Response};
use rotor_sim::{Script, Sim};

use crate::examples::tcp_echo_server::{CountsEchoes, EchoServer};
use crate::ground::{Bytes, Ground, ListenerOf, StreamOf};
use crate::stage::{self, Clients, PORT};

/// The context.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) bytes: u64,
}

impl CountsEchoes for Total {
    fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

/// A server that sends back before it reads on, and a client that sends before it reads, must not
/// block each other. So no write is larger than the smallest window of a swarm.
fn script(number: u32) -> Script {
    let mut script = stage::persistent_script();
    for request in 0..10 {
        let text = format!("{number}:{request}").repeat(1 + (number + request) as usize % 10);
        script = script
            .send(text.as_bytes())
            .expect(text.as_bytes())
            .pause(stage::think_time(number, request));
    }
    script.send(b"last").shutdown().expect(b"last").expect_end()
}

pub(crate) fn scenario<G: Ground>(sim: &mut Sim) -> Result<(), BoxError> {
    let server = stage::serve_on::<G, _>(sim, "server", |address, scope| {
        Response::attempt(|| {
            let listener = ListenerOf::<G>::bind(&address, &ListenOptions::new(), scope)?;
            Ok(Response::ok(EchoServer::<Total, _>::listen(listener, scope)?))
        })
    })?;
    let mut clients = Clients::<StreamOf<G>>::on::<G, _>(sim, server, PORT)?;
    for number in 0..8 {
        clients.add(sim, script(number));
    }
    stage::play(sim, server, &clients)
}

#[test]
fn every_byte_is_echoed_once_the_network_heals() {
    stage::check(scenario::<Bytes>);
}
