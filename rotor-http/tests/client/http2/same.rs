//! A handler of the client gets the same calls on HTTP/2 as on HTTP/1.1, and has the same outcome.

use rotor_http::Limits;
use rotor_http::client::RecvMode;

use super::server::{Server, data, headers};
use crate::probe::{BodyPlan, Probe};
use crate::script::{connection, outcome};

/// A response that can be sent on both versions.
struct ResponsePair {
    status: u16,
    fields: &'static [(&'static str, &'static str)],
    body: &'static [&'static str],
    trailers: &'static [(&'static str, &'static str)],
}

type Make = fn() -> Probe;

fn on_http1(make: &dyn Fn() -> Probe, said: &ResponsePair) -> (Option<String>, Vec<String>) {
    let mut driver = connection(Limits::new(), [make()]);
    let mut text = format!("HTTP/1.1 {} X\r\n", said.status);
    for (name, value) in said.fields {
        text += &format!("{name}: {value}\r\n");
    }
    let is_head = make().method == "HEAD";
    let has_length = said.fields.iter().any(|(name, _)| *name == "content-length");
    let is_chunked = !has_length && !is_head && !matches!(said.status, 204 | 304);
    let end = if is_chunked { "transfer-encoding: chunked\r\n\r\n" } else { "\r\n" };
    driver.send((text + end).as_bytes());
    for part in said.body {
        let part = match is_chunked {
            true => format!("{:x}\r\n{part}\r\n", part.len()),
            false => (*part).to_owned(),
        };
        driver.send(part.as_bytes());
    }
    if is_chunked {
        let lines = said.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        driver.send(format!("0\r\n{}\r\n", lines.collect::<String>()).as_bytes());
    }
    (outcome(&mut driver), driver.context().events.clone())
}

fn on_http2(
    make: &dyn Fn() -> Probe,
    said: &ResponsePair,
    piece: usize,
) -> (Option<String>, Vec<String>) {
    let mut server = Server::new([make()]);
    let status = said.status.to_string();
    let fields = [&[(":status", &*status)], said.fields].concat();
    let is_empty = said.body.is_empty();
    let mut frames = vec![headers(1, &fields, is_empty)];
    for (at, part) in said.body.iter().enumerate() {
        let is_end = at + 1 == said.body.len() && said.trailers.is_empty();
        frames.push(data(1, part.as_bytes(), is_end));
    }
    if !said.trailers.is_empty() {
        frames.push(headers(1, said.trailers, true));
    }
    for frame in frames {
        for piece in frame.chunks(piece) {
            server.send(piece);
        }
    }
    let outcome = server.outcome(0);
    assert_eq!(server.end(), None);
    ((outcome != "nothing yet").then_some(outcome), server.driver.context().events.clone())
}

#[test]
fn outcomes_and_handler_events_equal_those_of_http1() {
    let makes: [(&str, Make); 9] = [
        ("buffered", || Probe::get("/")),
        ("progressive", || Probe::get("/").progressive()),
        ("in parts of 4", || Probe { mode: RecvMode::Progressive(4), ..Probe::get("/") }),
        ("blocks", || Probe { mode: RecvMode::Blocks, ..Probe::get("/") }),
        ("too small", || Probe { mode: RecvMode::Buffered(3), ..Probe::get("/") }),
        ("held", || Probe { holds: true, ..Probe::get("/").progressive() }),
        ("brief", || Probe { is_head_only: true, ..Probe::get("/") }),
        ("panics", || Probe { panics_in: "head", ..Probe::get("/") }),
        ("post", || Probe::post(BodyPlan::Whole("x"))),
    ];
    let says = [
        ResponsePair {
            status: 200,
            fields: &[("content-length", "5")],
            body: &["hello"],
            trailers: &[],
        },
        ResponsePair {
            status: 200,
            fields: &[("content-length", "5")],
            body: &["he", "llo"],
            trailers: &[],
        },
        ResponsePair { status: 404, fields: &[], body: &["he", "llo"], trailers: &[] },
        ResponsePair {
            status: 200,
            fields: &[],
            body: &["a", "b"],
            trailers: &[("x-sum", "1"), ("y", "2")],
        },
        ResponsePair { status: 204, fields: &[], body: &[], trailers: &[] },
        ResponsePair { status: 304, fields: &[], body: &[], trailers: &[] },
        ResponsePair { status: 200, fields: &[("content-length", "0")], body: &[], trailers: &[] },
    ];
    for (name, make) in makes {
        for said in &says {
            let expected = on_http1(&make, said);
            let what = format!("{name}, {} {:?}", said.status, said.body);
            assert_eq!(on_http2(&make, said, usize::MAX), expected, "{what}");
            // The body then arrives in other pieces, but the outcome is the same.
            assert_eq!(on_http2(&make, said, 1).0, expected.0, "{what}, byte by byte");
        }
    }
}
