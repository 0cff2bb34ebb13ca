use super::*;
use crate::h2::hpack::{Bounds, HpackDecoder};

const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":path", "/a?b"), (":authority", "a.example")];

fn list(fields: &[(&str, &str)]) -> FieldList {
    let mut block = Vec::new();
    let bytes = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    for (name, value) in fields {
        // Encoded here, since an encoder would write names in lower case.
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        let value = bytes(value);
        crate::h2::hpack::encode_integer(&mut block, 0, 7, value.len());
        block.extend_from_slice(&value);
    }
    let mut list = FieldList::new();
    let bounds = Bounds { list_bytes_max: 16 << 10, decoded_bytes_max: 64 << 10 };
    HpackDecoder::new(4096).decode(&block, &mut list, &bounds).expect("it is well-formed");
    list
}

fn check(fields: &[(&str, &str)]) -> Result<(CheckedRequest, FieldList), Refusal> {
    let mut list = list(fields);
    CheckedRequest::check(&mut list, &Limits::new(), true).map(|request| (request, list))
}

fn get_with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [GET, more].concat()
}

#[test]
fn a_request_is_split_into_its_parts() {
    let fields =
        [("x", "y"), ("content-length", "7"), ("expect", "100-continue"), ("priority", "u=1")];
    let (request, list) = check(&get_with(&fields)).expect("it is well-formed");
    assert_eq!(request.method(&list), Method::Get);
    let target = request.target(&list).expect("it was checked");
    assert_eq!((target.path(), target.query()), ("/a", Some("b")));
    assert_eq!(request.authority(&list).map(|authority| authority.as_str()), Some("a.example"));
    assert_eq!((request.length, request.expects_continue), (Some(7), true));
    assert_eq!(request.priority, Some(Priority { urgency: 1, is_incremental: false }));
    let names: Vec<_> = list.fields().iter().map(|field| field.name).collect();
    assert_eq!(names, ["x", "content-length", "expect", "priority"]);
}

/// RFC 9218 §5: `Priority` is a dictionary, of which several lines are one (RFC 8941 §4.2).
#[test]
fn several_priority_lines_are_one_dictionary() {
    for (lines, urgency, is_incremental) in [
        (&["u=5", "i"][..], 5, true),
        (&["i", "u=5"], 5, true),
        (&["u=5, i", "u=1", "i=?0"], 1, false),
        (&["u=5", ""], 5, false),
    ] {
        let fields: Vec<_> = lines.iter().map(|line| ("priority", *line)).collect();
        let (request, _) = check(&get_with(&fields)).expect("it is well-formed");
        assert_eq!(request.priority, Some(Priority { urgency, is_incremental }), "{lines:?}");
    }
}

#[test]
fn cookies_are_joined_in_the_place_of_the_first() {
    let fields =
        get_with(&[("a", "1"), ("cookie", "b=2"), ("c", "3"), ("cookie", "d=4"), ("cookie", "e")]);
    let (_, list) = check(&fields).expect("it is well-formed");
    let all: Vec<_> = list.fields().iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(all, [("a", &b"1"[..]), ("cookie", b"b=2; d=4; e"), ("c", b"3")]);
}

/// RFC 9113 §8.1.1, and requests that an HTTP/1.1 server behind a proxy would read as several.
#[test]
fn malformed_requests_are_rejected() {
    let without = |name: &str| -> Vec<_> { GET.iter().copied().filter(|f| f.0 != name).collect() };
    let instead = |name: &'static str, value: &'static str| -> Vec<_> {
        GET.iter().map(|f| if f.0 == name { (name, value) } else { *f }).collect()
    };
    let mut rows: Vec<Vec<(&str, &str)>> = vec![
        without(":method"),
        without(":scheme"),
        without(":path"),
        without(":authority"),
        [&[("x", "y")], GET].concat(),
    ];
    for (name, value) in [
        (":path", ""),
        (":path", "*"),
        (":path", "a"),
        (":path", "/ HTTP/1.1\r\nHost: b"),
        (":path", "/ a"),
        (":path", "/\u{e9}"),
        (":path", "http://b/"),
        (":method", "GET / HTTP/1.1"),
        (":method", ""),
        (":scheme", "ftp"),
        (":scheme", ""),
        (":authority", ""),
        (":authority", "a b"),
        (":authority", "u@a"),
        (":authority", "a\r\nx: y"),
    ] {
        rows.push(instead(name, value));
    }
    for field in [
        (":path", "/"),
        (":status", "200"),
        (":protocol", "websocket"),
        (":", "x"),
        ("", "x"),
        ("X", "y"),
        ("x y", "z"),
        ("x:", "z"),
        ("x\r\ny", "z"),
        ("x", "y\r\nz: a"),
        ("x", "y\nz"),
        ("x", "y\rz"),
        ("x", "\0"),
        ("x", " y"),
        ("x", "y "),
        ("x", "\ty"),
        ("connection", "close"),
        ("proxy-connection", "close"),
        ("keep-alive", "1"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "chunked"),
        ("te", "trailers, chunked"),
        ("host", "b.example"),
        ("content-length", "-1"),
        ("content-length", "1, 1"),
        ("content-length", "+1"),
        ("content-length", ""),
        ("content-length", "99999999999999999999"),
    ] {
        rows.push(get_with(&[field]));
    }
    rows.push(get_with(&[("content-length", "1"), ("content-length", "1")]));
    rows.push(get_with(&[("host", "a.example"), ("host", "a.example")]));
    rows.push(get_with(&[("x", "y"), (":path", "/b")]));
    for fields in rows {
        let refusal = check(&fields).map(|_| ());
        assert!(matches!(refusal, Err(Refusal::Malformed(_))), "{fields:?}: {refusal:?}");
    }
}

