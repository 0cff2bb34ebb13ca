//! What a misbehaving server sends, and what is to become of it.

use rotor_http::h1::Limits;

/// What comes after what the server sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Nothing,
    Ends,
    Resets,
    /// The clock goes on until something comes of it.
    WaitsForEver,
}
use Then::*;

/// What becomes of the connection afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    Closed,
    Reusable,
}
use Left::*;

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) sends: Vec<u8>,
    pub(crate) then: Then,
    /// Of the whole body at once.
    pub(crate) expected: &'static str,
    pub(crate) left: Left,
}

fn row(name: &'static str, sends: impl Into<Vec<u8>>, then: Then, expected: &'static str, left: Left) -> Row {
    Row { name, method: "GET", sends: sends.into(), then, expected, left }
}

fn to(method: &'static str, row: Row) -> Row {
    Row { method, ..row }
}

/// An answer with these field lines and this body.
fn answer(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")
}

fn chunked(body: &str) -> String {
    answer("Transfer-Encoding: chunked\r\n", body)
}

/// Small ones, so that they are soon met.
pub(crate) fn limits() -> Limits {
    Limits::new()
        .head_bytes_max(1_000)
        .field_bytes_max(300)
        .fields_max(10)
        .buffered_body_bytes_max(5_000)
        .interim_answers_max(3)
}

