//! Message framing on both sides, and what of it the proxy passes on: lengths, chunks, trailers,
//! heads without bodies, older versions.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use super::{OFFER, OK, agreement, proxy_to, proxy_to_url, says, start, upstream};
use crate::client::{PATIENCE, again, ask, connect, exchange, field, read_until};
use crate::upstream::read_head;

#[test]
fn ambiguous_framing_by_the_upstream_is_502() {
    let answers: [&'static [u8]; 8] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    ];
    for answer in answers {
        let (address, _heads) = upstream(says(answer));
        let (head, body) = ask(&proxy_to(address), "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 502 "), "{}: {head}", answer.escape_ascii());
        assert!(!body.contains("hi"), "{}: {body}", answer.escape_ascii());
    }
}

#[test]
fn invalid_framing_by_the_upstream_is_502_even_without_a_body() {
    for fields in [
        "Content-Length: +5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Transfer-Encoding: chunked;a",
    ] {
        for (start, status) in
            [("HEAD /", "200 OK"), ("GET /", "304 Not Modified"), ("GET /", "204 No Content")]
        {
            let answer = format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n");
            let (address, _heads) = upstream(move |client, _| {
                client.write_all(answer.as_bytes()).expect("the proxy reads");
            });
            let (head, _) = ask(&proxy_to(address), start, "", "");
            assert!(head.starts_with("HTTP/1.1 502 "), "{start} {status} {fields}: {head}");
        }
    }
}

#[test]
fn ambiguous_framing_by_the_client_is_400_and_is_not_forwarded() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked, chunked, identity\r\n",
        "X: y\r\n folded\r\n",
        "Content-Length : 5\r\n",
    ] {
        let answer = exchange(
            &proxy,
            format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\n{smuggled}"),
        );
        assert!(
            answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 501 "),
            "{fields}{answer}"
        );
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    assert!(heads.try_recv().is_err(), "nothing was passed on");
}

