//! The bytes that a misbehaving server sends, and the expected outcomes.

mod framing;
mod heads;

use rotor_http::Limits;

use self::framing::{chunks, framing};
use self::heads::{garbage, heads};
use ConnectionAfter::*;
use NextAction::*;

/// The event after the server has sent its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextAction {
    Nothing,
    Ends,
    Resets,
    /// The clock advances until the request has an outcome.
    WaitsForEver,
}

/// The state of the connection afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionAfter {
    Closed,
    Reusable,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) sends: Vec<u8>,
    pub(crate) then: NextAction,
    /// The outcome if the handler takes the whole body in one piece.
    pub(crate) expected: &'static str,
    pub(crate) left: ConnectionAfter,
}

fn row(
    name: &'static str,
    sends: impl Into<Vec<u8>>,
    then: NextAction,
    expected: &'static str,
    left: ConnectionAfter,
) -> Row {
    Row { name, method: "GET", sends: sends.into(), then, expected, left }
}

fn with_method(method: &'static str, row: Row) -> Row {
    Row { method, ..row }
}

/// An answer with these field lines and this body.
fn answer(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")
}

fn chunked(body: &str) -> String {
    answer("Transfer-Encoding: chunked\r\n", body)
}

/// Small limits, so that tests reach them soon.
pub(crate) fn limits() -> Limits {
    Limits::new()
        .head_bytes_max(1_000)
        .field_bytes_max(300)
        .fields_max(10)
        .buffered_body_bytes_max(5_000)
        .interim_responses_max(3)
}

fn statuses() -> Vec<Row> {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    vec![
        row("interim answers up to the limit", interim.repeat(3) + empty, Nothing, "200", Reusable),
        row(
            "interim answers without end",
            interim.repeat(4) + empty,
            Nothing,
            "Peer: TooManyInterim",
            Closed,
        ),
        row(
            "interim answers that come slowly",
            interim.repeat(3),
            WaitsForEver,
            "Peer: ResponseTimeout",
            Closed,
        ),
        row("an interim answer and the end", interim, Ends, "Peer: Closed", Closed),
        row(
            "an upgrade that was not asked for",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\n",
            Nothing,
            "Peer: Head(UnexpectedSwitch)",
            Closed,
        ),
        row(
            "an interim answer with a length",
            format!("HTTP/1.1 102 P\r\nContent-Length: 3\r\n\r\n{empty}"),
            Nothing,
            "200",
            Closed,
        ),
        row(
            "an interim answer with a length of zero",
            format!("HTTP/1.1 102 P\r\nContent-Length: 0\r\n\r\n{empty}"),
            Nothing,
            "200",
            Reusable,
        ),
        row(
            "204 with a length",
            "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
            Nothing,
            "204",
            Closed,
        ),
        row(
            "204 with a length of zero",
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            Nothing,
            "204",
            Reusable,
        ),
        row(
            "204 with chunks",
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            Nothing,
            "204",
            Closed,
        ),
        row(
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
            Nothing,
            "304",
            Reusable,
        ),
        row(
            "304 with a body",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nabc",
            Nothing,
            "304",
            Closed,
        ),
        with_method(
            "HEAD",
            row(
                "HEAD with a length",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                Nothing,
                "200",
                Reusable,
            ),
        ),
        with_method(
            "HEAD",
            row(
                "HEAD with a body",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                Nothing,
                "200",
                Closed,
            ),
        ),
        with_method("HEAD", row("HEAD with chunks", chunked(""), Nothing, "200", Reusable)),
        with_method(
            "HEAD",
            row(
                "HEAD with two lengths",
                answer("Content-Length: 3, 4\r\n", ""),
                Nothing,
                "Peer: Head(Framing(SeveralLengths))",
                Closed,
            ),
        ),
        with_method(
            "HEAD",
            row(
                "HEAD with a signed length",
                answer("Content-Length: +5\r\n", ""),
                Nothing,
                "Peer: Head(Framing(Length))",
                Closed,
            ),
        ),
        row(
            "304 with a signed length",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: +5\r\n\r\n",
            Nothing,
            "Peer: Head(Framing(Length))",
            Closed,
        ),
        row(
            "304 with a coding that is none",
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked;a\r\n\r\n",
            Nothing,
            "Peer: Head(Framing(Coding))",
            Closed,
        ),
        row(
            "an interim answer with a signed length",
            format!("HTTP/1.1 103 E\r\nContent-Length: -1\r\n\r\n{empty}"),
            Nothing,
            "Peer: Head(Framing(Length))",
            Closed,
        ),
        row(
            "a refusal to keep the connection",
            answer("Content-Length: 3\r\nConnection: close\r\n", "abc"),
            Nothing,
            "200 abc",
            Closed,
        ),
        row(
            "HTTP/1.0",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            Nothing,
            "200 abc",
            Closed,
        ),
        row(
            "HTTP/1.0 that persists",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
            Nothing,
            "200 abc",
            Reusable,
        ),
        row(
            "the end with the answer",
            answer("Content-Length: 3\r\n", "abc"),
            Ends,
            "200 abc",
            Closed,
        ),
        row("a good answer", answer("Content-Length: 3\r\n", "abc"), Nothing, "200 abc", Reusable),
        row(
            "good chunks",
            chunked("1;a=b\r\na\r\n2\r\nbc\r\n0\r\nX: y\r\n\r\n"),
            Nothing,
            "200 abc",
            Reusable,
        ),
        row(
            "good chunks with whitespace around their extensions",
            chunked("1 ; a = b\r\na\r\n2\t;\tc =\"d\" ;e\r\nbc\r\n0 ;f\r\n\r\n"),
            Nothing,
            "200 abc",
            Reusable,
        ),
        row(
            "a chunk size with a space behind it",
            chunked("1 \r\na\r\n0\r\n\r\n"),
            Nothing,
            "Peer: Body(ChunkSize)",
            Closed,
        ),
        row(
            "a status that nobody knows",
            "HTTP/1.1 799 What\r\nContent-Length: 0\r\n\r\n",
            Nothing,
            "799",
            Reusable,
        ),
        row(
            "an empty phrase",
            "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
            Nothing,
            "200",
            Reusable,
        ),
    ]
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    [garbage(), heads(), framing(), chunks(), statuses()].into_iter().flatten().collect()
}
