//! `http_echo` with third-party clients: curl, and two of Python's.

use std::process::Command;

use rotor_test_kit::Directory;

use crate::support::{curl, program, run, start_example, text, url};

/// Uses one connection for a page, a conditional request, a body with a length, a chunked body, an
/// expectation, and HEAD.
const HTTP_CLIENT: &str = r#"
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=30)
def ask(method, path, body=None, headers={}, **more):
    connection.request(method, path, body, headers, **more)
    response = connection.getresponse()
    return response, response.read()
page, body = ask("GET", "/")
assert page.status == 200 and body and page.version == 11, page.status
sock = connection.sock
again, none = ask("GET", "/", headers={"If-None-Match": page.headers["ETag"]})
assert (again.status, none) == (304, b""), again.status
head, none = ask("HEAD", "/")
assert (int(head.headers["Content-Length"]), none) == (len(body), b"")
big = bytes(range(256)) * 3000
assert ask("POST", "/", big)[1] == big
pieces = [b"a", b"bc" * 1000, b"d" * 70000]
assert ask("POST", "/", iter(pieces), {"Transfer-Encoding": "chunked"}, encode_chunked=True)[1] == b"".join(pieces)
assert b"X-Test: yes\n" in ask("PUT", "/echo", b"x", {"X-Test": "yes"})[1]
refused, _ = ask("DELETE", "/")
assert refused.status == 405 and "OPTIONS" in refused.headers["Allow"]
assert connection.sock is sock, "one connection for all"
"#;

/// A hundred concurrent connections, each with ten pipelined requests.
const ASYNCIO: &str = r#"
import asyncio, sys
host, port = sys.argv[1].split(":")
async def one(number):
    reader, writer = await asyncio.open_connection(host, int(port))
    bodies = [f"{number}.{at}".encode() for at in range(10)]
    for body in bodies:
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    for body in bodies:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"Content-Length: %d\r\n" % len(body) in head, head
        assert await reader.readexactly(len(body)) == body
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
async def main():
    await asyncio.gather(*(one(number) for number in range(100)))
asyncio.run(main())
"#;

#[test]
fn bodies_sent_by_curl_are_echoed() {
    let Some(program) = program("curl") else { return };
    let server = start_example("http_echo");
    let url = url(&server, "/");
    assert_eq!(curl(&program, &["-d", "hello", &url]).stdout, b"hello");
    // From 1 MiB on, curl sends `Expect: 100-continue`. This body is just below that limit.
    let long = "x".repeat((1 << 20) - 1);
    let directory = Directory::create();
    let file = directory.file("long", &long);
    let data = format!("@{}", file.display());
    for expect in ["Expect: 100-continue", "Expect:"] {
        for framing in ["A: b", "Transfer-Encoding: chunked"] {
            // curl would send the body without the server's consent after a second.
            let patient = ["--expect100-timeout", "100", "-v", "-o", "-", &url];
            let sends = ["-H", expect, "-H", framing, "--data-binary", &data];
            let output = curl(&program, &[patient.as_slice(), &sends].concat());
            assert!(output.stdout == long.as_bytes(), "{expect}, {framing}");
            let is_told =
                String::from_utf8_lossy(&output.stderr).contains("< HTTP/1.1 100 Continue");
            assert_eq!(is_told, expect != "Expect:", "{expect}, {framing}");
        }
    }
}

#[test]
fn curl_honours_validators_and_keeps_its_connection() {
    let Some(program) = program("curl") else { return };
    let server = start_example("http_echo");
    let url = url(&server, "/");
    let head = text(&curl(&program, &["-I", &url]));
    let date =
        head.lines().find_map(|line| line.strip_prefix("Last-Modified: ")).expect("a date").trim();
    let each = [
        "-w",
        "%{http_code} %{num_connects}\\n",
        "-o",
        "/dev/null",
        "-z",
        date,
        &url,
        "-o",
        "/dev/null",
        &url,
    ];
    assert_eq!(text(&curl(&program, &each)), "304 1\n304 0\n");
    let old = ["--http1.0", "-w", " %{http_version}", &url];
    assert!(text(&curl(&program, &old)).ends_with(" 1.1"), "the status line stays 1.1");
}

#[test]
fn curl_learns_that_a_body_is_too_large() {
    let Some(program) = program("curl") else { return };
    let server = start_example("http_echo");
    let directory = Directory::create();
    let file = directory.file("large", "x".repeat(3 << 20));
    let data = format!("@{}", file.display());
    let arguments = [
        "--expect100-timeout",
        "100",
        "-w",
        "%{http_code}",
        "-o",
        "/dev/null",
        "-H",
        "Expect: 100-continue",
    ];
    let output =
        curl(&program, &[&arguments[..], &["--data-binary", &data, &url(&server, "/")]].concat());
    assert_eq!(text(&output), "413");
}

#[test]
fn python_clients_get_what_they_ask_for() {
    let Some(python) = program("python3") else { return };
    let server = start_example("http_echo");
    for script in [HTTP_CLIENT, ASYNCIO] {
        run(Command::new(&python).args(["-c", script, &server.address().to_string()]));
    }
}
