//! Responses of real servers, and of bytes that are cut anywhere.

use super::response::TestResponse;
use super::*;
use crate::no_upgrade::NoUpgrade;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::server::{Head, Next, Response, Scope, Server};

/// Sends what it gets, framed as the path says.
struct Echo {
    is_chunked: bool,
}

impl Server for Echo {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Echo> {
        let echo = Echo { is_chunked: head.path() == "/chunked" };
        Next::recv(echo, crate::recv_mode::RecvMode::Buffered(100)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Echo> {
        let mut write = || {
            response.interim(Status::EARLY_HINTS, &[("X-Early", b"1")])?;
            response.status(Status::OK)?;
            response.add_header("X-A", "1")?;
            match self.is_chunked {
                true => response.add_chunked()?,
                false => response.add_length(body.len() as u64)?,
            }
            response.done_headers()?;
            let (first, second) = body.split_at(body.len() / 2);
            response.write_body(first)?;
            response.write_body(second)?;
            response.done()
        };
        write().expect("it is written correctly");
        Next::finished()
    }
}

#[test]
fn a_response_is_whole_whatever_its_framing() {
    let mut client = TestClient::<Echo>::new((), ());
    for target in ["/length", "/chunked"] {
        for body in ["", "a", "hello"] {
            let response = client.request("PUT", target, &[("X-B", "2")], body.as_bytes());
            assert_eq!((response.status(), response.text()), (Status::OK, body), "{target}");
            assert_eq!((response.field("x-a"), response.field("X-Early")), (Some("1"), None));
        }
        let response = client.request("HEAD", target, &[], b"");
        assert_eq!((response.status(), response.body()), (Status::OK, &b""[..]), "{target}");
    }
}

#[test]
fn requests_get_their_responses_in_order() {
    let mut client = TestClient::<Echo>::new((), ());
    client.send_request("HEAD", "/", &[("Content-Length", "3")], b"abc");
    client.send_request("PUT", "/", &[("Transfer-Encoding", "chunked")], b"1\r\nb\r\n0\r\n\r\n");
    client.send_request("PUT", "/", &[("Host", "")], b"c");
    let responses = [(); 4].map(|()| client.take_response());
    let responses = responses.map(|it| it.map(|it| (it.status().code(), it.text().len())));
    let reason = "400 Bad Request: Host is not a host with an optional port\n".len();
    assert_eq!(responses, [Some((200, 0)), Some((200, 1)), Some((400, reason)), None]);
    assert!(client.is_ended());
}

#[test]
fn a_request_of_bytes_gets_its_response() {
    let mut client = TestClient::<Echo>::new((), ());
    assert_eq!(client.take_response(), None);
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh");
    assert_eq!(client.take_response(), None);
    client.send(b"i");
    assert_eq!(client.take_response().expect("it is whole").text(), "hi");
}

#[test]
fn bytes_behind_a_response_can_be_taken() {
    let mut client = TestClient::<Echo>::new((), ());
    client.send_request("HEAD", "/", &[], b"");
    client.send_request("PUT", "/", &[], b"behind");
    assert_eq!(client.take_response().expect("it is whole").body(), b"");
    let behind = client.take_received();
    assert!(behind.starts_with(b"HTTP/1.1 103") && behind.ends_with(b"behind"));
    assert_eq!(client.take_received(), b"");
}

#[test]
#[should_panic(expected = "GET /: not taken before: \"HTTP/1.1 103 Early Hints")]
fn a_response_that_was_not_taken_is_not_returned_for_the_next_request() {
    let mut client = TestClient::<Echo>::new((), ());
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.get("/");
}

#[test]
fn a_head_may_be_larger_than_a_client_allows_by_default() {
    let (value, fields) = ("x".repeat(100_000), "X-B: c\r\n".repeat(200));
    let last = format!("0\r\nX-C: {value}\r\n\r\n");
    let input = format!(
        "HTTP/1.1 200 OK\r\nX-A: {value}\r\n{fields}Transfer-Encoding: chunked\r\n\r\n{last}"
    );
    let response = TestResponse::take(&mut input.into_bytes(), false, Method::Get);
    let response = response.expect("it is whole");
    assert_eq!((response.field("X-A"), response.fields().count()), (Some(&*value), 202));
}

#[test]
fn a_partial_response_stays_where_it_is() {
    let get = |input: &mut Vec<u8>, is_ended| TestResponse::take(input, is_ended, Method::Get);
    for (text, is_until_close) in [
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
            false,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhi", true),
    ] {
        for end in 0..text.len() {
            let part = text.as_bytes()[..end].to_vec();
            let mut input = part.clone();
            assert_eq!(get(&mut input, false), None, "{end} of {text}");
            assert_eq!(input, part);
        }
        let mut input = text.as_bytes().to_vec();
        let response = get(&mut input, is_until_close).expect("it is whole");
        assert_eq!((response.text(), input.len()), ("hi", 0), "{text}");
    }
    let mut input = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh".to_vec();
    assert_eq!(get(&mut input, true), None, "it is cut off");
}

#[test]
#[should_panic(expected = "GET /: no whole response (ended: false): \"\"")]
fn a_missing_response_is_named_in_the_panic() {
    TestClient::<Echo>::new((), ()).request("GET", "/", &[("Content-Length", "1")], b"");
}

#[test]
fn a_response_prints_its_body_as_text() {
    let mut input =
        b"HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 3\r\n\r\na\n\xff".to_vec();
    let response = TestResponse::take(&mut input, false, Method::Get).expect("it is whole");
    let printed = format!("{response:?}");
    assert!(printed.contains("404") && printed.ends_with(r#"body: "a\n\xff" }"#), "{printed}");
    assert_eq!(response.fields().next(), Some(("X-A", "b")));
}
