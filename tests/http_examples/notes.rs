//! `notes`: JSON from functions behind routes.

use rotor_bench::server::Server;

use crate::client::{ask, field, start};

/// Sends a request. Returns the status and the body.
fn send(server: &Server, start: &str, body: &str) -> (String, String) {
    let (head, body) = ask(server, start, "Content-Type: application/json\r\n", body);
    let is_json = field(&head, "Content-Type") == Some("application/json");
    assert_eq!(is_json, !body.is_empty(), "{start}: {head}");
    (head[9..12].to_owned(), body)
}

#[test]
fn notes_are_added_listed_and_removed_and_invalid_ones_refused() {
    let server = start("notes");
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(5_000));
    let deep = "[".repeat(1_000);
    for (start, body, status, expected) in [
        ("GET /notes", "", "200", "[]"),
        ("POST /notes", r#"{"text": "water \"the\" plants"}"#, "201", "1"),
        ("POST /notes", r#"{"text": "sleep"}"#, "201", "2"),
        ("GET /notes/2", "", "200", r#"{"text":"sleep"}"#),
        ("GET /notes?limit=1", "", "200", r#"[[1,{"text":"water \"the\" plants"}]]"#),
        ("DELETE /notes/1", "", "200", r#"{"text":"water \"the\" plants"}"#),
        ("DELETE /notes/1", "", "404", r#"{"error":"not found"}"#),
        ("GET /notes?limit=x", "", "400", r#"{"error":"\"limit\" is malformed"}"#),
        ("GET /notes/x", "", "404", r#"{"error":"not found"}"#),
        ("PUT /notes", "", "405", r#"{"error":"method not allowed"}"#),
        ("POST /notes", "{", "400", ""),
        ("POST /notes", &deep, "422", ""),
        ("POST /notes", r#"{"text": 7}"#, "422", ""),
        ("POST /notes", &long, "413", ""),
        ("GET /notes", "", "200", r#"[[2,{"text":"sleep"}]]"#),
        // The number of a deleted note is not used again.
        ("DELETE /notes/2", "", "200", r#"{"text":"sleep"}"#),
        ("POST /notes", r#"{"text": "eat"}"#, "201", "3"),
    ] {
        let (found, said) = send(&server, start, body);
        assert_eq!(found, status, "{start} {body:.50}: {said}");
        match expected {
            "" => assert!(said.starts_with(r#"{"error":""#), "{start}: {said}"),
            expected => assert_eq!(said, expected, "{start}"),
        }
    }
}

#[test]
fn the_length_of_a_list_is_bounded_whatever_the_query_asks() {
    let server = start("notes");
    for _ in 0..101 {
        assert_eq!(send(&server, "POST /notes", r#"{"text": "x"}"#).0, "201");
    }
    for (limit, count) in [("0", 0), ("100", 100), ("101", 100), ("18446744073709551615", 100)] {
        let (status, said) = send(&server, &format!("GET /notes?limit={limit}"), "");
        assert_eq!((&*status, said.matches("text").count()), ("200", count), "{limit}");
    }
}
