//! `todo_backend`: JSON over HTTP.

use serde_json::{Value, json};

use crate::client::{ask, field, start};

#[test]
fn a_list_is_kept() {
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
    assert_eq!((status.as_str(), field(&head, "Location")), ("201", Some("/todos/1")));
    assert_eq!(
        todo,
        json!({ "id": 1, "title": "water \"the\" plants", "completed": false, "url": "/todos/1" })
    );
    send("POST /todos", &json!({ "title": "sleep" }));
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
