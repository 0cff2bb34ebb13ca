//! `reverse_proxy`: what passes in both directions and what does not, and how the proxy handles an
//! upstream that misbehaves.

mod endings;
mod framing;
mod much;
mod refused;
mod websockets;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;

use rotor_bench::server::Server;

use crate::client::{
    PATIENCE, again, ask, command, connect, exchange, field, read_until, start, start_command,
};
use crate::upstream::{agreement, nobody, says, upstream};

fn proxy_to(upstream: SocketAddr) -> Server {
    proxy_to_url(&format!("http://{upstream}/"))
}

fn proxy_to_url(upstream: &str) -> Server {
    let mut proxy = command("reverse_proxy");
    proxy.arg(upstream);
    start_command(proxy)
}

/// The fields of a client's WebSocket request, in addition to `Upgrade`.
const OFFER: &str = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn hop_by_hop_fields_are_dropped_and_forwarding_fields_are_replaced() {
    let (address, heads) = upstream(says(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
          Keep-Alive: timeout=5\r\nSet-Cookie: a=b\r\nX-Kept: 2\r\n\r\nhi",
    ));
    let proxy = proxy_to(address);
    let fields = "Connection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                  Proxy-Connection: keep-alive\r\nProxy-Authorization: secret\r\nX-Forwarded-For: 6.6.6.6\r\n\
                  X-Forwarded-Proto: https\r\nX-forwarded-anything: x\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
                  X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: 6.6.6.6\r\nx_real_ip: 6.6.6.6\r\n\
                  Client-IP: 6.6.6.6\r\nX-Client-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\n\
                  CF-Connecting-IP: 6.6.6.6\r\nX_Cluster_Client_IP: 6.6.6.6\r\nProxy: http://6.6.6.6/\r\n\
                  Content_Length: 66\r\nTransfer_Encoding: anything\r\n\
                  X-Original-URL: /6.6.6.6\r\nX-Rewrite_URL: /6.6.6.6\r\nX-Host: 6.6.6.6\r\n\
                  X-HTTP-Method-Override: anything\r\nRemote-User: anything\r\n\
                  Cookie: c=d\r\nX-Kept: 1\r\n\
                  traceparent: 00-12345678901234567890123456789012-1234567890123456-01\r\n\
                  tracestate: a=1,b=2\r\n";
    let answer =
        exchange(&proxy, format!("GET /a?b=c HTTP/1.1\r\nHost: example.org:81\r\n{fields}\r\n"));
    let sent = heads.recv_timeout(PATIENCE).expect("it was passed on");
    assert!(sent.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{sent}");
    for (name, value) in [
        ("Host", "example.org:81"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Host", "example.org:81"),
        ("Via", "1.1 rotor"),
        ("Cookie", "c=d"),
        ("X-Kept", "1"),
        // The proxy takes no part in tracing, so it passes the field on unchanged.
        ("traceparent", "00-12345678901234567890123456789012-1234567890123456-01"),
        ("tracestate", "a=1,b=2"),
    ] {
        assert_eq!(field(&sent, name), Some(value), "{name} in {sent}");
        assert_eq!(
            sent.to_lowercase().matches(&format!("\n{}:", name.to_lowercase())).count(),
            1,
            "{sent}"
        );
    }
    for name in [
        "Connection",
        "X-Mine",
        "Keep-Alive",
        "TE",
        "Upgrade",
        "Proxy-Connection",
        "Proxy-Authorization",
    ] {
        assert_eq!(field(&sent, name), None, "{name} in {sent}");
    }
    assert!(
        !sent.contains("6.6.6.6") && !sent.contains("anything") && !sent.contains("66\r\n"),
        "{sent}"
    );
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhi"),
        "{answer}"
    );
    assert_eq!(field(&answer, "Set-Cookie"), Some("a=b"));
    assert_eq!(field(&answer, "X-Kept"), Some("2"));
    assert_eq!(field(&answer, "Connection"), Some("close"), "ours");
    assert_eq!((field(&answer, "X-Hop"), field(&answer, "Keep-Alive")), (None, None), "{answer}");
}

#[test]
fn a_connection_field_that_nominates_a_protected_field_is_refused() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Authorization",
        "COOKIE",
        "Forwarded",
        "X-Forwarded-For",
        "x-real-ip",
    ] {
        let (head, _) = ask(&proxy, "GET /", &format!("Connection: a, {name}\r\n"), "");
        assert!(head.starts_with("HTTP/1.1 400 "), "{name}: {head}");
    }
    assert!(heads.try_recv().is_err(), "nothing was passed on");
}

