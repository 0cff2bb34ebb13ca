//! Inputs for servers from the test suites of other projects: each whole, byte by byte and cut at
//! every place.

use rotor_http::server::ServerConfig;

use crate::corpora::{Case, escape, read};
use crate::probe::probe;
use crate::wire::transcript;

const SUITES: [(&str, &str); 3] = [
    ("gunicorn", include_str!("../corpora/gunicorn.requests")),
    ("llhttp", include_str!("../corpora/llhttp.requests")),
    ("disagreements", include_str!("../corpora/disagreements.requests")),
];

/// The server's answer to the pieces and the EOF after them.
fn answers(pieces: &[&[u8]]) -> String {
    let mut driver = probe(ServerConfig::new());
    pieces.iter().for_each(|piece| driver.send(piece));
    driver.end();
    assert!(driver.is_ended(), "it ends");
    assert_eq!(driver.failures(), [""; 0]);
    let received = driver.take_received();
    // An error page with a length and without its body. Only a reader that knows the request can
    // tell it from a truncated one.
    let is_head = pieces.concat().trim_ascii_start().starts_with(b"HEAD ");
    if is_head && received.starts_with(b"HTTP/1.1 400 ") && received.ends_with(b"\r\n\r\n") {
        return "400 close".to_owned();
    }
    escape(&transcript(&received))
}

/// The answer, which must be the same for every cut, and byte by byte.
fn answer_however_split(name: &str, input: &[u8]) -> String {
    let whole = answers(&[input]);
    assert_eq!(answers(&input.chunks(1).collect::<Vec<_>>()), whole, "{name}, byte by byte");
    for cut in (1..input.len()).step_by(input.len() / 400 + 1) {
        assert_eq!(answers(&[&input[..cut], &input[cut..]]), whole, "{name}, cut at {cut}");
    }
    whole
}

/// The input with a `Host` line after each complete HTTP/1.1 request line, if it has no `Host` yet.
fn with_host(input: &[u8]) -> Option<Vec<u8>> {
    let has = |needle: &[u8]| {
        input.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
    };
    if has(b"\nhost") || !has(b" HTTP/1.1\r\n") {
        return None;
    }
    let mut hosted = Vec::new();
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        hosted.extend_from_slice(line);
        if line.ends_with(b" HTTP/1.1\r\n") {
            hosted.extend_from_slice(b"Host: a\r\n");
        }
    }
    Some(hosted)
}

#[test]
fn every_suite_case_gets_its_response_however_it_is_split() {
    let mut wrong = Vec::new();
    for (suite, text) in SUITES {
        let cases = read(text);
        assert!(cases.len() > 20, "{suite} has {}", cases.len());
        for Case { name, ours, hosted, bytes, .. } in &cases {
            let name = format!("{suite} {name}");
            let answer = answer_however_split(&name, bytes);
            let refused = answer.starts_with("400").then(|| with_host(bytes)).flatten();
            let with_host = refused.map(|bytes| answer_however_split(&name, &bytes));
            if (&answer, &with_host) != (ours, hosted) {
                wrong.push(format!("name: {name}\nours: {answer}\nhosted: {with_host:?}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_case_that_differs_from_its_suite_gives_a_reason() {
    for (suite, text) in SUITES {
        for case in read(text) {
            assert_eq!(case.agrees(), case.why.is_empty(), "{suite} {case:?}");
        }
    }
}
