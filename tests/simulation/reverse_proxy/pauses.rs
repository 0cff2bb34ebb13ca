//! How long each side of an exchange may pause.

use std::time::Duration;

use rotor::BoxError;
use rotor::http::client::PoolConfig;
use rotor::stream::AcceptConfig;
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Script, Sim};

use super::upstreams::{Echo, Events, Large, serving};
use super::{answered, back, one_at_a_time, passing_on, passing_on_by};
use crate::stage::Clients;

#[test]
fn a_response_may_pause_but_not_for_longer_than_the_limit() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Events>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let script = Script::new().send(request).receive_until(b"\r\n0\r\n");
    let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
    sim.run_for(Events::COUNT * Events::PAUSE + back::SILENCE_MAX - Duration::from_secs(1))?;
    assert!(!transcript.has_ended(), "{:?}", transcript.read());
    let received = transcript.read().received.clone();
    let count = received.windows(4).filter(|part| part == b"\r\n:\n").count();
    assert_eq!(count, Events::COUNT as usize, "{}", received.escape_ascii());
    sim.run_for(Duration::from_secs(2))?;
    assert!(transcript.has_ended());
    Ok(())
}

/// The client pauses for nearly as long as it may.
const PAUSE: Duration = back::SILENCE_MAX.saturating_sub(Duration::from_secs(1));

#[test]
fn a_client_may_pause_once_its_response_has_begun() -> Result<(), BoxError> {
    for (path, is_whole) in [("/chat", true), ("/", false)] {
        let mut sim = Sim::new(1);
        let upstream = serving::<Echo>(&mut sim)?;
        let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
        let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let script = [&b"1\r\nx\r\n"[..]; 4]
            .iter()
            .fold(Script::new().send(head.as_bytes()), |script, chunk| {
                script.send(chunk).pause(PAUSE)
            });
        let script = script.send(b"0\r\n\r\n").receive_until(b"x\r\n0\r\n\r\n");
        let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
        sim.run_for(5 * PAUSE)?;
        let received = transcript.read().received.clone();
        let text = String::from_utf8_lossy(&received);
        assert_eq!(text.matches("1\r\nx\r\n").count() == 4, is_whole, "{path}: {text}");
        assert_eq!(text.starts_with("HTTP/1.1 200 "), is_whole, "{path}: {text}");
    }
    Ok(())
}

/// A frame of HTTP/2 on stream 1 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short one");
    [&[0, 0, len, kind, flags, 0, 0, 0, 1], payload].concat()
}

/// The head of a POST request on HTTP/2, its fields as literals (RFC 7541 §6.2.2).
fn post_head(content_type: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
        ("content-type", content_type),
    ];
    let line = |(name, value)| [vec![0], text(name), text(value)].concat();
    frame(1, 4, &fields.map(line).concat())
}

/// gRPC: the server of a stream of messages may respond when the last one has arrived.
#[test]
fn the_client_of_a_call_may_pause_before_the_response() -> Result<(), BoxError> {
    for (content_type, has_http2, is_whole) in [
        ("application/grpc+proto", true, true),
        ("application/octet-stream", true, false),
        ("application/grpc", false, false),
    ] {
        let mut sim = Sim::new(1);
        let upstream = serving::<Echo>(&mut sim)?;
        let clients = AcceptConfig::new();
        let proxy = passing_on_by(&mut sim, upstream, clients, one_at_a_time(), has_http2)?;
        let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let script = Script::new().send(preface).receive(9).send(b"\0\0\0\x04\x01\0\0\0\0");
        let script =
            [b"piece"; 3].iter().fold(script.send(&post_head(content_type)), |script, piece| {
                script.send(&frame(0, 0, *piece)).pause(PAUSE)
            });
        let script = script.send(&frame(0, 1, b"")).receive_until(b"piecepiecepiece");
        let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
        sim.run_for(4 * PAUSE)?;
        let received = transcript.read().received.clone();
        let is_found = received.windows(15).any(|part| part == b"piecepiecepiece");
        assert_eq!(is_found, is_whole, "{content_type}: {}", received.escape_ascii());
    }
    Ok(())
}

/// All of them share one connection to the upstream, and its window.
#[test]
fn clients_that_do_not_read_hold_up_no_other_client() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Large>(&mut sim)?;
    let config = PoolConfig::new().connections_per_origin_max(1);
    let proxy = passing_on_by(&mut sim, upstream, AcceptConfig::new(), config, true)?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    // As many as there can be beside the last one.
    for _ in 1..100 {
        let script = Script::new().send(request("/large").as_bytes()).pause(back::SILENCE_MAX);
        clients.add(&mut sim, script.patience(2 * back::SILENCE_MAX));
    }
    sim.run_for(Duration::from_secs(5))?;
    let script = Script::new().send(request("/").as_bytes()).receive_until(b"\r\n\r\nhi");
    let last = clients.add(&mut sim, script);
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(answered(&[last]), ["200"]);
    Ok(())
}
