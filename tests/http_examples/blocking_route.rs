//! `blocking_route`: a blocking request does not delay others.

use std::fs;
use std::io::Write;
use std::process::Command;

use rotor_test_kit::Directory;

use crate::client::{ask, command, connect, read_until, start_command};

#[test]
fn other_requests_are_answered_while_one_waits_for_a_file() {
    let directory = Directory::create();
    let pipe = directory.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("the system has mkfifo");
    assert!(made.success());
    let mut server = command("blocking_route");
    server.arg(&pipe);
    let server = start_command(server);

    let mut waits = connect(&server);
    write!(waits, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n").expect("the server reads");
    // The counter shows when the request for the file has started. That request then waits for a
    // writer, while these do not.
    let mut asked = 0;
    loop {
        asked += 1;
        let (head, body) = ask(&server, "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        if body.trim() != asked.to_string() {
            break;
        }
    }
    fs::write(&pipe, "hello").expect("somebody reads");
    let answer = read_until(&mut waits, |got| got.ends_with(b"hello"));
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let (head, _) = ask(&server, "GET /nothing", "", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

#[test]
fn a_missing_file_is_not_found() {
    let mut server = command("blocking_route");
    server.arg("/nowhere/at/all");
    let server = start_command(server);
    for _ in 0..3 {
        let (head, body) = ask(&server, "GET /file", "", "");
        assert!(head.starts_with("HTTP/1.1 404 ") && body == "it cannot be read\n", "{head}");
    }
}
