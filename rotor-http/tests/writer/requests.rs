//! Requests: fields for one connection only, and refused calls.

use rotor_http::h1::{MessageError, Method, RequestState};

#[test]
fn an_expectation_is_sent_only_with_a_body_and_not_by_hand() {
    for (length, expects) in [(None, false), (Some(0), false), (Some(1), true)] {
        let mut out = Vec::new();
        let mut request = RequestState::new();
        request.request_line(&mut out, Method::Post, "/").expect("in order");
        request.add_header(&mut out, "Host", b"a").expect("in order");
        let by_hand = request.add_header(&mut out, "expect", b"100-continue");
        assert!(matches!(by_hand, Err(MessageError::FieldReserved(_))));
        request.expect_continue();
        if let Some(length) = length {
            request.add_length(&mut out, length).expect("in order");
        }
        request.done_headers(&mut out).expect("in order");
        assert_eq!(request.expects_continue(), expects, "{length:?}");
        let text = String::from_utf8(out).expect("ASCII");
        assert_eq!(text.contains("\r\nExpect: 100-continue\r\n\r\n"), expects, "{text}");
    }
}

#[test]
fn an_expectation_after_the_head_has_no_effect() {
    let mut out = Vec::new();
    let mut request = RequestState::new();
    request.request_line(&mut out, Method::Post, "/").expect("in order");
    request.add_header(&mut out, "Host", b"a").expect("in order");
    request.add_length(&mut out, 1).expect("in order");
    request.done_headers(&mut out).expect("in order");
    request.expect_continue();
    assert!(!request.expects_continue(), "no server says that it wants the body");
}

#[test]
fn hop_by_hop_fields_are_named_in_connection() {
    for (fields, closes, expected) in [
        (&[("te", "trailers")][..], false, "Connection: TE"),
        (&[("TE", "trailers")], true, "Connection: close, TE"),
        (&[("TE", "gzip;q=0.5"), ("TE", "trailers")], false, "Connection: TE"),
        (&[("Upgrade", "echo"), ("TE", "")], false, "Connection: upgrade, TE"),
        (&[("Upgrade", "echo"), ("TE", "")], true, "Connection: close, upgrade, TE"),
    ] {
        let mut out = Vec::new();
        let mut request = RequestState::new();
        request.request_line(&mut out, Method::Get, "/").expect("in order");
        request.add_header(&mut out, "Host", b"a").expect("in order");
        for (name, value) in fields {
            request.add_header(&mut out, name, value.as_bytes()).expect("in order");
        }
        if closes {
            request.close();
        }
        request.done_headers(&mut out).expect("in order");
        let text = String::from_utf8(out).expect("ASCII");
        assert_eq!(text.matches("Connection").count(), 1, "{text}");
        assert!(text.contains(&format!("\r\n{expected}\r\n")), "{text}");
    }
}

#[test]
fn rule_58_requests_are_refused_before_they_are_sent() {
    let mut out = Vec::new();
    let mut request = RequestState::new();
    for (method, target) in [
        (Method::Get, "/ HTTP/1.1\r\nA: b"),
        (Method::Get, "/a b"),
        (Method::Get, "/a#b"),
        (Method::Get, "/\u{e9}"),
        (Method::Get, ""),
        (Method::Get, "a"),
        (Method::Get, "*"),
        (Method::Connect, "/"),
        (Method::Extension("CONNECT"), "/"),
        (Method::Extension("A B"), "/"),
        (Method::Extension(""), "/"),
        (Method::Extension("A\r\nB"), "/"),
    ] {
        assert_eq!(
            request.request_line(&mut out, method, target),
            Err(MessageError::StartLine),
            "{method} {target}"
        );
    }
    assert_eq!(request.request_line(&mut out, Method::Post, "/a?b"), Ok(()));
    assert_eq!(request.add_header(&mut out, "Host", b"a/b"), Err(MessageError::HostField));
    assert_eq!(request.done_headers(&mut out), Err(MessageError::HostMissing));
    assert_eq!(request.add_header(&mut out, "Host", b"a:80"), Ok(()));
    assert_eq!(request.add_header(&mut out, "host", b"a:80"), Err(MessageError::HostField));
    assert_eq!(request.add_header(&mut out, "A", b"b\r\nc: d"), Err(MessageError::FieldValue));
    request.close();
    assert_eq!(request.done_headers(&mut out), Ok(()));
    assert_eq!(request.write_body(&mut out, b"a"), Err(MessageError::BodyTooLong(0)));
    assert_eq!(request.done(&mut out), Ok(()));
    assert!(request.is_done() && !request.keeps_alive());
    assert_eq!(
        out,
        b"POST /a?b HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
}
