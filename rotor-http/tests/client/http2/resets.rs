//! Resets of streams: servers end a connection that has too many, and so fail all requests there.

use std::net::SocketAddr;

use rotor_core::{Future, Outcome, Response, rotor_compose};
use rotor_http::client::{ByAddress, ClientConfig, Pool, PoolConfig, PoolMachine};
use rotor_stream::testing::{Peer, Scripted, Target, TestLoop};

use super::server::{Server, http2, page, settings};
use crate::pool::Requester;
use crate::probe::{Probe, Result, TestContext, describe, seconds};

fn cancel_last(server: &mut Server) {
    drop(server.driver.context_mut().futures.pop_back());
    server.driver.settle();
    server.read();
}

/// A server that allows two resets at once and one a second, and has seen too many. One request is
/// still under way.
fn server_with_many_resets() -> Server {
    let config = ClientConfig::new().http2(http2().resets(2, 1));
    let mut server = Server::of(config, &[], ["/1", "/3", "/5"].map(Probe::get));
    cancel_last(&mut server);
    cancel_last(&mut server);
    server.driver.advance(seconds(1));
    for stream in [7, 9] {
        server.add_request(Probe::get("/"));
        assert_eq!(server.requests[&stream].reset, None, "it begins");
        cancel_last(&mut server);
        assert_eq!(server.requests[&stream].reset, Some(8));
    }
    server
}

#[test]
fn a_connection_with_many_resets_takes_a_request_for_each_that_is_allowed() {
    let mut server = server_with_many_resets();
    for count in 6..9 {
        server.add_request(Probe::get("/"));
        server.driver.context_mut().plans.push_back(Probe::get("/"));
        assert_eq!((server.requests.len(), server.end()), (count - 1, None), "the next one waits");
        server.driver.advance(seconds(1));
        server.read();
        assert_eq!(server.requests.len(), count, "one may be reset by now");
        server.driver.context_mut().plans.clear();
        cancel_last(&mut server);
    }
    server.send(&page(1, "one"));
    assert_eq!((server.outcome(0).as_str(), server.end()), ("200 one", Some(0)));
}

/// Otherwise the requests that nobody cancels would be as slow as resets are allowed.
#[test]
fn requests_after_many_resets_follow_complete_ones_at_once() {
    let mut server = server_with_many_resets();
    server.driver.advance(seconds(1));
    for stream in [11, 13, 15] {
        server.add_request(Probe::get("/"));
        server.add_request(Probe::get("/"));
        assert_eq!(server.requests.keys().last(), Some(&stream), "one at a time");
        server.driver.context_mut().plans.clear();
        server.send(&page(stream, "ok"));
    }
    assert_eq!(server.end(), None);
}

rotor_compose! {
    enum Machines / Seeds<TestContext> {
        Pool(PoolMachine<Probe, ByAddress<Scripted<false>>>),
        Requester(Requester),
    }
}

fn get(test: &mut TestLoop<Machines>, pool: &Pool<Probe>, address: SocketAddr) -> Future<Result> {
    let mut future = None;
    test.add(|scope| {
        let deadline = scope.now() + seconds(1_000);
        future = pool.ask_until(address, Probe::get("/"), deadline, scope).ok();
        Response::ok(Machines::Requester(Requester { name: "requester", future: None }))
    });
    test.settle();
    future.expect("the pool takes it")
}

/// One client of a proxy could hold up a server for all others: its long response keeps the only
/// connection, on which its other requests use up the resets.
#[test]
fn a_pooled_connection_with_many_resets_serves_those_who_wait() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut test = TestLoop::<Machines>::new(TestContext::default());
    test.world().target(address, Target::Accepts);
    let mut pool = None;
    test.add(|scope| {
        let config = PoolConfig::new().connections_per_origin_max(1);
        let client = ClientConfig::new().http2(http2().resets(3, 1));
        let (handle, response) = PoolMachine::new(config, client, scope);
        pool = Some(handle);
        response.wrap(Machines::Pool)
    });
    test.settle();
    let pool = pool.expect("the closure ran");
    let long = get(&mut test, &pool, address);
    let peers: Vec<Peer> = test.world().take_connections();
    peers[0].send(&settings(&[]));
    test.settle();
    for _ in 0..4 {
        drop(get(&mut test, &pool, address));
        test.settle();
    }
    // After the long one and four that were cancelled.
    let mut stream = 11;
    for _ in 0..3 {
        let cancelled = get(&mut test, &pool, address);
        let honest = get(&mut test, &pool, address);
        test.advance(seconds(1));
        drop(cancelled);
        test.settle();
        test.advance(seconds(1));
        peers[0].send(&page(stream + 2, "ok"));
        test.settle();
        let Outcome::Value(result) = honest.take() else { panic!("it waits in vain") };
        assert_eq!(describe(result), "200 ok");
        stream += 4;
    }
    assert!(matches!(long.take(), Outcome::Pending(_)));
    assert!(!peers[0].is_ended() && test.world().take_connections().is_empty());
}
