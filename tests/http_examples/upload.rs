//! `upload`: bodies of any size, a piece at a time.

use std::io::Write;

use crate::client::{ask, connect, read_until, start};

/// FNV-1a, 64 bits.
fn checksum(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn every_byte_is_counted_once_whatever_the_framing() {
    let server = start("upload");
    assert_eq!(
        ask(&server, "POST /", "", "a").1,
        format!("1 bytes, FNV-1a {:016x}\n", checksum(*b"a"))
    );
    assert_eq!(ask(&server, "POST /", "", "a").1, "1 bytes, FNV-1a af63dc4c8601ec8c\n");
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let expected =
        format!("{} bytes, FNV-1a {:016x}\n", body.len(), checksum(body.iter().copied()));
    let mut client = connect(&server);
    write!(client, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len())
        .expect("room");
    client.write_all(&body).expect("the server reads");
    read_until(&mut client, |got| got.ends_with(expected.as_bytes()));
    write!(client, "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .expect("room");
    for piece in body.chunks(9_999) {
        write!(client, "{:x};a=b\r\n", piece.len()).expect("room");
        client.write_all(piece).expect("the server reads");
        client.write_all(b"\r\n").expect("the server reads");
    }
    client.write_all(b"0\r\nX-Trailer: y\r\n\r\n").expect("the server reads");
    read_until(&mut client, |got| got.ends_with(expected.as_bytes()));
}

#[test]
fn other_methods_are_refused() {
    let server = start("upload");
    assert!(ask(&server, "GET /", "", "").0.contains("Allow: POST, PUT"));
}
