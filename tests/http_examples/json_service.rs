//! `json_service`: its responses, what it requests from its upstream and how often, and that each
//! of its errors is JSON.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rotor_bench::server::Server;
use serde_json::{Value, json};

use crate::client::{
    PATIENCE, again, ask, command, connect, exchange, field, read_until, start_command,
};
use crate::upstream::{nobody, says, upstream};

const SUNNY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"sky\":\"blue\"}";

fn service_of(upstream: SocketAddr) -> Server {
    let mut service = command("json_service");
    service.arg(format!("http://{upstream}/now"));
    start_command(service)
}

/// The status, the JSON value and the head of a response.
fn json_of(server: &Server, start: &str, body: &str) -> (u16, Value, String) {
    let (head, body) = ask(server, start, "", body);
    assert_eq!(field(&head, "Content-Type"), Some("application/json"), "{start}: {head}");
    let status = head[9..12].parse().expect("a status");
    (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{start}: {body}")), head)
}

fn error(status: u16, words: &str) -> Value {
    json!({ "error": words, "status": status })
}

fn send_get(client: &mut TcpStream, target: &str) {
    write!(client, "GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").expect("the service reads");
}

/// An upstream that answers one request for each message on the channel.
fn patient_upstream() -> (SocketAddr, Receiver<String>, Sender<()>) {
    let (go, gone) = channel();
    let gone = Mutex::new(gone);
    let (address, heads) = upstream(move |client, _| {
        if gone.lock().expect("nobody panicked").recv_timeout(PATIENCE).is_ok() {
            let _service_is_gone = client.write_all(SUNNY);
        }
    });
    (address, heads, go)
}

#[test]
fn equal_queries_share_one_request_and_its_answer_is_cached() {
    let (address, heads, go) = patient_upstream();
    let service = service_of(address);
    let targets = ["/weather?city=S%C3%A3o+Paulo", "/weather?city=S%c3%a3o%20Paulo"];
    let mut clients: Vec<TcpStream> = (0..10).map(|_| connect(&service)).collect();
    for (client, target) in clients.iter_mut().zip(targets.into_iter().cycle()) {
        send_get(client, target);
    }
    // Earlier requests have been read when a later one is answered.
    assert_eq!(json_of(&service, "GET /notes/1", "").0, 404);
    let head = heads.recv_timeout(PATIENCE).expect("it asks");
    assert!(head.starts_with("GET /now?city=S%C3%A3o%20Paulo HTTP/1.1\r\n"), "{head}");
    assert_eq!(field(&head, "Host"), Some(&*address.to_string()));
    go.send(()).expect("the upstream waits");
    let page = json!({ "city": "S\u{e3}o Paulo", "weather": { "sky": "blue" } });
    for client in &mut clients {
        let got = read_until(client, |got| got.ends_with(b"}}"));
        let text = String::from_utf8(got).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), page);
    }
    assert_eq!(json_of(&service, &format!("GET {}", targets[0]), "").1, page);
    let (head, body) = ask(&service, &format!("HEAD {}", targets[0]), "", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    assert!(heads.try_recv().is_err(), "asked once");

    go.send(()).expect("the upstream waits");
    assert_eq!(json_of(&service, "GET /weather?city=Ulm", "").1["city"], "Ulm");
    assert!(heads.try_recv().expect("another city").starts_with("GET /now?city=Ulm "));
}

#[test]
fn an_upstream_url_keeps_its_query() {
    let (address, heads) = upstream(says(SUNNY));
    let mut service = command("json_service");
    service.arg(format!("http://{address}/now?key=k"));
    let service = start_command(service);
    assert_eq!(json_of(&service, "GET /weather?city=Ulm", "").0, 200);
    let head = heads.recv_timeout(PATIENCE).expect("it asks");
    assert!(head.starts_with("GET /now?key=k&city=Ulm HTTP/1.1\r\n"), "{head}");
}