#[test]
fn every_nominated_field_is_dropped_and_the_others_pass() {
    let (address, heads) = upstream(says(OK));
    let nominated: Vec<String> = (0..2_400).map(|number| format!("n{number:x}")).collect();
    let fields: String = nominated.iter().take(80).map(|name| format!("{name}: 1\r\n")).collect();
    let half = nominated.len() / 2;
    let connection = [&nominated[..half], &nominated[half..]].map(|names| names.join(","));
    let [one, other] = connection;
    let fields = format!("Connection: {one}\r\nConnection: {other}\r\n{fields}X-Kept: 1\r\n");
    let (head, _) = ask(&proxy_to(address), "GET /", &fields, "");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let sent = heads.recv_timeout(PATIENCE).expect("it was passed on");
    assert!(field(&sent, "X-Kept").is_some() && !sent.contains("\nn"), "{sent}");
}

#[test]
fn failed_requests_are_not_logged_one_by_one() {
    const REQUESTS: usize = 50;
    let nobody = nobody();
    let mut proxy = command("reverse_proxy");
    let (mut log, stderr) = std::io::pipe().expect("there are descriptors");
    proxy.arg(format!("http://{nobody}/")).stderr(stderr);
    let proxy = start_command(proxy);
    for _ in 0..REQUESTS {
        let (head, _) = ask(&proxy, "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    }
    proxy.terminate(PATIENCE).expect("it ends");
    let mut said = String::new();
    log.read_to_string(&mut said).expect("text");
    let lines = said.lines().filter(|line| line.contains("gives no answer")).count();
    assert!((1..REQUESTS / 5).contains(&lines), "{said}");
}

#[test]
fn framing_is_rewritten_on_both_sides() {
    let (address, heads) = upstream(|client, head| {
        let end: &[u8] = if head.contains("chunked") { b"llo\r\n0\r\n\r\n" } else { b"hello" };
        let body = read_until(client, |got| got.ends_with(end));
        assert!(!body.iter().any(|octet| b"; =".contains(octet)), "{}", body.escape_ascii());
        let answer: &[u8] = match head.contains("chunked") {
            true => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 ; x = y\r\nh\r\n1\r\ni\r\n0\r\nX: y\r\n\r\n",
            false => b"HTTP/1.0 200 OK\r\n\r\nhi",
        };
        client.write_all(answer).expect("the proxy reads");
        if !head.contains("chunked") {
            client.shutdown(std::net::Shutdown::Both).expect("it is open");
        }
    });
    let proxy = proxy_to(address);
    let chunked = "Transfer-Encoding: chunked\r\n\r\n2 ; a = b\r\nhe\r\n3\t;c\r\nllo\r\n0\r\n\r\n";
    let answer =
        exchange(&proxy, format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{chunked}"));
    assert!(answer.contains("\r\nTransfer-Encoding: chunked\r\n"), "{answer}");
    assert!(
        answer.ends_with("0\r\n\r\n") && !answer.contains(";") && !answer.contains("x = y"),
        "{answer}"
    );
    let sent = heads.recv_timeout(PATIENCE).expect("it was passed on");
    assert_eq!(field(&sent, "Transfer-Encoding"), Some("chunked"));
    let (head, body) = ask(&proxy, "POST /", "", "hello");
    assert!(
        head.contains("Transfer-Encoding: chunked"),
        "what ended with the connection does not any more: {head}"
    );
    assert!(body.contains("hi") && body.ends_with("0\r\n\r\n"), "{body}");
    let sent = heads.recv_timeout(PATIENCE).expect("it was passed on");
    assert_eq!(field(&sent, "Content-Length"), Some("5"));
}

#[test]
fn a_missing_or_invalid_upstream_is_502_and_a_cut_answer_stays_cut() {
    let (head, _) = ask(&proxy_to(nobody()), "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let answers: [&'static [u8]; 4] = [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ];
    for answer in answers {
        let (address, _heads) = upstream(says(answer));
        let (head, _) = ask(&proxy_to(address), "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 502 "), "{}: {head}", answer.escape_ascii());
    }
    let (address, _heads) = upstream(|client, _| {
        client
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
            .expect("the proxy reads");
        client.shutdown(std::net::Shutdown::Both).expect("it is open");
    });
    let (head, body) = ask(&proxy_to(address), "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("Content-Length: 9"), "{head}");
    assert_eq!(body, "short", "and then the end: nobody takes it for whole");
}

/// RFC 9110 §15.3.6: there is no content; the upstream chooses its framing.
#[test]
fn an_answer_without_content_passes_in_any_framing() {
    for framing in [
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Connection: close\r\n\r\n",
    ] {
        let answer = format!("HTTP/1.1 205 Reset Content\r\nX-Kept: 1\r\n{framing}");
        let (address, _heads) = upstream(move |client, _| {
            client.write_all(answer.as_bytes()).expect("the proxy reads");
            client.shutdown(std::net::Shutdown::Both).expect("it is open");
        });
        let (head, body) = ask(&proxy_to(address), "POST /", "", "");
        assert!(head.starts_with("HTTP/1.1 205 "), "{framing}: {head}");
        assert_eq!((field(&head, "Content-Length"), body.len()), (Some("0"), 0), "{head}");
    }
}

#[test]
fn a_websocket_passes_and_no_other_upgrade() {
    let echo = start("ws_echo");
    let knows = echo.address();
    let (address, heads) = upstream(move |client, head| {
        if field(head, "Upgrade") != Some("websocket") {
            return client.write_all(OK).expect("the proxy reads");
        }
        let switch = agreement(knows, head, "") + "first";
        client.write_all(switch.as_bytes()).expect("the proxy reads");
        let mut chunk = [0; 1 << 16];
        while let Ok(count @ 1..) = again(|| client.read(&mut chunk)) {
            chunk[..count].make_ascii_uppercase();
            client.write_all(&chunk[..count]).expect("the proxy reads");
        }
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let upgrade = format!("{OFFER}Connection: upgrade\r\nUpgrade: h2c, websocket\r\n");
    write!(client, "GET /chat HTTP/1.1\r\nHost: a\r\n{upgrade}\r\n").expect("the proxy reads");
    let got = read_until(&mut client, |got| got.ends_with(b"first"));
    let text = String::from_utf8_lossy(&got);
    assert!(
        text.starts_with("HTTP/1.1 101 ") && field(&text, "Upgrade") == Some("websocket"),
        "{text}"
    );
    assert_eq!(
        field(&heads.recv_timeout(PATIENCE).expect("passed on"), "Upgrade"),
        Some("websocket")
    );
    client.write_all(b"hello").expect("the proxy reads");
    read_until(&mut client, |got| got == b"HELLO");
    let much = vec![b'x'; 4 << 20];
    let mut writer = client.try_clone().expect("a socket can be cloned");
    thread::scope(|threads| {
        threads.spawn(|| writer.write_all(&much).expect("the proxy reads"));
        let got = read_until(&mut client, |got| got.len() >= much.len());
        assert!(got.len() == much.len() && got.iter().all(|octet| *octet == b'X'));
    });
    client.shutdown(std::net::Shutdown::Write).expect("it is open");
    assert_eq!(again(|| client.read(&mut [0])).expect("the end is passed on, and comes back"), 0);

    let offer = "Connection: upgrade, close\r\nUpgrade: ";
    for (start, fields, body) in [
        ("GET /", "h2c\r\n".to_owned(), ""),
        // A WebSocket request must be a GET without a body.
        ("DELETE /", format!("websocket\r\n{OFFER}"), ""),
        ("GET /", format!("websocket\r\n{OFFER}"), "body"),
    ] {
        let (head, answer) = ask(&proxy, start, &format!("{offer}{fields}"), body);
        assert!(head.starts_with("HTTP/1.1 200 ") && answer == "hi", "{fields}: {head}");
        let sent = heads.recv_timeout(PATIENCE).expect("passed on");
        for name in ["Upgrade", "Sec-WebSocket-Key"] {
            assert_eq!(field(&sent, name), None, "{sent}");
        }
    }
    // No valid key, or two keys.
    for keys in ["", "Sec-WebSocket-Key: short\r\n", &format!("{OFFER}{OFFER}")] {
        let (head, _) = ask(&proxy, "GET /", &format!("{offer}websocket\r\n{keys}"), "");
        assert!(head.starts_with("HTTP/1.1 400 "), "{keys}: {head}");
    }
    assert!(heads.try_recv().is_err(), "nothing of that was passed on");
}

#[test]
fn a_client_that_expects_100_gets_it_from_the_upstream() {
    let (address, heads) = upstream(|client, head| {
        assert_eq!(field(head, "Expect"), Some("100-continue"));
        if head.starts_with("POST /no") {
            return client
                .write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
                .expect("read");
        }
        client
            .write_all(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            .expect("read");
        let mut body = [0; 5];
        client.read_exact(&mut body).expect("the body is passed on");
        client.write_all(OK).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let head = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    write!(client, "POST /yes HTTP/1.1\r\n{head}").expect("the proxy reads");
    let got = read_until(&mut client, |got| got.ends_with(b"100 Continue\r\n\r\n"));
    assert!(got.starts_with(b"HTTP/1.1 103 "), "{}", got.escape_ascii());
    client.write_all(b"hello").expect("the proxy reads");
    read_until(&mut client, |got| got.ends_with(b"\r\n\r\nhi"));
    write!(client, "POST /no HTTP/1.1\r\n{head}").expect("the proxy reads");
    let got = read_until(&mut client, |got| got.ends_with(b"\r\n\r\nno"));
    assert!(got.starts_with(b"HTTP/1.1 403 "), "{}", got.escape_ascii());
    assert_eq!(heads.iter().take(2).count(), 2);
}

/// RFC 9110 §10.1.1: an upstream that responds without asking for the body may still read it.
#[test]
fn a_body_that_was_not_asked_for_passes_after_the_final_head() {
    let (address, _heads) = upstream(|client, _| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
        client.write_all(head).expect("the proxy reads");
        let mut body = [0; 5];
        client.read_exact(&mut body).expect("the body is passed on");
        client.write_all(&[b"5\r\n", &body[..], b"\r\n0\r\n\r\n"].concat()).expect("it reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let head = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    write!(client, "POST / HTTP/1.1\r\n{head}").expect("the proxy reads");
    read_until(&mut client, |got| got.ends_with(b"hi\r\n"));
    client.write_all(b"hello").expect("the proxy reads");
    read_until(&mut client, |got| got.ends_with(b"hello\r\n0\r\n\r\n"));
}

#[test]
fn a_100_passes_before_the_final_head_that_arrived_with_it() {
    let (address, _heads) = upstream(|client, _| {
        let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        client.write_all(answer).expect("the proxy reads");
        let mut body = [0; 5];
        client.read_exact(&mut body).expect("the body is passed on");
        client.write_all(&body).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    for _ in 0..2 {
        let head = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        write!(client, "POST /echo HTTP/1.1\r\n{head}").expect("the proxy reads");
        let mut got = read_until(&mut client, |got| got.ends_with(b"\r\n\r\n"));
        assert!(got.starts_with(b"HTTP/1.1 100 "), "{}", got.escape_ascii());
        client.write_all(b"hello").expect("the proxy reads");
        got.extend(read_until(&mut client, |got| got.ends_with(b"hello")));
        let head = String::from_utf8_lossy(&got);
        assert_eq!(field(&head, "Connection"), None, "the request has been read: {head}");
    }
}

#[test]
fn interim_answers_pass_one_at_a_time_and_in_order() {
    const COUNT: usize = 16;
    // All in one read: more than fit into the mailbox between the two sides of the proxy.
    let (address, _heads) = upstream(move |client, _| {
        let hint =
            |number| format!("HTTP/1.1 103 Early Hints\r\nLink: {number}\r\n\r\n").into_bytes();
        let hints: Vec<u8> = (0..COUNT).flat_map(hint).collect();
        client.write_all(&[&hints, OK].concat()).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let answer = exchange(&proxy, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let links: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("Link: ")).collect();
    assert_eq!(links, (0..COUNT).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(answer.ends_with("\r\n\r\nhi"), "{} octets", answer.len());
}
