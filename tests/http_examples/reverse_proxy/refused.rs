//! An upstream of HTTP/2 that ends its connections: the requests that it has not processed are made
//! again, with their bodies, as far as the proxy has kept them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::framing::{frame, head_frame, read_request};
use super::{proxy_to_url, upstream};
use crate::client::{PATIENCE, ask, connect, read_until};

/// Reads DATA frames until so many bytes of the body have arrived, or all of it.
fn read_body(client: &mut TcpStream, bytes_max: usize) -> Vec<u8> {
    let (mut body, mut header) = (Vec::new(), [0; 9]);
    while body.len() < bytes_max {
        client.read_exact(&mut header).expect("a frame");
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; len as usize];
        client.read_exact(&mut payload).expect("its payload");
        if header[3] == 0 {
            body.extend_from_slice(&payload);
            // END_STREAM
            if header[4] & 1 == 1 {
                break;
            }
        }
    }
    body
}

/// GOAWAY that names the last stream that was, or will be, processed.
fn go_away(last: u8) -> Vec<u8> {
    vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0]
}

/// An upstream that says on its first connection, after this many bytes of a request's body, that
/// it has processed requests up to the stream `last`, and takes the rest of the body only if this
/// is one of them. It sends the bodies that it has taken to the channel.
fn going_away(last: u8, bytes_max: usize) -> (SocketAddr, Receiver<Vec<u8>>) {
    let (bodies, taken): (Sender<Vec<u8>>, _) = channel();
    let (is_first, bodies) = (AtomicBool::new(true), Mutex::new(bodies));
    let (address, _heads) = upstream(move |client, _| {
        read_request(client);
        let mut body = Vec::new();
        if is_first.swap(false, Ordering::Relaxed) {
            body = read_body(client, bytes_max);
            client.write_all(&go_away(last)).expect("the proxy reads");
            if last == 0 {
                while matches!(client.read(&mut [0; 1_024]), Ok(1..)) {}
                return;
            }
        }
        body.extend(read_body(client, usize::MAX));
        let answer = [head_frame("200"), frame(0, 1, b"hi")].concat();
        client.write_all(&answer).expect("the proxy reads");
        bodies.lock().expect("no panic").send(body).expect("the test waits");
        while matches!(client.read(&mut [0; 1_024]), Ok(1..)) {}
    });
    (address, taken)
}

fn body(len: usize) -> String {
    (0..len).map(|at| char::from(b'a' + (at % 23) as u8)).collect()
}

#[test]
fn a_body_that_was_not_processed_is_sent_again() {
    for (len, bytes_max) in [(5, 5), (60_000, 1), (60_000, 60_000)] {
        let (address, bodies) = going_away(0, bytes_max);
        let proxy = proxy_to_url(&format!("h2c://{address}/"));
        let (head, answer) = ask(&proxy, "POST /", "", &body(len));
        assert!(head.starts_with("HTTP/1.1 200 ") && answer.contains("hi"), "{len}: {head}");
        let taken = bodies.recv_timeout(PATIENCE).expect("taken");
        assert!(taken == body(len).as_bytes(), "{} bytes of {len}", taken.len());
    }
}

#[test]
fn the_rest_of_a_body_follows_what_is_sent_again() {
    let (address, bodies) = going_away(0, 5);
    let proxy = proxy_to_url(&format!("h2c://{address}/"));
    let mut client = connect(&proxy);
    let head = "Host: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
    write!(client, "POST / HTTP/1.1\r\n{head}5\r\nhello\r\n").expect("the proxy reads");
    // The end is sent when the second connection has got the beginning, or before.
    write!(client, "6\r\n world\r\n0\r\n\r\n").expect("the proxy reads");
    let answer = read_until(&mut client, |got| got.ends_with(b"0\r\n\r\n"));
    assert!(answer.ends_with(b"\r\n2\r\nhi\r\n0\r\n\r\n"), "{}", answer.escape_ascii());
    assert_eq!(bodies.recv_timeout(PATIENCE).expect("taken"), b"hello world");
}

#[test]
fn a_long_body_that_was_not_processed_is_503() {
    // More than is kept, and the window of the stream has no room for the rest.
    let (address, bodies) = going_away(0, 65_535);
    let proxy = proxy_to_url(&format!("h2c://{address}/"));
    let (head, _) = ask(&proxy, "POST /", "", &body(100_000));
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(bodies.try_recv().is_err(), "there was no second attempt");
}

/// RFC 9113 §6.8: streams up to the last one that is named are still processed.
#[test]
fn a_body_goes_on_if_the_going_upstream_processes_its_request() {
    let (address, bodies) = going_away(1, 1);
    let proxy = proxy_to_url(&format!("h2c://{address}/"));
    let (head, answer) = ask(&proxy, "POST /", "", &body(60_000));
    assert!(head.starts_with("HTTP/1.1 200 ") && answer.contains("hi"), "{head}");
    assert!(bodies.recv_timeout(PATIENCE).expect("taken") == body(60_000).as_bytes());
}

/// Some servers end the connection for such a head, with the requests of all other clients.
#[test]
fn a_head_larger_than_the_upstream_accepts_is_431_and_is_not_sent() {
    let (address, connections) = upstream(|client, _| {
        read_request(client);
        // SETTINGS_MAX_HEADER_LIST_SIZE: 1,000 bytes.
        client.write_all(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 6, 0, 0, 3, 232]).expect("it reads");
        for stream in [1, 3] {
            let [mut head, mut data] = [head_frame("200"), frame(0, 1, b"hi")];
            (head[8], data[8]) = (stream, stream);
            client.write_all(&[head, data].concat()).expect("the proxy reads");
            let mut header = [0; 9];
            // Up to the next HEADERS, which the second time never come.
            while header[3] != 1 && client.read_exact(&mut header).is_ok() {
                client.read_exact(&mut vec![0; header[2].into()]).expect("a short payload");
            }
        }
    });
    let proxy = proxy_to_url(&format!("h2c://{address}/"));
    let large = format!("X: {}\r\n", "x".repeat(1_000));
    for (fields, status) in [("", 200), (&*large, 431), ("", 200)] {
        let (head, _) = ask(&proxy, "GET /", fields, "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    assert_eq!(connections.try_iter().count(), 1);
}
