//! Many valid and invalid requests on connections that open and close: each valid one is answered
//! once, each invalid one ends its connection, and nothing is left over.

use rotor_http::server::ServerConfig;

use super::TestServer;
use crate::loops::{OnLoop, on_every_loop};
use crate::probe::{get, post, request};
use crate::wire::answers;

/// The total of requests; `tests/long/mixed-requests` sets a million.
fn requests() -> usize {
    std::env::var("ROTOR_HTTP_REQUESTS").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000)
}

const CONCURRENT: usize = 20;

on_every_loop!(every_good_request_is_answered_once_beside_bad_ones);
fn every_good_request_is_answered_once_beside_bad_ones<L: OnLoop>() {
    let config = ServerConfig::new();
    let counters = config.counters();
    let mut server = TestServer::<L>::new(config);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let bad: [Vec<u8>; 6] = [
        request("GET /bad", "A : b\r\n", ""),
        request("POST /bad", "Content-Length: x\r\n", "x"),
        request("POST /bad", "Content-Length: 5\r\n", "x"),
        request("POST /bad", "Transfer-Encoding: chunked\r\n", "5\r\nx\r\n"),
        b"\x16\x03\x01\x02\x00".to_vec(),
        Vec::new(),
    ];
    let (mut number, mut good, mut connections) = (0, 0, 0);
    while number < requests() {
        let mut batch = Vec::new();
        for _ in 0..CONCURRENT {
            let (mut client, mut input, mut expected) = (server.connect(), Vec::new(), Vec::new());
            for _ in 0..random(60) {
                number += 1;
                let path = format!("/{number}");
                match random(3) {
                    0 => input.extend(get(&path)),
                    1 => input.extend(post(&path, "body")),
                    _ => input.extend(request(
                        &format!("POST {path}"),
                        "Transfer-Encoding: chunked\r\n",
                        "2\r\nbo\r\n2;a=b\r\ndy\r\n0\r\nX: y\r\n\r\n",
                    )),
                }
                let with_body = input.ends_with(b"body") || input.ends_with(b"X: y\r\n\r\n");
                let (method, body) = if with_body { ("POST", "body") } else { ("GET", "") };
                expected.push(format!("{method} {path} {body}"));
            }
            number += 1;
            input.extend(&bad[random(bad.len())]);
            let piece = [usize::MAX, 1000, 137][random(3)];
            server.write(&mut client, &input, piece);
            batch.push((client, expected));
        }
        for (mut client, expected) in batch {
            let bytes = server.finish(&mut client);
            let mut answers = answers(&bytes);
            if answers.last().is_some_and(|answer| answer.status >= 400) {
                answers.pop();
            }
            let texts: Vec<&str> = answers.iter().map(|answer| answer.text()).collect();
            assert_eq!(texts, expected);
            good += expected.len() as u64;
            connections += 1;
        }
        server.rig.context(|seen| seen.events.clear());
    }
    server.rig.until(|rig| rig.machines() == 1);
    assert_eq!((counters.connections(), counters.panics()), (connections, 0));
    assert!(counters.requests() >= good);
}
