//! What is to cross threads may, and what an idle connection costs.

use rotor_core::net::TcpStream;
use rotor_http::client::{
    Ask, ByAddress, ClientConfig, ClientError, Connection, Fetch, Fetched, Job, Pool, PoolMachine,
};

use crate::probe::{Probe, Script};

#[test]
fn what_is_to_cross_threads_may() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    shared::<Pool<Fetch<()>>>();
    sent::<Ask<Fetch<()>>>();
    sent::<Job<Fetch<()>>>();
    sent::<Fetched>();
    sent::<ClientError>();
    shared::<ClientConfig>();
    sent::<PoolMachine<Fetch<()>, ByAddress<TcpStream>>>();
}

#[test]
fn an_idle_connection_is_small() {
    let size = size_of::<Connection<Probe, Script>>();
    assert!(size <= 40, "{size}: settings, count, state");
}
