//! Answers that are not HTTP, and heads that are malformed or too large.

use super::ConnectionAfter::*;
use super::NextAction::*;
use super::{Row, answer, row};

pub(super) fn garbage() -> Vec<Row> {
    vec![
        row("no answer", "", Ends, "Peer: Closed", Closed),
        row("no answer, and no end", "", WaitsForEver, "Peer: ResponseTimeout", Closed),
        row("a reset", "", Resets, "Network: Lost(Reset(Kind(ConnectionReset)))", Closed),
        row("garbage", "\0\u{1}\u{2}garbage\r\n\r\n", Nothing, "Peer: Head(Head(Version))", Closed),
        row(
            "another protocol",
            "SSH-2.0-OpenSSH_9.6\r\n",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
        row("HTTP/0.9", "<html>hello</html>", Ends, "Peer: Head(Head(Version))", Closed),
        row(
            "HTTP/2",
            "HTTP/2.0 200 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(VersionUnsupported))",
            Closed,
        ),
        row(
            "a lower-case version",
            "http/1.1 200 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
        row(
            "a version of three digits",
            "HTTP/1.11 200\r\n\r\n",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
        row(
            "a status of two digits",
            "HTTP/1.1 20 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "a status of four digits",
            "HTTP/1.1 2000 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "a status below 100",
            "HTTP/1.1 099 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "a status that is no number",
            "HTTP/1.1 +20 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "two spaces",
            "HTTP/1.1  200 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "a control byte in the phrase",
            "HTTP/1.1 200 O\u{1}K\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row(
            "a request",
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
        row(
            "the head of an HTTP/2 connection",
            "\0\0\x12\x04\0\0\0\0\0",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
    ]
}

pub(super) fn heads() -> Vec<Row> {
    let ok = |fields: &str| answer(fields, "");
    vec![
        row(
            "a head without end",
            answer(&format!("A: {}\r\n", "x".repeat(290)).repeat(4), ""),
            Nothing,
            "Peer: Head(Head(TooLarge))",
            Closed,
        ),
        row(
            "a field without end",
            answer(&format!("A: {}\r\n", "x".repeat(301)), ""),
            Nothing,
            "Peer: Head(Head(FieldTooLong))",
            Closed,
        ),
        row(
            "fields without end",
            ok(&"A: b\r\n".repeat(11)),
            Nothing,
            "Peer: Head(Head(TooManyFields))",
            Closed,
        ),
        row("half a head", "HTTP/1.1 200 OK\r\nContent-", Ends, "Peer: Closed", Closed),
        row(
            "half a head, and no end",
            "HTTP/1.1 200 OK\r\nContent-",
            WaitsForEver,
            "Peer: ResponseTimeout",
            Closed,
        ),
        row(
            "bare line feeds",
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            Nothing,
            "Peer: Head(Head(LineEnd))",
            Closed,
        ),
        row(
            "a bare carriage return",
            "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n",
            Nothing,
            "Peer: Head(Head(LineEnd))",
            Closed,
        ),
        row(
            "a space before the colon",
            ok("Content-Length : 0\r\n"),
            Nothing,
            "Peer: Head(Head(FieldName))",
            Closed,
        ),
        row("a folded line", ok("A: b\r\n c\r\n"), Nothing, "Peer: Head(Head(Folding))", Closed),
        row("NUL in a value", ok("A: b\0c\r\n"), Nothing, "Peer: Head(Head(FieldValue))", Closed),
        row("a line without a colon", ok("A\r\n"), Nothing, "Peer: Head(Head(FieldName))", Closed),
    ]
}
