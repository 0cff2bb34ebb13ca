//! `inspected`: the site, its metrics, and the page that shows its loop.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rotor_bench::server::{Server, find_address};

use crate::client::{PATIENCE, ask, connect, start};

/// Sends one request to the page, with the host name that a browser on this machine uses.
fn look(page: SocketAddr, start: &str, fields: &str) -> String {
    let mut client = TcpStream::connect(page).expect("the page is served");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let port = page.port();
    let head = format!("{start} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n");
    client.write_all(format!("{head}{fields}\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers");
    answer
}

/// The address of the page, as the program prints it.
fn page_of(server: &Server) -> SocketAddr {
    let line = server.next_line(PATIENCE).expect("it says where to look");
    find_address(&line).unwrap_or_else(|| panic!("{line:?}"))
}

#[test]
fn the_server_answers_and_reports_its_counters() {
    let server = start("inspected");
    assert!(ask(&server, "GET /", "", "").0.starts_with("HTTP/1.1 200 "));
    assert!(ask(&server, "GET /nothing", "", "").0.starts_with("HTTP/1.1 404 "));
    let (head, numbers) = ask(&server, "GET /metrics", "", "");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4\r\n"), "{head}");
    for line in [
        "rotor_http_server_requests_total{server=\"site\"} 3",
        "rotor_http_server_requests_open{server=\"site\"} 1",
        "rotor_http_server_responses_total{server=\"site\",class=\"4xx\"} 1",
    ] {
        assert!(numbers.lines().any(|found| found == line), "{line}:\n{numbers}");
    }
    assert!(numbers.contains("\nrotor_loop_turns_total{loop=\"main\"} "), "{numbers}");
}

#[test]
fn a_waiting_connection_is_listed_on_the_page_and_closed_from_it() {
    let server = start("inspected");
    let page = page_of(&server);
    assert!(look(page, "GET /", "").contains("<script src=\"/inspect.js\">"));
    let mut waits = connect(&server);
    waits.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    let name = waits.local_addr().expect("it is bound").to_string();
    // It is listed once its request was read.
    let mut looks =
        (0..100_000).map(|_| look(page, "GET /api/machines?loop=main&state=waits%20forever", ""));
    let found = looks.find(|found| found.contains(&name)).expect("it is shown");
    let token = found.split(r#""token":""#).nth(1).and_then(|rest| rest.split('"').next());
    let end = format!("POST /api/decide?loop=main&do=end&token={}", token.expect("a row"));
    let refused = look(page, &end, "Content-Length: 0\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 "), "a form could send that: {refused}");
    let done = look(page, &end, "Content-Length: 0\r\nX-Rotor-Inspect: 1\r\n");
    assert!(done.starts_with("HTTP/1.1 200 "), "{done}");
    let mut rest = Vec::new();
    let _reset = waits.read_to_end(&mut rest);
    assert!(rest.is_empty(), "it is ended, and not answered");
}
