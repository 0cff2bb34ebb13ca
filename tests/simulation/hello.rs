//! The example `hello_world_server`.

use std::time::Duration;

use rotor::http::server::{self, Head, HttpAccept, HttpSeed, Reply, ServerConfig, ServerFn};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Accept;
use rotor::{Response, Scope};
use rotor_sim::Script;
use rotor_sim::net::{SimTcpListener, SimTcpStream};

use crate::examples::hello::hello;
use crate::stage::{self, Clients};

/// The example's function, as a server.
pub(crate) type Hello =
    ServerFn<fn(&Head<'_>, &mut server::Response<'_>, &mut Scope<'_, ()>) -> Reply, ()>;

/// Serves the connections of a listener.
pub(crate) fn serve<L: Listener, C>(
    listener: L,
    scope: &mut Scope<'_, C>,
) -> Response<HttpAccept<Hello, L>> {
    Accept::listen(
        listener,
        HttpSeed::<Hello>::new(hello, ServerConfig::new()),
        stage::patient(),
        scope,
    )
}

/// Requests the page and a missing page, one by one, and after a pause both in one write.
pub(crate) fn ask(script: Script, pause: Duration) -> Script {
    let page = b"GET / HTTP/1.1\r\nHost: server\r\n\r\n";
    let nothing = b"GET /nothing HTTP/1.1\r\nHost: server\r\n\r\n";
    let is_page = |script: Script| {
        script.expect(b"HTTP/1.1 200 OK\r\n").receive_until(b"\r\n\r\n").expect(b"Hello, World!")
    };
    let is_nothing = |script: Script| {
        script
            .expect(b"HTTP/1.1 404 Not Found\r\n")
            .receive_until(b"\r\n\r\n")
            .expect(b"404 Not Found\n")
    };
    let script = script.may_refuse(b"HTTP/1.1 408");
    let script = is_nothing(is_page(script.send(page)).send(nothing)).pause(pause);
    is_nothing(is_page(script.send(page).send(nothing))).shutdown().expect_end()
}

#[test]
fn every_request_is_answered_once_the_network_heals() {
    stage::check(|sim| {
        let server = stage::serve(sim, "server", |address, scope| {
            match SimTcpListener::bind(&address, &ListenOptions::new(), scope) {
                Ok(listener) => serve(listener, scope),
                Err(error) => Response::error(error),
            }
        })?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..8 {
            clients.add(sim, ask(stage::persistent_script(), stage::think_time(number, 1)));
        }
        stage::play(sim, server, &clients)
    });
}
