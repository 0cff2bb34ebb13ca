//! What a service answers, as it is sent: the connection does the framing, whatever the fields say.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use rotor_tower::Body;

use crate::stage::{request, serving};

/// Answers with the status, the fields and the body that the query names.
async fn respond_as_asked(
    request: http::Request<Body>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let mut answer = http::Response::new(Full::default());
    for pair in request.uri().query().unwrap_or_default().split_terminator('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("status", code) => *answer.status_mut() = code.parse().expect("a status"),
            ("body", text) => *answer.body_mut() = Full::from(text.to_owned()),
            (name, value) => {
                let name: http::HeaderName = name.parse().expect("a name");
                let value = http::HeaderValue::from_bytes(value.replace('_', " ").as_bytes());
                answer.headers_mut().append(name, value.expect("a value"));
            }
        }
    }
    Ok(answer)
}

/// The head without the date, and the body, followed by whether the connection has ended.
fn summary(answer: &[u8], is_ended: bool) -> String {
    let text =
        String::from_utf8_lossy(answer).replace("Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n", "");
    let text = text.strip_prefix("HTTP/1.1 ").unwrap_or("?");
    format!("{}{}", text.replace("\r\n", "|"), if is_ended { " ended" } else { "" })
}

const FAILED: &str = "500 Internal Server Error|Content-Type: text/plain|Content-Length: 26|\
                      Connection: close||500 Internal Server Error\n ended";

#[test]
fn the_connection_decides_about_framing() {
    let four = "200 OK|Content-Length: 4||four";
    for (asked, expected) in [
        ("GET /?body=four", four),
        ("GET /?body=four&content-length=4", four),
        ("GET /?body=four&content-length=x", four),
        ("GET /?body=four&transfer-encoding=chunked&connection=keep-alive&keep-alive=x", four),
        ("GET /?body=four&content-length=3", FAILED),
        ("GET /?body=four&content-length=5", FAILED),
        ("GET /?content-length=5", FAILED),
        (
            "GET /?body=four&connection=x,_Close",
            "200 OK|Content-Length: 4|Connection: close||four ended",
        ),
        (
            "GET /?body=four&upgrade=x&connection=upgrade",
            "200 OK|upgrade: x|Content-Length: 4|Connection: upgrade||four",
        ),
        (
            "GET /?x-a=1&x-a=2&date=now&server=me",
            "200 OK|x-a: 1|x-a: 2|date: now|server: me|Content-Length: 0||",
        ),
        ("GET /?status=999&body=four", "999 |Content-Length: 4||four"),
    ] {
        let mut stage = serving(tower::service_fn(respond_as_asked));
        stage.send(&request(asked, "", ""));
        let answer = stage.take_received();
        assert_eq!(summary(&answer, stage.is_ended()), expected, "{asked}");
    }
}

#[test]
fn a_response_without_a_body_is_sent_without_one() {
    for (asked, expected) in [
        ("HEAD /?body=four", "200 OK|Content-Length: 4||"),
        ("HEAD /?content-length=4", "200 OK|Content-Length: 4||"),
        ("HEAD /", "200 OK|Transfer-Encoding: chunked||"),
        ("HEAD /?status=204", "204 No Content||"),
        ("GET /?status=204&body=four&content-length=4", "204 No Content||"),
        ("GET /?status=205&body=four", "205 Reset Content|Content-Length: 0||"),
        (
            "GET /?status=304&content-length=4&body=four&etag=1",
            "304 Not Modified|etag: 1|Content-Length: 4||",
        ),
        // A service must not answer with an interim response.
        ("GET /?status=100", FAILED),
        ("GET /?status=103", FAILED),
    ] {
        let mut stage = serving(tower::service_fn(respond_as_asked));
        stage.send(&request(asked, "", ""));
        let answer = stage.take_received();
        assert_eq!(summary(&answer, stage.is_ended()), expected, "{asked}");
    }
}

/// Targets that `http` cannot represent, or for which no service has a route: never a panic.
#[test]
fn an_unusual_target_is_refused_and_the_next_request_is_served() {
    for (asked, status) in [
        ("OPTIONS *", "200"),
        ("GET //a/../b?c", "200"),
        ("GET /%ff%00%2F", "200"),
        ("GET http://a:80?status=201", "201"),
        ("GET http://user@a:80/", "400"),
        ("GET /`", "400"),
        ("GET /<>", "400"),
    ] {
        let mut stage = serving(tower::service_fn(respond_as_asked));
        stage.send(&request(asked, "", ""));
        let answer = stage.take_received();
        assert_eq!(summary(&answer, false).get(..3), Some(status), "{asked}");
        if !stage.is_ended() {
            stage.send(&request("GET /", "", ""));
            assert_eq!(summary(&stage.take_received(), false).get(..3), Some("200"), "{asked}");
        }
    }
}

/// Answers with the body of the request, before any of it has been requested.
async fn echo(request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    Ok(http::Response::new(request.into_body()))
}

/// When the head is written, the connection cannot know yet that the body will be read.
#[test]
fn an_early_response_to_a_long_announced_body_is_the_last_of_its_connection() {
    for (framing, length, is_last) in [
        ("Content-Length: 65536", 65_536, false),
        ("Content-Length: 65537", 65_537, true),
        ("Transfer-Encoding: chunked", 65_537, false),
    ] {
        let mut stage = serving(tower::service_fn(echo));
        stage.send(&request("POST /", &format!("{framing}\r\n"), ""));
        let mut answer = stage.take_received();
        let (body, is_chunked) = ("x".repeat(length), framing.ends_with("chunked"));
        match is_chunked {
            true => stage.send(format!("{length:x}\r\n{body}\r\n0\r\n\r\n").as_bytes()),
            false => stage.send(body.as_bytes()),
        }
        answer.extend(stage.take_received());
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(text.matches('x').count(), length, "{framing}: all of it comes back");
        assert_eq!(text.contains("Connection: close"), is_last, "{framing}");
        assert_eq!(stage.is_ended(), is_last, "{framing}");
    }
}
