//! `axum_on_rotor`: routes and middleware that were not written for rotor.

use std::io::Write;

use rotor_bench::server::Server;
use serde_json::{Value, json};

use crate::client::{ask, command, connect, field, read_until, start, start_command};

fn start_with_files() -> Server {
    // The server's address is appended as the last argument, so the directory is given as the
    // working directory.
    let mut command = command("axum_on_rotor");
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/axum_on_rotor"));
    start_command(command)
}

#[test]
fn a_list_is_stored_and_the_extractors_of_axum_reject_bad_input() {
    let server = start("axum_on_rotor");
    let send = |start: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (head, body) = ask(&server, start, "Content-Type: application/json\r\n", &body);
        (head[9..12].to_owned(), serde_json::from_str::<Value>(&body).unwrap_or(Value::Null))
    };
    let nothing = &Value::Null;
    assert_eq!(send("GET /todos", nothing).1, json!([]));
    let (status, todo) = send("POST /todos", &json!({ "text": "water the plants" }));
    let expected = json!({ "id": 1, "text": "water the plants", "completed": false });
    assert_eq!((status.as_str(), todo), ("201", expected));
    assert_eq!(send("PATCH /todos/1", &json!({ "completed": true })).1["completed"], true);
    send("POST /todos", &json!({ "text": "sleep" }));
    let window = send("GET /todos?offset=1&limit=5", nothing).1;
    assert_eq!((window.as_array().map(Vec::len), &window[0]["text"]), (Some(1), &json!("sleep")));
    assert_eq!(send("DELETE /todos/1", nothing).0, "204");
    for (start, body, status) in [
        ("DELETE /todos/1", Value::Null, "404"),
        ("PATCH /todos/x", json!({}), "400"),
        ("POST /todos", json!({ "title": "of another service" }), "422"),
        ("POST /todos", json!("x".repeat(3 << 20)), "413"),
        ("PUT /todos", json!({}), "405"),
        ("GET /nothing", Value::Null, "404"),
    ] {
        assert_eq!(send(start, &body).0, status, "{start}");
    }
    let (head, body) = ask(&server, "GET /", "", "");
    assert_eq!((&head[9..12], body.as_str()), ("200", "Hello, 127.0.0.1!\n"));
}

#[test]
fn texts_are_bounded_individually_and_in_total() {
    let server = start("axum_on_rotor");
    let mut client = connect(&server);
    let mut send = |start: &str, text: &str, times: usize| {
        let body = json!({ "text": text }).to_string();
        let fields = "Host: a\r\nContent-Type: application/json";
        let request =
            format!("{start} HTTP/1.1\r\n{fields}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        client.write_all(request.repeat(times).as_bytes()).expect("it reads");
        let heads = |got: &[u8]| got.windows(9).filter(|octets| octets == b"HTTP/1.1 ").count();
        // A 413 has no body. The body of another response may arrive in a later read.
        let is_whole = |got: &[u8]| got.ends_with(b"}") || got.ends_with(b"\r\n\r\n");
        let got = read_until(&mut client, |got| heads(got) == times && is_whole(got));
        let at = got.windows(9).rposition(|octets| octets == b"HTTP/1.1 ").expect("an answer");
        String::from_utf8_lossy(&got[at + 9..at + 12]).into_owned()
    };
    let [longest, longer] = [1_000, 1_001].map(|length| "x".repeat(length));
    assert_eq!(send("POST /todos", "short", 1), "201");
    assert_eq!(send("PATCH /todos/1", &longer, 1), "413");
    assert_eq!(send("POST /todos", &longer, 1), "413");
    let room = (4 << 20) / longest.len();
    for _ in 0..room / 65 {
        assert_eq!(send("POST /todos", &longest, 65), "201");
    }
    assert_eq!(send("POST /todos", &longest, room % 65 + 1), "507");
    assert_eq!(send("PATCH /todos/1", &longest, 1), "507");
    assert_eq!(send("PATCH /todos/2", "short", 1), "200");
    assert_eq!(send("PATCH /todos/1", &longest, 1), "200");
}

#[test]
fn events_arrive_as_they_happen() {
    let server = start("axum_on_rotor");
    let mut client = connect(&server);
    client.write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    let got = read_until(&mut client, |got| got.windows(7).any(|window| window == b"data: 3"));
    let text = String::from_utf8(got).expect("text");
    assert!(text.contains("text/event-stream") && text.contains("data: 0\n\n"), "{text}");
}

#[test]
fn files_and_compression_are_those_of_tower_http() {
    let server = start_with_files();
    let source = include_str!("../../examples/axum_on_rotor/routes.rs");
    let (head, body) = ask(&server, "GET /files/routes.rs", "", "");
    assert_eq!((&head[9..12], body.as_str()), ("200", source));
    let length = source.len().to_string();
    assert_eq!(field(&head, "Content-Length"), Some(length.as_str()));
    let (head, body) = ask(&server, "GET /files/routes.rs", "Range: bytes=0-2\r\n", "");
    assert_eq!((&head[9..12], body.as_str()), ("206", "//!"));
    let (head, body) = ask(&server, "HEAD /files/routes.rs", "", "");
    assert_eq!((field(&head, "Content-Length"), body.as_str()), (Some(length.as_str()), ""));
    let (head, body) = ask(&server, "GET /files/routes.rs", "Accept-Encoding: gzip\r\n", "");
    assert_eq!(field(&head, "Content-Encoding"), Some("gzip"), "{head}");
    assert!(body.len() < source.len());
    let (head, _) = ask(&server, "GET /files/../main.rs", "", "");
    assert_eq!(&head[9..12], "404");
}

#[test]
fn an_upload_is_counted_as_it_arrives() {
    let server = start("axum_on_rotor");
    let (head, body) = ask(&server, "POST /count", "", &"x".repeat(5 << 20));
    assert_eq!((&head[9..12], body.as_str()), ("200", "5242880\n"));
}
