//! Limits of the number of requests and of their time, and clients that leave.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::BoxError;
use rotor::stream::AcceptConfig;
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Script, Sim};

use super::upstreams::{Choosy, Echo, Silent, serving};
use super::{answered, machine, one_at_a_time, passing_on};
use crate::http_pool::{self, Ledger};
use crate::stage::{Clients, PORT};

#[test]
fn a_request_beyond_the_limit_is_503_and_an_unanswered_one_is_504() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Silent>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut transcripts = Vec::new();
    for _ in 0..2 {
        let script = Script::new().send(request).receive_until(b"\r\n\r\n");
        transcripts.push(clients.add(&mut sim, script));
        sim.run_for(Duration::from_secs(1))?;
    }
    transcripts.push(clients.add(&mut sim, Script::new().send(request).receive_until(b"\r\n\r\n")));
    // All were sent within the last two seconds and a little more.
    sim.run_for(machine::ANSWER_TIME_MAX - Duration::from_secs(3))?;
    assert_eq!(answered(&transcripts), ["503"]);
    // The time in the queue counts: the request that never reached the upstream, or reached it just
    // now, is answered as early as the other.
    sim.run_for(Duration::from_secs(4))?;
    assert_eq!(answered(&transcripts), ["503", "504", "504"]);
    Ok(())
}

/// Most clients that end their side are gone.
#[test]
fn a_client_that_has_ended_its_side_gets_a_response_only_if_it_comes_soon() -> Result<(), BoxError>
{
    let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\npiece";
    let script = || Script::new().send(request.as_bytes()).shutdown();
    let mut sim = Sim::new(1);
    let upstream = serving::<Echo>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let transcript = clients.add(&mut sim, script().receive_until(b"\r\n\r\npiece"));
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(answered(&[transcript]), ["200"]);

    let mut sim = Sim::new(1);
    let upstream = serving::<Silent>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let transcript = clients.add(&mut sim, script().receive_until(b"\r\n\r\n"));
    sim.run_for(machine::HALF_CLOSED_TIME_MAX)?;
    assert!(!transcript.has_ended(), "{:?}", transcript.read());
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(answered(&[transcript]), ["504"]);
    Ok(())
}

/// The only connection to the upstream is free before the lost request would have timed out.
#[test]
fn a_client_that_leaves_does_not_occupy_the_upstream() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Choosy>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    clients.add(&mut sim, Script::new().send(request("/lost").as_bytes()).shutdown());
    sim.run_for(Duration::from_secs(1))?;
    let script = Script::new().send(request("/").as_bytes()).receive_until(b"\r\n\r\nhi");
    let next = clients.add(&mut sim, script);
    sim.run_for(machine::HALF_CLOSED_TIME_MAX + Duration::from_secs(1))?;
    assert_eq!(answered(&[next]), ["200"]);
    Ok(())
}

#[test]
fn an_upload_in_progress_may_outlast_the_answer_timeout() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let server = http_pool::serving(&mut sim, &Ledger::default())?;
    let upstream = SocketAddr::new(sim.address(server), PORT);
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    // The body comes in pieces. The pauses between them are shorter than the grace of the minimum
    // rate.
    let piece = [b'x'; 8_000];
    let head = "POST /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 120000\r\n\r\n";
    let pause = machine::ANSWER_TIME_MAX / 10;
    let script = (0..15)
        .fold(Script::new().send(head.as_bytes()), |script, _| script.send(&piece).pause(pause));
    let transcript = clients.add(&mut sim, script.receive_until(b"\r\n\r\n"));
    sim.run_for(4 * machine::ANSWER_TIME_MAX)?;
    assert_eq!(answered(&[transcript]), ["200"]);
    Ok(())
}

#[test]
fn an_unreachable_upstream_is_504_after_the_connect_timeout() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let server = http_pool::serving(&mut sim, &Ledger::default())?;
    let upstream = SocketAddr::new(sim.address(server), PORT);
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    sim.partition(proxy, server);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let transcript = clients.add(&mut sim, Script::new().send(request).receive_until(b"\r\n\r\n"));
    sim.run_for(machine::ANSWER_TIME_MAX)?;
    assert_eq!(answered(&[transcript]), ["504"]);
    Ok(())
}
