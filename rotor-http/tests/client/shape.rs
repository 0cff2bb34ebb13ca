//! Types that must be `Send`, and the memory of an idle connection.

use rotor_core::net::TcpStream;
use rotor_core::{Description, Machine};
use rotor_http::Limits;
use rotor_http::client::{
    ByAddress, ClientConfig, ClientError, Connection, Fetch, Fetched, Job, Pool, PoolMachine,
    PoolRequest,
};

use crate::http2::server::{Server, data, headers, page};
use crate::probe::Probe;
use crate::script::{ProbeDriver, ScriptedSource, connection};

#[test]
fn types_that_cross_threads_are_send() {
    fn assert_send<T: Send>() {}
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<Pool<Fetch<()>>>();
    assert_send::<PoolRequest<Fetch<()>>>();
    assert_send::<Job<Fetch<()>>>();
    assert_send::<Fetched>();
    assert_send::<ClientError>();
    assert_send_and_sync::<ClientConfig>();
    assert_send::<PoolMachine<Fetch<()>, ByAddress<TcpStream>>>();
}

#[test]
fn an_idle_connection_is_small() {
    let size = size_of::<Connection<Probe, ScriptedSource>>();
    assert!(size <= 40, "{size}: settings, count, state");
}

/// The description that the only connection of a test gives of itself.
fn description(driver: &mut ProbeDriver) -> (&'static str, u64) {
    let token = driver.context().notifier.as_ref().expect("it was asked").token();
    let mut description = Description::new();
    let machines = driver.test().instance().machines();
    machines.get(token).expect("it is alive").describe(&mut description);
    (description.state(), description.messages())
}

#[test]
fn a_connection_describes_its_state() {
    let mut driver = connection(Limits::new(), [Probe::get("/")]);
    assert_eq!(description(&mut driver), ("asking", 0));
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(description(&mut driver), ("idle", 1));
    let probe = Probe { upgrade: Some("shout"), ..Probe::get("/") };
    let mut driver = connection(Limits::new(), [probe]);
    driver.send(b"HTTP/1.1 101 S\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\n");
    assert_eq!(description(&mut driver), ("shouting", 0));
    let mut server = Server::new([Probe::get("/1"), Probe::get("/2")]);
    server.send(&page(1, "one"));
    server.send(&headers(3, &[(":status", "200")], false));
    assert_eq!(description(&mut server.driver), ("asking (HTTP/2)", 1));
    server.send(&data(3, b"two", true));
    assert_eq!(description(&mut server.driver), ("idle (HTTP/2)", 2));
}
