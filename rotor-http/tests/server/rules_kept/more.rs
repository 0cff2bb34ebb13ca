//! Rules that need more than one input and its answers.

use rotor_http::server::ServerConfig;

use crate::probe::{get, probe, request};
use crate::rules::{fields, start};
use crate::wire::{Answer, answers, transcript};

#[test]
fn rule_44_http_1_0_requests_get_1_1_responses_without_1_1_features() {
    let mut driver = probe(ServerConfig::new());
    driver.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let kept = answers(&driver.take_received());
    assert_eq!(kept[0].field("Connection"), Some("keep-alive"));
    assert_eq!(kept[0].field("Transfer-Encoding"), None);
    for input in [
        &b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"[..],
        b"hi",
        b"GET /hints HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ] {
        driver.send(input);
    }
    let bytes = driver.take_received();
    assert!(!bytes.windows(10).any(|window| window == b"HTTP/1.1 1"), "{}", bytes.escape_ascii());
    let answers = answers(&bytes);
    assert!(
        answers.iter().all(|answer| answer.field("Transfer-Encoding").is_none()),
        "{answers:?}"
    );
    assert_eq!(answers.iter().map(Answer::closes).collect::<Vec<_>>(), [false, false, true]);
    assert!(driver.is_ended());
}

#[test]
fn rule_47_continue_is_sent_only_when_the_handler_wants_the_body() {
    let expecting = |path: &str| {
        request(&format!("POST {path}"), "Expect: 100-continue\r\nContent-Length: 2\r\n", "")
    };
    let mut driver = probe(ServerConfig::new());
    driver.send(&expecting("/"));
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(b"hi");
    assert_eq!(transcript(&driver.take_received()), "200 POST / hi");
    // The body has begun to arrive, so no 100 is needed.
    driver.send(&[&expecting("/")[..], b"h"].concat());
    assert_eq!(driver.take_received(), b"");
    driver.send(b"i");
    assert_eq!(transcript(&driver.take_received()), "200 POST / hi");
    // The body is not wanted: the final status, and the connection closes, since the body may come
    // or not.
    driver.send(&expecting("/ignore"));
    let answers = answers(&driver.take_received());
    assert_eq!((answers.len(), answers[0].status, answers[0].closes()), (1, 200, true));
    driver.send(b"hi");
    driver.send(&get("/b"));
    assert_eq!(driver.take_received(), b"");
}

#[test]
fn rule_49_head_has_the_fields_of_get() {
    let mut driver = probe(ServerConfig::new());
    for path in ["/", "/chunked"] {
        driver.send(&get(path));
        let got = answers(&driver.take_received());
        driver.send(&start(&format!("HEAD {path} HTTP/1.1")));
        let bytes = driver.take_received();
        let head = answers(&bytes);
        assert!(bytes.ends_with(b"\r\n\r\n"), "no body: {}", bytes.escape_ascii());
        let names = |answer: &Answer| {
            let fields = answer.fields.iter().map(|(name, _)| name.clone());
            fields.filter(|name| name != "X-Sum").collect::<Vec<_>>()
        };
        assert_eq!(names(&got[0]), names(&head[0]), "{path}");
    }
    // A refusal has no body either if the method is known to be HEAD.
    driver.send(b"HEAD / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n");
    let bytes = driver.take_received();
    assert!(
        bytes.starts_with(b"HTTP/1.1 417 ") && bytes.ends_with(b"\r\n\r\n"),
        "{}",
        bytes.escape_ascii()
    );
}

#[test]
fn rule_51_every_response_has_a_date_and_a_content_type() {
    for input in
        [get("/"), get("/chunked"), get("/status/204"), get("/status/304"), fields("A : b")]
    {
        let mut driver = probe(ServerConfig::new());
        driver.send(&input);
        let answers = answers(&driver.take_received());
        assert_eq!(answers[0].field("Date"), Some("Thu, 01 Jan 1970 00:00:01 GMT"), "{answers:?}");
        assert!(answers[0].field("Content-Type").is_some());
    }
}

#[test]
fn rule_49_responses_without_a_body_announce_none() {
    for (path, length) in [
        ("/status/204", None),
        ("/status/304", None),
        ("/length-304", Some("1")),
        ("/status/205", Some("0")),
    ] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&get(path));
        let answers = answers(&driver.take_received());
        let found = (answers[0].field("Content-Length"), answers[0].field("Transfer-Encoding"));
        assert_eq!(found, (length, None), "{path}");
    }
}

#[test]
fn rule_51_a_405_lists_the_allowed_methods() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&start("CONNECT a:1 HTTP/1.1"));
    assert!(answers(&driver.take_received())[0].field("Allow").is_some());
}
