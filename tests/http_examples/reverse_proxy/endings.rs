//! One side ends before the other expects it: clients that disconnect, and upstreams that respond
//! early, close, or switch protocols.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use super::{OFFER, OK, proxy_to, proxy_to_url, says, upstream};
use crate::client::{PATIENCE, ask, connect, field, read_until};

#[test]
fn a_request_aborted_by_its_client_ends_at_the_upstream_too() {
    let (ended, end) = channel();
    let ended = Mutex::new(ended);
    let (address, heads) = upstream(move |client, head| {
        if head.starts_with("GET ") {
            return client.write_all(OK).expect("the proxy reads");
        }
        let mut body = Vec::new();
        let _a_reset_is_an_end_too = client.read_to_end(&mut body);
        let _test_is_over = ended.lock().expect("nobody panics with it").send(body);
    });
    let proxy = proxy_to(address);
    for fields in
        ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
    {
        let mut client = connect(&proxy);
        write!(client, "POST / HTTP/1.1\r\nHost: a\r\n{fields}").expect("the proxy reads");
        heads.recv_timeout(PATIENCE).expect("passed on");
        client.shutdown(Shutdown::Both).expect("it is open");
        let body = end.recv_timeout(PATIENCE).expect("the upstream hears of the end");
        let body = String::from_utf8(body).expect("ASCII");
        assert!(
            !body.contains("0\r\n\r\n") && body.len() < 16,
            "nobody takes it for whole: {body}"
        );
        let (head, _) = ask(&proxy, "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "others go on: {head}");
        heads.recv_timeout(PATIENCE).expect("passed on");
    }
}

#[test]
fn the_answer_of_an_upstream_that_answers_early_and_closes_passes() {
    let (address, _heads) = upstream(|client, _| {
        let answer =
            b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
        client.write_all(answer).expect("the proxy reads");
        client.shutdown(Shutdown::Both).expect("it is open");
    });
    let proxy = proxy_to(address);
    for sent in [0, 1, 20_000] {
        let mut client = connect(&proxy);
        write!(client, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            .expect("it reads");
        client.write_all(&vec![b'x'; sent]).expect("it reads that much");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("the answer, then the end");
        assert!(
            got.starts_with(b"HTTP/1.1 413 ") && got.ends_with(b"no"),
            "{sent}: {}",
            got.escape_ascii()
        );
    }
}

#[test]
fn a_stale_pooled_connection_retries_a_get_and_fails_a_post_with_502() {
    // Each connection sends one response, and closes when a second request arrives.
    let (address, heads) = upstream(|client, head| {
        client.write_all(OK).expect("the proxy reads");
        if !head.contains("/last") {
            read_until(client, |got| got.ends_with(b"\r\n\r\n"));
            client.shutdown(Shutdown::Both).expect("it is open");
        }
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let mut get = |target: &str| {
        write!(client, "GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").expect("the proxy reads");
        let got = read_until(&mut client, |got| got.ends_with(b"\r\n\r\nhi"));
        assert!(got.starts_with(b"HTTP/1.1 200 "), "{}", got.escape_ascii());
    };
    get("/first");
    get("/again");
    let targets: Vec<String> = heads.iter().take(2).collect();
    assert!(
        targets[0].starts_with("GET /first ") && targets[1].starts_with("GET /again "),
        "{targets:?}"
    );
    let (head, _) = ask(&proxy, "POST /once", "Content-Length: 0\r\n", "");
    assert!(head.starts_with("HTTP/1.1 502 "), "it may have been acted upon: {head}");
    assert!(heads.try_recv().is_err(), "and was not made again");
}

#[test]
fn a_switch_to_a_protocol_other_than_websocket_is_502() {
    let (address, _heads) = upstream(says(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nPRI * HTTP/2.0",
    ));
    let proxy = proxy_to(address);
    for upgrade in ["websocket", "h2c, websocket"] {
        let fields = format!("{OFFER}Connection: upgrade, close\r\nUpgrade: {upgrade}\r\n");
        let (head, _) = ask(&proxy, "GET /", &fields, "");
        assert!(head.starts_with("HTTP/1.1 502 "), "{upgrade}: {head}");
    }
}

#[test]
fn an_h2c_upgrade_offer_is_not_forwarded() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    for upgrade in ["h2c", "H2C", "h2c, h2"] {
        let fields = format!(
            "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABk\r\n"
        );
        let (head, _) = ask(&proxy, "GET /", &fields, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let sent = heads.recv_timeout(PATIENCE).expect("passed on");
        for name in ["Connection", "Upgrade", "HTTP2-Settings"] {
            assert_eq!(field(&sent, name), None, "{sent}");
        }
    }
}

#[test]
fn a_websocket_refusal_by_the_upstream_is_an_ordinary_answer() {
    let (address, heads) = upstream(says(
        b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nno",
    ));
    // A 426 over HTTP/2 has no `Upgrade`, which HTTP/1.1 requires.
    let direct = proxy_to(address);
    let over_http2 = proxy_to_url(&format!("h2c://{}/", direct.address()));
    for proxy in [&direct, &over_http2] {
        let mut client = connect(proxy);
        for _ in 0..2 {
            write!(
                client,
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{OFFER}\r\n"
            )
            .expect("it reads");
            let got = read_until(&mut client, |got| got.ends_with(b"\r\n\r\nno"));
            let text = String::from_utf8_lossy(&got);
            assert!(
                text.starts_with("HTTP/1.1 426 ") && field(&text, "Upgrade") == Some("websocket"),
                "{text}"
            );
            heads.recv_timeout(PATIENCE).expect("passed on");
        }
    }
}
