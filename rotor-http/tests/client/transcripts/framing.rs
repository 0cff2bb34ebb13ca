//! Lengths, codings and chunks that are wrong, too much, or cut short.

use super::Left::*;
use super::Then::*;
use super::{Row, answer, chunked, row};

pub(super) fn framing() -> Vec<Row> {
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

pub(super) fn chunks() -> Vec<Row> {
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
