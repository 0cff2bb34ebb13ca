//! `rest_service`: JSON over SQLite.

use rotor_bench::server::Server;
use rotor_test_kit::Directory;
use serde_json::{Value, json};

use crate::client::{ask, command, exchange, field, start_command};

/// The address is the last argument, so the directory of the file is the working directory.
fn start_in(directory: &Directory) -> Server {
    let mut command = command("rest_service");
    command.current_dir(directory);
    start_command(command)
}

/// Sends a request. Returns the status, the JSON value (or null) and the head of the response.
fn send(server: &Server, start: &str, body: &str) -> (String, Value, String) {
    let (head, body) = ask(server, start, "Content-Type: application/json\r\n", body);
    let value = match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")),
    };
    (head[9..12].to_owned(), value, head)
}

#[test]
fn notes_are_stored_and_survive_a_restart() {
    let directory = Directory::create();
    let server = start_in(&directory);
    assert_eq!(send(&server, "GET /notes", "").1, json!([]));
    let (status, note, head) = send(&server, "POST /notes", r#"{"text": "water \"the\" plants"}"#);
    assert_eq!((status.as_str(), field(&head, "Location")), ("201", Some("/notes/1")));
    assert_eq!(note, json!({ "id": 1, "text": "water \"the\" plants" }));
    send(&server, "POST /notes", r#"{"text": "sleep"}"#);
    assert_eq!(send(&server, "GET /notes/2", "").1["text"], "sleep");
    assert_eq!(send(&server, "GET /notes?limit=1", "").1.as_array().map(Vec::len), Some(1));
    assert_eq!(send(&server, "DELETE /notes/1", "").0, "204");
    assert_eq!(send(&server, "DELETE /notes/1", "").0, "404");
    drop(server);
    let server = start_in(&directory);
    assert_eq!(send(&server, "GET /notes", "").1, json!([{ "id": 2, "text": "sleep" }]));
}

#[test]
fn delay_and_file_routes_work_beside_the_notes() {
    let directory = Directory::create();
    directory.file("page.html", "<p>a page\n");
    let server = start_in(&directory);
    let (head, body) = ask(&server, "GET /static/page.html", "", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && body == "<p>a page\n", "{head}");
    for start in ["GET /static/none", "GET /static/../notes.sqlite", "GET /page.html"] {
        assert_eq!(&ask(&server, start, "", "").0[9..12], "404", "{start}");
    }
    let (head, body) = ask(&server, "GET /later", "", "");
    assert_eq!((&head[9..12], body.as_str()), ("200", "later\n"));
}

#[test]
fn every_refusal_has_its_status_and_a_json_reason() {
    let directory = Directory::create();
    let server = start_in(&directory);
    let deep = "[".repeat(1_000);
    let long = "x".repeat(20_000);
    for (start, body, status) in [
        ("POST /notes", "{", "400"),
        ("POST /notes", deep.as_str(), "422"),
        ("POST /notes", "{}", "422"),
        ("POST /notes", r#"{"text": 7}"#, "422"),
        ("POST /notes", r#"{"text": "a", "more": 1}"#, "422"),
        ("POST /notes", long.as_str(), "413"),
        ("GET /notes?limit=x", "", "400"),
        ("GET /notes?limit=%ff", "", "400"),
        ("GET /notes/x", "", "404"),
        ("GET /notes/7", "", "404"),
        ("GET /", "", "404"),
        ("PUT /notes", "", "405"),
    ] {
        let (found, error, head) = send(&server, start, body);
        assert_eq!(found, status, "{start}");
        assert!(error["error"].is_string(), "{start}: {error}");
        let allow = (status == "405").then_some("GET, HEAD, OPTIONS, POST");
        assert_eq!(field(&head, "Allow"), allow, "{start}");
    }
    let (head, why) =
        ask(&server, "POST /notes", "Content-Type: text/plain\r\n", r#"{"text": "a"}"#);
    assert!(head.starts_with("HTTP/1.1 415 ") && why.starts_with("{\"error\":"), "{head}");
    let (head, _) = ask(&server, "OPTIONS /notes/1", "", "");
    assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
    assert_eq!(field(&head, "Allow"), Some("DELETE, GET, HEAD, OPTIONS"));
    // Larger than the limit of the connection, so it is rejected before the handler. The body is
    // only announced: a client that goes on sending would be reset.
    let announced = "POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: 2097152\r\n\r\n\"x";
    let refused = exchange(&server, announced);
    assert_eq!(&refused[9..12], "413");
    assert!(refused.ends_with(r#"{"error":"the body is larger than its limit"}"#), "{refused}");
}
