//! Both ends on real sockets of a loop.
#![forbid(unsafe_code)]

mod every_loop;
#[path = "../kit/mod.rs"]
mod kit;
#[path = "../../../tests/loops/on_mio.rs"]
mod loops;

use std::net::SocketAddr;
use std::time::Duration;

use kit::{Issuer, Lines, Log};
use rotor_core::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor_core::{Config, Loop, Response};
use rotor_stream::{Accept, AcceptConfig, Stream};
use rotor_tls::{
    Identity, Roots, TlsClient, TlsClientConfig, TlsListener, TlsServer, TlsServerConfig, TlsStream,
};

type Server = Accept<Stream<Lines, TlsStream<TcpStream>>, TlsListener<TcpListener>>;

#[test]
fn a_server_binds_with_its_identity() {
    let issuer = Issuer::new();
    talk(&issuer.server(), &issuer.client());
}

#[test]
fn rsa_signatures_are_made_by_the_pool() {
    let (chain, key) = (include_str!("../kit/rsa.crt"), include_str!("../kit/rsa.key"));
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("they are right");
    let config = TlsServerConfig::new(identity).alpn(&[b"lines"]);
    let tls = TlsServer::new(config).expect("it is right");
    let roots = Roots::none().pem(chain.as_bytes()).expect("it is its own issuer");
    let config = TlsClientConfig::new(roots).alpn(&[b"lines"]);
    talk(&tls, &TlsClient::new(config).expect("it is right"));
    let counters = tls.counters();
    assert_eq!((counters.offloaded(), counters.not_offloaded(), counters.full()), (3, 0, 3));
}

/// Three clients send two lines each.
fn talk(tls: &TlsServer, client: &TlsClient) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut servers = Loop::<Server>::new(&Config::new()).expect("there are descriptors");
    let mut address = None;
    servers
        .add_machine_with(|scope| {
            Response::attempt(|| {
                let address_of = tls.at(any);
                let listener = TlsListener::bind(&address_of, &ListenOptions::new(), scope)?;
                address = listener.local_address();
                Ok(Accept::listen(listener, None, AcceptConfig::new(), scope))
            })
        })
        .expect("it listens");
    let mut server = servers.instantiate(Log::new());

    let target = client.to(address.expect("it is bound"), "localhost").expect("it is a name");
    let mut clients = Loop::<Stream<Lines, TlsStream<TcpStream>>>::new(&Config::new())
        .expect("there are descriptors");
    for _ in 0..3 {
        clients
            .add_machine_with(|scope| Stream::connect(&target, Some(2), scope))
            .expect("it begins");
    }
    let mut client_loop = clients.instantiate(Log::new());
    for _ in 0..10_000 {
        if client_loop.context().len() >= 9 {
            break;
        }
        server.turn(Some(Duration::from_millis(1))).expect("it turns");
        client_loop.turn(Some(Duration::from_millis(1))).expect("it turns");
    }
    let mut log = client_loop.context().clone();
    log.sort();
    log.dedup();
    assert_eq!(log, ["LINE 1", "LINE 2", "Tls13 lines localhost"]);
    assert_eq!(client.counters().full() + client.counters().resumed(), 3);
}