fn garbage() -> Vec<Row> {
    vec![
        row("no answer", "", Ends, "Peer: Closed", Closed),
        row("no answer, and no end", "", WaitsForEver, "Peer: AnswerTimeout", Closed),
        row("a reset", "", Resets, "Network: Lost(Reset(Kind(ConnectionReset)))", Closed),
        row("garbage", "\0\u{1}\u{2}garbage\r\n\r\n", Nothing, "Peer: Head(Head(Version))", Closed),
        row("another protocol", "SSH-2.0-OpenSSH_9.6\r\n", Nothing, "Peer: Head(Head(Version))", Closed),
        row("HTTP/0.9", "<html>hello</html>", Ends, "Peer: Head(Head(Version))", Closed),
        row("HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", Nothing, "Peer: Head(Head(VersionUnsupported))", Closed),
        row("a lower-case version", "http/1.1 200 OK\r\n\r\n", Nothing, "Peer: Head(Head(Version))", Closed),
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
        row("a status below 100", "HTTP/1.1 099 OK\r\n\r\n", Nothing, "Peer: Head(Head(StatusLine))", Closed),
        row(
            "a status that is no number",
            "HTTP/1.1 +20 OK\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row("two spaces", "HTTP/1.1  200 OK\r\n\r\n", Nothing, "Peer: Head(Head(StatusLine))", Closed),
        row(
            "a control byte in the phrase",
            "HTTP/1.1 200 O\u{1}K\r\n\r\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
            Closed,
        ),
        row("a request", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", Nothing, "Peer: Head(Head(Version))", Closed),
        row(
            "the head of an HTTP/2 connection",
            "\0\0\x12\x04\0\0\0\0\0",
            Nothing,
            "Peer: Head(Head(Version))",
            Closed,
        ),
    ]
}

fn heads() -> Vec<Row> {
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
            "Peer: AnswerTimeout",
            Closed,
        ),
        row(
            "bare line feeds",
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            Nothing,
            "Peer: Head(Head(StatusLine))",
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

fn framing() -> Vec<Row> {
    let with = |fields: &str| answer(fields, "abc");
    vec![
        row(
            "a length and a coding",
            with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            Nothing,
            "Peer: Head(Framing(LengthAndCoding))",
            Closed,
        ),
        row(
            "two lengths",
            with("Content-Length: 3\r\nContent-Length: 4\r\n"),
            Nothing,
            "Peer: Head(Framing(SeveralLengths))",
            Closed,
        ),
        row(
            "two equal lengths",
            with("Content-Length: 3\r\nContent-Length: 3\r\n"),
            Nothing,
            "Peer: Head(Framing(SeveralLengths))",
            Closed,
        ),
        row(
            "a list of lengths",
            with("Content-Length: 3, 3\r\n"),
            Nothing,
            "Peer: Head(Framing(SeveralLengths))",
            Closed,
        ),
        row(
            "a length with a sign",
            with("Content-Length: +3\r\n"),
            Nothing,
            "Peer: Head(Framing(Length))",
            Closed,
        ),
        row(
            "a length beyond 2^64",
            with("Content-Length: 18446744073709551616\r\n"),
            Nothing,
            "Peer: Head(Framing(Length))",
            Closed,
        ),
        row(
            "an unknown coding",
            with("Transfer-Encoding: gzip\r\n"),
            Nothing,
            "Peer: Head(Framing(CodingUnknown))",
            Closed,
        ),
        row(
            "chunked twice",
            with("Transfer-Encoding: chunked, chunked\r\n"),
            Nothing,
            "Peer: Head(Framing(Coding))",
            Closed,
        ),
        row(
            "chunks in HTTP/1.0",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Nothing,
            "Peer: Head(Framing(CodingInHttp10))",
            Closed,
        ),
        row(
            "a length of 2^63",
            with("Content-Length: 9223372036854775808\r\n"),
            Nothing,
            "Peer: Body(TooLarge)",
            Closed,
        ),
        row(
            "a body over the limit",
            answer("Content-Length: 5001\r\n", ""),
            Nothing,
            "Peer: Body(TooLarge)",
            Closed,
        ),
        row("less than announced", with("Content-Length: 5\r\n"), Ends, "Peer: Body(Truncated)", Closed),
        row(
            "less than announced, then a reset",
            with("Content-Length: 5\r\n"),
            Resets,
            "Network: Lost(Reset(Kind(ConnectionReset)))",
            Closed,
        ),
        row(
            "less than announced, and no end",
            with("Content-Length: 5\r\n"),
            WaitsForEver,
            "Peer: Body(TooSlow)",
            Closed,
        ),
        row("more than announced", with("Content-Length: 2\r\n"), Nothing, "200 ab", Closed),
        row("a second answer", with("Content-Length: 3\r\n").repeat(2), Nothing, "200 abc", Closed),
        row(
            "an answer without framing that goes on",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            WaitsForEver,
            "Peer: Body(TooSlow)",
            Closed,
        ),
        row("an answer without framing", "HTTP/1.1 200 OK\r\n\r\nabc", Ends, "200 abc", Closed),
        row(
            "an answer without framing over the limit",
            format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(5_001)),
            Nothing,
            "Peer: Body(TooLarge)",
            Closed,
        ),
        row(
            "an answer without framing that is reset",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            Resets,
            "Network: Lost(Reset(Kind(ConnectionReset)))",
            Closed,
        ),
    ]
}

fn chunks() -> Vec<Row> {
    let end = "0\r\n\r\n";
    vec![
        row("a chunk of a gigabyte", chunked("40000000\r\nabc"), Nothing, "Peer: Body(TooLarge)", Closed),
        row(
            "a chunk of 2^64",
            chunked("10000000000000000\r\nabc"),
            Nothing,
            "Peer: Body(ChunkSizeOverflow)",
            Closed,
        ),
        row("a chunk size with a sign", chunked("+3\r\nabc\r\n"), Nothing, "Peer: Body(ChunkSize)", Closed),
        row(
            "a chunk size with a prefix",
            chunked("0x3\r\nabc\r\n"),
            Nothing,
            "Peer: Body(ChunkSize)",
            Closed,
        ),
        row("a chunk size of letters", chunked("xyz\r\n"), Nothing, "Peer: Body(ChunkSize)", Closed),
        row("an empty chunk size", chunked("\r\nabc\r\n"), Nothing, "Peer: Body(ChunkSize)", Closed),
        row("a chunk longer than its size", chunked("3\r\nabcd\r\n"), Nothing, "Peer: Body(LineEnd)", Closed),
        row("a chunk ended by a line feed", chunked("3\nabc\r\n"), Nothing, "Peer: Body(ChunkSize)", Closed),
        row(
            "a chunk line without end",
            chunked(&format!("3;{}", "a".repeat(300))),
            Nothing,
            "Peer: Body(ChunkLineTooLong)",
            Closed,
        ),
        row(
            "extensions without end",
            chunked(&format!("1;{}\r\na\r\n", "a".repeat(250)).repeat(20)),
            Nothing,
            "Peer: Body(ExtensionsTooLong)",
            Closed,
        ),
        row("a bad extension", chunked("3;\0\r\nabc\r\n"), Nothing, "Peer: Body(Extension)", Closed),
        row("no last chunk", chunked("3\r\nabc\r\n"), Ends, "Peer: Body(Truncated)", Closed),
        row(
            "no last chunk, and no end",
            chunked("3\r\nabc\r\n"),
            WaitsForEver,
            "Peer: Body(TooSlow)",
            Closed,
        ),
        row("half a chunk", chunked("3\r\na"), Ends, "Peer: Body(Truncated)", Closed),
        row(
            "trailers without end",
            chunked(&format!("0\r\n{}", "A: b\r\n".repeat(40))),
            Nothing,
            "Peer: Body(Trailer(TooManyFields))",
            Closed,
        ),
        row("a bad trailer", chunked("0\r\nA b\r\n\r\n"), Nothing, "Peer: Body(Trailer(FieldName))", Closed),
        row("half a trailer section", chunked("0\r\nA: b\r\n"), Ends, "Peer: Body(Truncated)", Closed),
        row(
            "bytes after the last chunk",
            chunked(&format!("3\r\nabc\r\n{end}x")),
            Nothing,
            "200 abc",
            Closed,
        ),
        row(
            "chunks over the limit",
            chunked(&format!("{:x}\r\n", 5_001)),
            Nothing,
            "Peer: Body(TooLarge)",
            Closed,
        ),
    ]
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
            "Peer: AnswerTimeout",
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
        to(
            "HEAD",
            row(
                "HEAD with a length",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                Nothing,
                "200",
                Reusable,
            ),
        ),
        to(
            "HEAD",
            row(
                "HEAD with a body",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                Nothing,
                "200",
                Closed,
            ),
        ),
        to("HEAD", row("HEAD with chunks", chunked(""), Nothing, "200", Reusable)),
        to(
            "HEAD",
            row("HEAD with two lengths", answer("Content-Length: 3, 4\r\n", ""), Nothing, "200", Reusable),
        ),
        row(
            "a refusal to keep the connection",
            answer("Content-Length: 3\r\nConnection: close\r\n", "abc"),
            Nothing,
            "200 abc",
            Closed,
        ),
        row("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", Nothing, "200 abc", Closed),
        row(
            "HTTP/1.0 that persists",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
            Nothing,
            "200 abc",
            Reusable,
        ),
        row("the end with the answer", answer("Content-Length: 3\r\n", "abc"), Ends, "200 abc", Closed),
        row("a good answer", answer("Content-Length: 3\r\n", "abc"), Nothing, "200 abc", Reusable),
        row(
            "good chunks",
            chunked("1;a=b\r\na\r\n2\r\nbc\r\n0\r\nX: y\r\n\r\n"),
            Nothing,
            "200 abc",
            Reusable,
        ),
        row(
            "a status that nobody knows",
            "HTTP/1.1 799 What\r\nContent-Length: 0\r\n\r\n",
            Nothing,
            "799",
            Reusable,
        ),
        row("an empty phrase", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", Nothing, "200", Reusable),
    ]
}

/// All of them.
pub(crate) fn rows() -> Vec<Row> {
    [garbage(), heads(), framing(), chunks(), statuses()].into_iter().flatten().collect()
}
