//! `upgrade_echo`: another protocol on the same connection.

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::client::{ask, connect, read_until, start};

#[test]
fn every_byte_after_the_upgrade_is_echoed() {
    let server = start("upgrade_echo");
    let mut client = connect(&server);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst ";
    client.write_all(request.as_bytes()).expect("the server reads");
    let got = read_until(&mut client, |got| got.ends_with(b"first "));
    let text = String::from_utf8_lossy(&got);
    assert!(
        text.starts_with("HTTP/1.1 101 ") && text.contains("\r\nConnection: upgrade\r\n"),
        "{text}"
    );
    client.write_all(b"second").expect("the server reads");
    client.shutdown(Shutdown::Write).expect("an open socket");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("the server closes");
    assert_eq!(rest, b"second");
}

#[test]
fn a_request_without_the_upgrade_is_told_the_protocol() {
    let server = start("upgrade_echo");
    for fields in ["", "Upgrade: echo\r\n", "Connection: upgrade\r\nUpgrade: other\r\n"] {
        let (head, _) = ask(&server, "GET /", fields, "");
        assert!(
            head.starts_with("HTTP/1.1 426 ") && head.contains("\r\nUpgrade: echo\r\n"),
            "{head}"
        );
    }
}
