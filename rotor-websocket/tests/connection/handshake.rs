//! Requests that become WebSockets, and requests that are refused.

use rotor_websocket::{Origins, WebSocketConfig};

use crate::kit::{DEFLATE, KEY, TEXT, frame, open_with, request, seconds, server, shown_frames};

fn answer(config: WebSocketConfig, request: &str) -> (String, Vec<String>, u64) {
    let (mut driver, counters) = server(config);
    driver.send(request.as_bytes());
    let answer = String::from_utf8(driver.take_received()).expect("ASCII");
    (answer, driver.context().events.clone(), counters.refused())
}

#[test]
fn the_response_matches_the_rfc() {
    let (answer, events, refused) = answer(WebSocketConfig::new(), &request("/", ""));
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("\r\nUpgrade: websocket\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: upgrade\r\n"), "{answer}");
    assert!(answer.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert!(!answer.contains("Sec-WebSocket-Protocol") && !answer.contains("Extensions"));
    assert_eq!((events, refused), (vec!["opened /".to_string()], 0));
}

#[test]
fn an_invalid_request_is_refused_with_a_reason() {
    let good = request("/", "");
    let version = "Sec-WebSocket-Version: 13";
    for (request, status, refusal, field) in [
        (good.replace("websocket\r\n", "other\r\n"), "426", "NoWebSocket", "Upgrade: websocket"),
        (good.replace("Upgrade: websocket\r\n", ""), "426", "NoWebSocket", "Upgrade: websocket"),
        (good.replace("Connection: upgrade\r\n", ""), "426", "NoWebSocket", "Upgrade: websocket"),
        (good.replace("GET", "POST"), "405", "NoWebSocket", "Allow: GET"),
        (good.replace(version, "Sec-WebSocket-Version: 8"), "426", "Version", version),
        (good.replace(version, "Sec-WebSocket-Version: 013"), "426", "Version", version),
        (good.replace(version, "X: y"), "426", "Version", version),
        (good.replace(KEY, "c2hvcnQ="), "400", "Key", ""),
        (good.replace(KEY, &KEY.replace('d', "!")), "400", "Key", ""),
        (good.replace("Sec-WebSocket-Key", "X"), "400", "Key", ""),
        (request("/", &format!("Sec-WebSocket-Key: {KEY}\r\n")), "400", "Key", ""),
        (request("/", "Content-Length: 1\r\n"), "426", "NoWebSocket", "Upgrade: websocket"),
        (request("/", "Origin: https://b.example\r\n"), "403", "Origin", ""),
        (request("/", &"Origin: https://a.example\r\n".repeat(2)), "403", "Origin", ""),
    ] {
        let (answer, events, refused) = answer(WebSocketConfig::new(), &request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{answer}");
        assert!(answer.contains(&format!("\r\n{field}")), "{request}{answer}");
        assert_eq!((events, refused), (vec![format!("refused: {refusal}")], 1), "{request}");
    }
}

#[test]
fn requests_from_allowed_origins_are_accepted() {
    let from = |origin: &str| request("/", &format!("Origin: {origin}\r\n"));
    let listed = || Origins::Listed(vec!["https://b.example".to_string()]);
    let hook = || Origins::hook(|origin| origin == Some(b"null"));
    for (config, origin, status) in [
        (WebSocketConfig::new(), "https://a.example", "101"),
        (WebSocketConfig::new().origins(Origins::Any), "https://b.example", "101"),
        (WebSocketConfig::new().origins(listed()), "https://b.example", "101"),
        (WebSocketConfig::new().origins(listed()), "https://a.example", "403"),
        (WebSocketConfig::new().origins(hook()), "null", "101"),
        (WebSocketConfig::new().origins(hook()), "https://a.example", "403"),
    ] {
        let (answer, ..) = answer(config, &from(origin));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{origin}: {answer}");
    }
}

#[test]
fn the_first_matching_subprotocol_of_the_server_is_chosen() {
    let config = || WebSocketConfig::new().subprotocols(&["v2", "v1"]);
    for (fields, chosen) in [
        ("Sec-WebSocket-Protocol: v1, v2\r\n", Some("v2")),
        ("Sec-WebSocket-Protocol: v0\r\nSec-WebSocket-Protocol: v1\r\n", Some("v1")),
        ("Sec-WebSocket-Protocol: V1\r\n", None),
        ("", None),
    ] {
        let (answer, ..) = answer(config(), &request("/", fields));
        let field = answer.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Protocol: "));
        assert_eq!(field, chosen, "{fields}");
    }
}

#[test]
fn compression_is_agreed_on_if_both_sides_want_it() {
    let deflate = || WebSocketConfig::new().deflate(rotor_websocket::Deflate::new());
    let server_frame = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    for (config, fields, agreed) in [
        (deflate(), DEFLATE, Some(server_frame)),
        (deflate(), "", None),
        (WebSocketConfig::new(), DEFLATE, None),
        (deflate(), "Sec-WebSocket-Extensions: other\r\n", None),
    ] {
        let (answer, ..) = answer(config, &request("/", fields));
        let field = answer.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Extensions: "));
        assert_eq!(field, agreed, "{fields}");
    }
}

#[test]
fn a_refused_request_leaves_the_connection_usable() {
    let (mut driver, counters) = server(WebSocketConfig::new());
    driver.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(driver.take_received().starts_with(b"HTTP/1.1 426 "));
    driver.send(request("/", "").as_bytes());
    assert!(driver.take_received().starts_with(b"HTTP/1.1 101 "));
    assert_eq!((counters.refused(), counters.opened()), (1, 1));
}

#[test]
fn a_handler_may_close_at_once_and_frames_may_follow_the_request() {
    let (driver, _) = open_with(WebSocketConfig::new(), "/close+4001+bye", "");
    assert_eq!(driver.context().events, ["opened /close+4001+bye"]);
    let (mut driver, _) = server(WebSocketConfig::new());
    let with_frame = [request("/", "").into_bytes(), frame(TEXT, "early")].concat();
    driver.send(&with_frame);
    let all = driver.take_received();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    assert_eq!(shown_frames(&all[end..]), ["text early"]);
    // HTTP's deadlines no longer apply.
    driver.advance(seconds(29));
    assert!(driver.is_alive());
}