#[test]
fn well_formed_requests_are_accepted() {
    for fields in [
        get_with(&[("te", "trailers"), ("host", "A.example")]),
        get_with(&[("x", ""), ("y", "caf\u{e9}"), ("cookie", "a")]),
        vec![(":method", "OPTIONS"), (":path", "*"), (":scheme", "http"), ("host", "a:80")],
        vec![
            (":path", "/"),
            (":authority", "[::1]:80"),
            (":scheme", "https"),
            (":method", "PURGE"),
        ],
    ] {
        assert!(check(&fields).is_ok(), "{fields:?}");
    }
}

#[test]
fn some_well_formed_requests_get_an_error_status() {
    let long = "x".repeat(9000);
    let path = format!("/{long}");
    for (fields, error, status) in [
        (get_with(&[("expect", "200-ok")]), RequestError::Expectation, 417),
        (get_with(&[("x", &long)]), HeadError::FieldTooLong.into(), 431),
        (
            vec![(":method", "GET"), (":scheme", "http"), (":path", &path), (":authority", "a")],
            HeadError::TargetTooLong.into(),
            414,
        ),
        (
            vec![(":method", &long), (":scheme", "http"), (":path", "/"), (":authority", "a")],
            HeadError::MethodTooLong.into(),
            501,
        ),
    ] {
        assert_eq!(check(&fields).map(|_| ()), Err(Refusal::Error(error)));
        assert_eq!(error.status().code(), status);
    }
    let few = Limits::new().fields_max(3);
    let refusal = CheckedRequest::check(&mut list(&get_with(&[("x", "y"); 4])), &few, true);
    assert_eq!(refusal.map(|_| ()), Err(HeadError::TooManyFields.into()));
    let mut over = list(GET);
    over.is_truncated = true;
    let refusal = CheckedRequest::check(&mut over, &Limits::new(), true).map(|_| ());
    assert_eq!(refusal, Err(HeadError::TooLarge.into()));
}

#[test]
fn an_extended_connect_becomes_an_upgrade_request_of_http1() {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a"),
        ("x", "y"),
    ];
    let (request, mut list) = check(&fields).expect("it is well-formed");
    assert_eq!((request.purpose, request.method(&list)), (StreamPurpose::Protocol, Method::Get));
    assert_eq!(request.target(&list).map(|target| target.path().to_owned()), Some("/chat".into()));
    let all: Vec<_> = list.fields().iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(all, [("x", &b"y"[..]), ("upgrade", b"websocket")]);
    // If the server does not offer extended CONNECT, the request is malformed.
    list = self::list(&fields);
    let refusal = CheckedRequest::check(&mut list, &Limits::new(), false).map(|_| ());
    assert!(matches!(refusal, Err(Refusal::Malformed(_))), "{refusal:?}");
}

#[test]
fn a_tunnel_request_has_an_authority_and_nothing_else() {
    let fields = [(":method", "CONNECT"), (":authority", "a:443"), ("x", "y")];
    let (request, list) = check(&fields).expect("it is well-formed");
    assert_eq!((request.purpose, request.method(&list)), (StreamPurpose::Tunnel, Method::Connect));
    assert_eq!(
        request.target(&list).map(|target| target.as_str().to_owned()),
        Some("a:443".into())
    );
    for more in [(":scheme", "http"), (":path", "/"), ("host", "b:443"), ("content-length", "0")] {
        let mut fields = fields.to_vec();
        fields.insert(2, more);
        let refusal = check(&fields).map(|_| ());
        assert!(matches!(refusal, Err(Refusal::Malformed(_))), "{more:?}: {refusal:?}");
    }
}
