//! `todo_backend`: JSON over HTTP.

use serde_json::{Value, json};

use crate::client::{ask, field, start};

#[test]
fn a_todo_list_is_stored() {
    let server = start("todo_backend");
    let send = |start: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (head, body) = ask(&server, start, "Content-Type: application/json\r\n", &body);
        let status = head[9..12].to_owned();
        (status, serde_json::from_str::<Value>(&body).unwrap_or(Value::Null), head)
    };
    let nothing = &Value::Null;
    assert_eq!(send("GET /todos", nothing).1, json!([]));
    let (status, todo, head) = send("POST /todos", &json!({ "title": "water \"the\" plants" }));
    let url = todo["url"].as_str().expect("it has one").to_owned();
    assert!(url.starts_with("http://") && url.ends_with("/todos/1"), "{url}");
    assert_eq!((status.as_str(), field(&head, "Location")), ("201", Some(url.as_str())));
    assert_eq!(
        todo,
        json!({ "id": 1, "title": "water \"the\" plants", "completed": false, "url": url })
    );
    let ordered = send("POST /todos", &json!({ "title": "sleep", "order": 523 }));
    assert_eq!(ordered.1["order"], 523);
    assert_eq!(send("PATCH /todos/2", &json!({ "order": 95 })).1["order"], 95);
    assert_eq!(send("PATCH /todos/1", &json!({ "completed": true })).1["completed"], true);
    assert_eq!(send("GET /todos/1", nothing).1["completed"], true);
    assert_eq!(send("DELETE /todos/1", nothing).0, "204");
    assert_eq!(send("GET /todos/1", nothing).0, "404");
    let list = send("GET /todos", nothing).1;
    assert_eq!((list.as_array().map(Vec::len), &list[0]["title"]), (Some(1), &json!("sleep")));
    for (start, body, status) in [
        ("POST /todos", json!({}), "400"),
        ("POST /todos", json!({ "title": 3 }), "400"),
        ("POST /todos", json!({ "title": "x".repeat(2000) }), "400"),
        ("POST /todos", json!("x".repeat(20_000)), "413"),
        ("PATCH /todos/2", json!([]), "400"),
        ("PATCH /todos/2", json!({ "order": "first" }), "400"),
        ("PATCH /todos/9", json!({}), "404"),
        ("GET /todos/x", Value::Null, "404"),
        ("GET /", Value::Null, "404"),
        ("PUT /todos", json!({}), "405"),
    ] {
        assert_eq!(send(start, &body).0, status, "{start}");
    }
    assert_eq!(send("DELETE /todos", nothing).0, "204");
    assert_eq!(send("GET /todos", nothing).1, json!([]));
}

#[test]
fn the_total_of_titles_is_bounded_and_a_removal_makes_room() {
    let server = start("todo_backend");
    let send = |start: &str, title: &str| {
        let body = json!({ "title": title }).to_string();
        ask(&server, start, "Content-Type: application/json\r\n", &body).0[9..12].to_owned()
    };
    // The maximum length: a thousand characters of four bytes each.
    let long = "\u{1f980}".repeat(1_000);
    let room = (4 << 20) / long.len();
    for number in 0..room {
        assert_eq!(send("POST /todos", &long), "201", "{number}");
    }
    assert_eq!(send("POST /todos", &long), "503");
    assert_eq!(send("POST /todos", "short"), "201");
    let last = format!("PATCH /todos/{}", room + 1);
    assert_eq!((send(&last, &long), send(&last, "shorter")), ("503".into(), "200".into()));
    assert_eq!((send("PATCH /todos/1", "short"), send(&last, &long)), ("200".into(), "200".into()));
    assert_eq!(
        (send("POST /todos", &long), send("DELETE /todos/2", "")),
        ("503".into(), "204".into())
    );
    assert_eq!(
        (send("POST /todos", &long), send("DELETE /todos", "")),
        ("201".into(), "204".into())
    );
    assert_eq!(send("POST /todos", &long), "201");
}

#[test]
fn cross_origin_requests_are_allowed() {
    let server = start("todo_backend");
    let origin = "Origin: https://www.todobackend.com\r\n";
    for (start, fields, status) in [
        ("OPTIONS /todos/1", "Access-Control-Request-Method: PATCH\r\n", "204"),
        ("OPTIONS /todos", "", "204"),
        ("GET /todos", "", "200"),
        ("GET /todos/1", "", "404"),
        ("PUT /todos", "", "405"),
    ] {
        let (head, _) = ask(&server, start, &format!("{origin}{fields}"), "");
        assert_eq!(&head[9..12], status, "{start}");
        assert_eq!(field(&head, "Access-Control-Allow-Origin"), Some("*"), "{start}");
        let methods = field(&head, "Access-Control-Allow-Methods");
        let is_preflight = !fields.is_empty();
        assert_eq!(methods.is_some_and(|all| all.contains("PATCH")), is_preflight, "{start}");
        let allow = field(&head, "Allow").is_some_and(|all| all.contains("OPTIONS"));
        assert_eq!(allow, !is_preflight && !start.starts_with("GET"), "{start}");
    }
}