#[test]
fn a_failed_upstream_is_502_and_a_late_one_504() {
    let bad_gateway = error(502, "Bad Gateway");
    let get = "GET /weather?city=Ulm";
    let (status, page, _) = json_of(&service_of(nobody()), get, "");
    assert_eq!((status, &page), (502, &bad_gateway));
    let answers: [&'static [u8]; 4] = [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{\"a\":",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 16385\r\n\r\n",
    ];
    for answer in answers {
        let (address, heads) = upstream(says(answer));
        let service = service_of(address);
        for _ in 0..2 {
            let (status, page, _) = json_of(&service, get, "");
            assert_eq!((status, &page), (502, &bad_gateway), "{}", answer.escape_ascii());
        }
        assert!(heads.try_iter().count() >= 2, "an error is not kept");
    }
    // The head and a part of the body arrive. The timeout of two seconds is for the whole response.
    let (address, _heads) =
        upstream(says(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"sky\":"));
    let (status, page, _) = json_of(&service_of(address), get, "");
    assert_eq!((status, page), (504, error(504, "Gateway Timeout")));
}

#[test]
fn notes_are_stored_and_every_error_is_json() {
    let service = service_of(nobody());
    let longest = format!("\"{}\"", "x".repeat((4 << 10) - 2));
    let (status, page, head) = json_of(&service, "POST /notes", &longest);
    assert_eq!(
        (status, page, field(&head, "Location")),
        (201, json!({ "id": 1 }), Some("/notes/1"))
    );
    assert_eq!(json_of(&service, "GET /notes/1", "").1, json!("x".repeat((4 << 10) - 2)));
    assert_eq!(json_of(&service, "POST /notes", "{}").1, json!({ "id": 2 }));
    assert_eq!(json_of(&service, "GET /notes/2", "").1, json!({}));

    let too_long = format!("{longest} ");
    for (start, body, status, words) in [
        ("GET /", "", 404, "Not Found"),
        ("GET /notes/0", "", 404, "Not Found"),
        ("GET /notes/3", "", 404, "Not Found"),
        ("GET /notes/x", "", 404, "Not Found"),
        ("PUT /weather", "", 405, "Method Not Allowed"),
        ("GET /notes", "", 405, "Method Not Allowed"),
        ("DELETE /notes/1", "", 405, "Method Not Allowed"),
        ("BREW /notes", "", 501, "Not Implemented"),
        ("POST /notes", "{", 400, "Bad Request"),
        ("POST /notes", &too_long, 413, "Content Too Large"),
        ("GET /weather", "", 400, "Bad Request"),
        ("GET /weather?city=", "", 400, "Bad Request"),
        ("GET /weather?city=+", "", 400, "Bad Request"),
        ("GET /weather?town=Ulm", "", 400, "Bad Request"),
        ("GET /weather?city=Ulm&city=Bonn", "", 400, "Bad Request"),
        ("GET /weather?city=%", "", 400, "Bad Request"),
        ("GET /weather?city=%4", "", 400, "Bad Request"),
        ("GET /weather?city=%+4", "", 400, "Bad Request"),
        ("GET /weather?city=%ff", "", 400, "Bad Request"),
        ("GET /weather?city=%00", "", 400, "Bad Request"),
    ] {
        let (got, page, head) = json_of(&service, start, body);
        assert_eq!((got, page), (status, error(status, words)), "{start}");
        let allow = if start == "GET /notes" { "POST" } else { "GET, HEAD" };
        assert_eq!(field(&head, "Allow"), (status == 405).then_some(allow), "{start}");
    }
    let answer = exchange(&service, "nonsense\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\"status\":400}"), "{answer}");
    assert_eq!(json_of(&service, "GET /notes/3", "").0, 404, "nothing was added");
}

#[test]
fn requests_in_flight_are_answered_in_a_drain() {
    let (address, heads, go) = patient_upstream();
    let service = service_of(address);
    let mut idle = connect(&service);
    send_get(&mut idle, "/notes/1");
    read_until(&mut idle, |got| got.ends_with(b"}"));
    let mut client = connect(&service);
    send_get(&mut client, "/weather?city=Ulm");
    heads.recv_timeout(PATIENCE).expect("it asks");
    let ended = thread::scope(|threads| {
        let ending = threads.spawn(|| service.terminate(PATIENCE));
        assert_eq!(again(|| idle.read(&mut [0])).expect("closed"), 0, "the drain has begun");
        go.send(()).expect("the upstream waits");
        ending.join().expect("no panic")
    });
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the service closes");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("}}"), "{answer}");
    assert_eq!(field(&answer, "Connection"), Some("close"));
    assert!(ended.expect("it ends").success());
}
