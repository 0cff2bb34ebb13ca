//! `streaming`: responses larger than memory.

use std::io::{Read, Write};

use crate::client::{PATIENCE, again, ask, connect, field, read_until, start};

const GET_EVENTS: &[u8] = b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_large_body_arrives_whole_while_memory_stays_small() {
    let server = start("streaming");
    let mut client = connect(&server);
    const COUNT: usize = 200 << 20;
    write!(client, "GET /big?{COUNT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("the server reads");
    let head = read_until(&mut client, |got| got.windows(4).any(|window| window == b"\r\n\r\n"));
    let at =
        head.windows(4).position(|window| window == b"\r\n\r\n").expect("the end of the head") + 4;
    let mut count = head.len() - at;
    let mut chunk = vec![0; 256 << 10];
    loop {
        match again(|| client.read(&mut chunk)).expect("the server writes") {
            0 => break,
            read => count += read,
        }
    }
    assert_eq!(count, COUNT);
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    if let Some(kib) = peak.and_then(|kib| kib.parse::<usize>().ok()) {
        assert!(kib < 64 << 10, "{kib} KiB for a body of 200 MiB");
    }
}

#[test]
fn a_client_that_stops_reading_delays_no_other() {
    let server = start("streaming");
    let mut stuck = connect(&server);
    stuck.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").expect("the server reads");
    let _begun = read_until(&mut stuck, |got| !got.is_empty());
    let (_, body) = ask(&server, "GET /big?100", "", "");
    assert_eq!(body.len(), 100);
}

#[test]
fn events_arrive_one_by_one_until_the_server_drains() {
    let server = start("streaming");
    let mut client = connect(&server);
    client.write_all(GET_EVENTS).expect("the server reads");
    let got = read_until(&mut client, |got| got.windows(5).any(|window| window == b"id: 1"));
    let text = String::from_utf8_lossy(&got);
    assert_eq!(field(&text, "Content-Type"), Some("text/event-stream"));
    assert!(text.contains("id: 0\ndata: "), "{text}");
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success());
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("the server closes");
    assert!(rest.ends_with(b"0\r\n\r\n"), "the last chunk: {}", rest.escape_ascii());
}

#[test]
fn wrong_paths_methods_and_queries_are_refused() {
    let server = start("streaming");
    for (start, status) in
        [("GET /", "404"), ("POST /big", "405"), ("GET /big?x", "400"), ("HEAD /events", "200")]
    {
        let (head, _) = ask(&server, start, "", "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {head}");
    }
}