#[test]
fn trailers_pass_in_neither_direction() {
    let (address, heads) = upstream(|client, _| {
        read_until(client, |got| got.ends_with(b"2\r\nhi\r\n0\r\n\r\n"));
        let answer = b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
                       2\r\nhi\r\n0\r\nX-Sum: 2\r\nContent-Length: 9\r\n\r\n";
        client.write_all(answer).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let fields = "Host: a\r\nTransfer-Encoding: chunked\r\n";
    write!(client, "POST / HTTP/1.1\r\n{fields}\r\n2\r\nhi\r\n0\r\nAuthorization: x\r\n\r\n")
        .expect("it reads");
    let got = read_until(&mut client, |got| got.ends_with(b"0\r\n\r\n"));
    assert!(got.ends_with(b"\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "{}", got.escape_ascii());
    for head in [
        heads.recv_timeout(PATIENCE).expect("passed on"),
        String::from_utf8_lossy(&got).into_owned(),
    ] {
        assert_eq!((field(&head, "Trailer"), field(&head, "X-Sum")), (None, None), "{head}");
    }
}

#[test]
fn announced_trailers_pass_in_both_directions_if_the_client_takes_them() {
    let (address, heads) = upstream(|client, _| {
        read_until(client, |got| got.ends_with(b"\r\n0\r\nX-Rest: 1\r\n\r\n"));
        let answer = b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
                       2\r\nhi\r\n0\r\nX-Sum: 2\r\n\r\n";
        client.write_all(answer).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let fields = "Host: a\r\nTE: trailers\r\nTrailer: X-Rest\r\nTransfer-Encoding: chunked\r\n";
    write!(client, "POST / HTTP/1.1\r\n{fields}\r\n2\r\nhi\r\n0\r\nX-Rest: 1\r\n\r\n")
        .expect("it reads");
    let got = read_until(&mut client, |got| got.ends_with(b"0\r\nX-Sum: 2\r\n\r\n"));
    let asked = heads.recv_timeout(PATIENCE).expect("passed on");
    assert_eq!(field(&asked, "Trailer"), Some("X-Rest"), "{asked}");
    assert_eq!(field(&String::from_utf8_lossy(&got), "Trailer"), Some("X-Sum"));
}

/// RFC 9110 §6.6.2: the field announces trailers, which do not pass here.
#[test]
fn a_trailer_field_does_not_pass_where_no_trailers_can_follow() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 2\r\n\r\n";
    for (version, answer, passes) in [
        ("1.1", format!("200 OK\r\n{chunked}"), true),
        ("1.1", "200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned(), false),
        ("1.1", format!("205 Reset Content\r\n{}", chunked.replace("2\r\nhi\r\n", "")), false),
        ("1.1", "304 Not Modified\r\n\r\n".to_owned(), false),
        ("1.0", format!("200 OK\r\n{chunked}"), false),
    ] {
        let answer = format!("HTTP/1.1 {}", answer.replacen("\r\n", "\r\nTrailer: X-Sum\r\n", 1));
        let (address, _heads) = upstream(move |client, _| {
            client.write_all(answer.as_bytes()).expect("the proxy reads");
        });
        let fields = "Host: a\r\nTE: trailers\r\nConnection: close, TE\r\n";
        let request = format!("GET / HTTP/{version}\r\n{fields}\r\n");
        let got = exchange(&proxy_to(address), request);
        let expected = if passes { (Some("X-Sum"), true) } else { (None, false) };
        assert_eq!((field(&got, "Trailer"), got.contains("\r\nX-Sum: 2")), expected, "{got}");
    }
}

#[test]
fn answers_without_a_body_leave_the_connection_usable() {
    let (address, _heads) = upstream(|client, head| {
        let answer: &[u8] = match head.split(' ').nth(1) {
            Some("/head") => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n",
            Some("/304") => {
                b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n"
            }
            _ => OK,
        };
        client.write_all(answer).expect("the proxy reads");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    for (start, code, length) in [
        ("HEAD /head", "200", Some("5")),
        ("GET /204", "204", None),
        ("GET /304", "304", Some("5")),
    ] {
        write!(client, "{start} HTTP/1.1\r\nHost: a\r\n\r\n").expect("the proxy reads");
        let got = read_until(&mut client, |got| got.windows(4).any(|window| window == b"\r\n\r\n"));
        let head = String::from_utf8_lossy(&got);
        assert_eq!(head.split(' ').nth(1), Some(code), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "no body: {head}");
        assert_eq!(field(&head, "Content-Length"), length, "{head}");
        assert_eq!(field(&head, "Transfer-Encoding"), None, "{head}");
    }
    write!(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("the proxy reads");
    read_until(&mut client, |got| got.ends_with(b"\r\n\r\nhi"));
}

#[test]
fn a_client_of_http_1_0_gets_no_chunks_and_no_interim_answers() {
    let (address, heads) = upstream(says(
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n\
          HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    ));
    let answer = exchange(&proxy_to(address), "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhi"), "{answer}");
    assert_eq!(field(&answer, "Transfer-Encoding"), None, "{answer}");
    let sent = heads.recv_timeout(PATIENCE).expect("passed on");
    assert!(
        sent.starts_with("GET / HTTP/1.1\r\n") && field(&sent, "Via") == Some("1.0 rotor"),
        "{sent}"
    );
}

#[test]
fn a_client_of_http_1_0_that_names_no_host_asks_for_the_upstream_itself() {
    let (address, heads) = upstream(says(OK));
    let answer = exchange(&proxy_to(address), "GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhi"), "{answer}");
    let sent = heads.recv_timeout(PATIENCE).expect("passed on");
    assert_eq!(field(&sent, "Host"), Some(&*address.to_string()), "{sent}");
    assert_eq!(field(&sent, "X-Forwarded-Host"), None, "the client has not said any: {sent}");
}

#[test]
fn an_absolute_uri_names_the_host() {
    let (address, heads) = upstream(says(OK));
    let (head, _) = ask(&proxy_to(address), "GET http://example.org:81/a?b", "", "");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let sent = heads.recv_timeout(PATIENCE).expect("passed on");
    assert!(sent.starts_with("GET /a?b HTTP/1.1\r\n"), "{sent}");
    assert_eq!(field(&sent, "Host"), Some("example.org:81"), "and not what the field says");
}

#[test]
fn options_of_an_absolute_uri_without_a_path_asks_for_the_server() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    for (asked, passed_on) in [
        ("OPTIONS http://a", "OPTIONS *"),
        ("OPTIONS http://a/", "OPTIONS /"),
        ("OPTIONS http://a?b", "OPTIONS /?b"),
        ("OPTIONS *", "OPTIONS *"),
        ("GET http://a", "GET /"),
    ] {
        ask(&proxy, asked, "", "");
        let sent = heads.recv_timeout(PATIENCE).expect("passed on");
        assert!(sent.starts_with(&format!("{passed_on} HTTP/1.1\r\n")), "{asked}: {sent}");
    }
}

#[test]
fn max_forwards_is_decremented_and_answered_at_zero() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    for (asked, field_line, passed_on) in [
        ("OPTIONS /", "Max-Forwards: 0\r\n", None),
        ("OPTIONS *", "Max-Forwards: 1\r\n", Some("0")),
        ("OPTIONS /", "max-forwards: 10\r\n", Some("9")),
        ("OPTIONS /", "Max-Forwards: +1\r\n", Some("+1")),
        ("GET /", "Max-Forwards: 0\r\n", Some("0")),
    ] {
        let (head, _) = ask(&proxy, asked, field_line, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{asked} {field_line}: {head}");
        match passed_on {
            Some(left) => {
                let sent = heads.recv_timeout(PATIENCE).expect("passed on");
                assert_eq!(field(&sent, "Max-Forwards"), Some(left), "{sent}");
            }
            None => assert!(heads.try_recv().is_err(), "it is for the proxy itself"),
        }
    }
}

#[test]
fn an_aborted_chunked_answer_is_cut_and_not_ended() {
    let (address, _heads) = upstream(|client, _| {
        let half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
        client.write_all(half).expect("the proxy reads");
        client.shutdown(std::net::Shutdown::Both).expect("it is open");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    write!(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("the proxy reads");
    let mut got = Vec::new();
    let _a_reset_is_an_end_too = client.read_to_end(&mut got);
    let body = b"\r\n\r\n2\r\nhi\r\n";
    assert!(
        got.ends_with(body),
        "without a last chunk nobody takes it for whole: {}",
        got.escape_ascii()
    );
}

/// The body ends with the connection, for a client that does not support chunks (RFC 9112 §8).
#[test]
fn an_aborted_answer_to_an_http_1_0_client_is_not_ended() {
    let is_passed = Arc::new(Barrier::new(2));
    let passes = is_passed.clone();
    let (address, _heads) = upstream(move |client, _| {
        let half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
        client.write_all(half).expect("the proxy reads");
        // Until the head has been passed on, the proxy could still send an error page instead.
        passes.wait();
        client.shutdown(Shutdown::Both).expect("it is open");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    write!(client, "GET / HTTP/1.0\r\nHost: a\r\n\r\n").expect("the proxy reads");
    read_until(&mut client, |got| got.ends_with(b"\r\n\r\nhi"));
    is_passed.wait();
    let end = again(|| client.read(&mut [0])).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

#[test]
fn a_tunnel_reset_by_its_client_is_reset_at_the_upstream() {
    let echo = start("ws_echo");
    let knows = echo.address();
    let (ends, ended) = channel();
    let (address, _heads) = upstream(move |client, head| {
        let switch = agreement(knows, head, "") + "unread";
        client.write_all(switch.as_bytes()).expect("the proxy reads");
        let end = again(|| client.read(&mut [0])).map_err(|error| error.kind());
        ends.send(end).expect("the test waits");
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    write!(
        client,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{OFFER}\r\n"
    )
    .expect("the proxy reads");
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // Closing a connection with unread input resets it.
    again(|| client.peek(&mut [0])).expect("it comes");
    drop(client);
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(Err(ErrorKind::ConnectionReset)));
}

/// RFC 9110 §8.6: a length that was given is passed on, even if it says that there is no body.
#[test]
fn a_length_of_0_passes_with_every_method() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    for (method, given, expected) in [
        ("GET", "Content-Length: 0\r\n", Some("0")),
        ("DELETE", "Content-Length: 0\r\n", Some("0")),
        ("POST", "Content-Length: 0\r\n", Some("0")),
        ("GET", "", None),
        ("DELETE", "", None),
    ] {
        let (head, _) = ask(&proxy, &format!("{method} /"), given, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{method} {given}: {head}");
        let sent = heads.recv_timeout(PATIENCE).expect("passed on");
        assert_eq!(field(&sent, "Content-Length"), expected, "{method} {given}: {sent}");
    }
}

/// A frame of HTTP/2 on stream 1 (RFC 9113 §4.1).
pub(super) fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short one");
    [&[0, 0, len, kind, flags, 0, 0, 0, 1], payload].concat()
}

/// A frame with the head of a response.
pub(super) fn head_frame(status: &str) -> Vec<u8> {
    frame(1, 4, &field_line(":status", status))
}

/// A field line of a head (RFC 7541 §6.2.2).
fn field_line(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Reads the beginning of a connection of HTTP/2 up to the first request.
pub(super) fn read_request(client: &mut TcpStream) {
    // The rest of the preface, and our SETTINGS.
    client.read_exact(&mut [0; 6]).expect("SM");
    client.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).expect("the proxy reads");
    let (mut header, is_head) = ([0; 9], 1);
    while header[3] != is_head {
        client.read_exact(&mut header).expect("a frame");
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        client.read_exact(&mut vec![0; len as usize]).expect("its payload");
    }
}

/// Answers the first request of a connection of HTTP/2, with all heads in one write.
fn answer_with_hints(client: &mut TcpStream, hints: usize) {
    read_request(client);
    let heads = [head_frame("103").repeat(hints), head_frame("200"), frame(0, 1, b"hi")];
    client.write_all(&heads.concat()).expect("the proxy reads");
    while matches!(client.read(&mut [0; 1_024]), Ok(1..)) {}
}

#[test]
fn interim_answers_that_come_at_once_over_http2_pass_before_the_answer() {
    // As many as there may be by default.
    for hints in [8, 16] {
        let (address, _heads) = upstream(move |client, _| answer_with_hints(client, hints));
        let proxy = proxy_to_url(&format!("h2c://{address}/"));
        let answer = exchange(&proxy, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(answer.matches("HTTP/1.1 103 Early Hints\r\n").count(), hints, "{answer}");
        assert!(answer.ends_with("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "{answer}");
    }
}

/// The peer says 0 in its head, and ends the body with a frame of its own.
#[test]
fn a_length_of_0_passes_from_http2_before_the_stream_has_ended() {
    let (address, heads) = upstream(says(OK));
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")];
    let head = fields.iter().chain(&[("content-length", "0")]);
    let head: Vec<u8> = head.flat_map(|(name, value)| field_line(name, value)).collect();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    client.write_all(&[&preface[..], &frame(1, 4, &head)].concat()).expect("the proxy reads");
    let sent = heads.recv_timeout(PATIENCE).expect("passed on");
    assert_eq!(field(&sent, "Content-Length"), Some("0"), "{sent}");
    assert_eq!(field(&sent, "Transfer-Encoding"), None, "{sent}");
    client.write_all(&frame(0, 1, b"")).expect("the proxy reads");
    // The end of the stream, and its last bytes.
    read_until(&mut client, |got| got.ends_with(b"\x01\0\0\0\x01hi"));

    let (address, _heads) = upstream(|client, _| {
        read_request(client);
        let head = [field_line(":status", "200"), field_line("content-length", "0")].concat();
        let answer = [frame(1, 4, &head), frame(0, 1, b"")].concat();
        client.write_all(&answer).expect("the proxy reads");
        while matches!(client.read(&mut [0; 1_024]), Ok(1..)) {}
    });
    let (head, body) = ask(&proxy_to_url(&format!("h2c://{address}/")), "GET /", "", "");
    assert_eq!(field(&head, "Content-Length"), Some("0"), "{head}");
    assert_eq!((field(&head, "Transfer-Encoding"), &*body), (None, ""), "{head}");
}

/// In HTTP/2 trailers may follow whether or not the length was announced (RFC 9113 §8.1).
#[test]
fn trailers_pass_from_http2_to_http2_behind_a_body_with_a_length() {
    let (address, _heads) = upstream(|client, _| {
        read_request(client);
        let head = [(":status", "200"), ("content-length", "2"), ("trailer", "x-sum")];
        let head = head.map(|(name, value)| field_line(name, value)).concat();
        let trailers = frame(1, 5, &field_line("x-sum", "2"));
        client
            .write_all(&[frame(1, 4, &head), frame(0, 0, b"hi"), trailers].concat())
            .expect("the proxy reads");
        while matches!(client.read(&mut [0; 1_024]), Ok(1..)) {}
    });
    for takes_trailers in [true, false] {
        let proxy = proxy_to_url(&format!("h2c://{address}/"));
        let mut client = connect(&proxy);
        let te = takes_trailers.then_some(("te", "trailers"));
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")];
        let head = fields.into_iter().chain(te);
        let head: Vec<u8> = head.flat_map(|(name, value)| field_line(name, value)).collect();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        client.write_all(&[&preface[..], &frame(1, 5, &head)].concat()).expect("the proxy reads");
        // The kind of the frame that ends the stream: DATA or HEADERS.
        let (last, is_of_stream_1) = loop {
            let mut header = [0; 9];
            client.read_exact(&mut header).expect("a frame");
            let [_, _, len, kind, flags, stream @ ..] = header;
            client.read_exact(&mut vec![0; usize::from(len)]).expect("its payload");
            if kind <= 1 && flags & 1 == 1 {
                break (kind, stream == [0, 0, 0, 1]);
            }
        };
        assert_eq!((last == 1, is_of_stream_1), (takes_trailers, true));
    }
}
