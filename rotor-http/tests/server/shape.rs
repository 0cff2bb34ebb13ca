//! The sizes of types, and to which threads they may be sent.

use rotor_core::net::TcpStream;
use rotor_http::server::{Connection, HttpSeed, HttpStream, ServerConfig};

use crate::probe::{Probe, get, post, probe};

#[test]
fn a_connection_is_small_and_an_idle_one_holds_no_buffer() {
    assert!(size_of::<Connection<Probe>>() <= 48, "{}", size_of::<Connection<Probe>>());
    assert!(
        size_of::<HttpStream<Probe, TcpStream>>() <= 256,
        "{}",
        size_of::<HttpStream<Probe, TcpStream>>()
    );
}

#[test]
fn seeds_are_send_and_settings_are_sync() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<HttpSeed<Probe>>();
    assert_send::<HttpStream<Probe, TcpStream>>();
    assert_sync::<ServerConfig>();
}

#[test]
fn public_types_implement_debug() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/"));
    driver.send(&post("/", "x"));
    assert!(format!("{:?}", ServerConfig::new()).contains("Limits"));
    assert!(format!("{:?}", HttpSeed::<Probe>::new((), ServerConfig::new())).contains("HttpSeed"));
    assert!(format!("{:?}", ServerConfig::new().counters()).contains("requests"));
}
