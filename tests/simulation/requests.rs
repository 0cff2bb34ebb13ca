//! The example `http_echo`, with all kinds of HTTP/1.1 requests. Each request gets exactly one
//! response, its own and intact, or its connection ends.
//!
//! Each request carries a unique tag, which its response returns. After the last response the
//! client waits for EOF, so a surplus response is noticed.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;

use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Accept;
use rotor::{BoxError, EarlyScope, Response};
use rotor_sim::net::SimTcpListener;
use rotor_sim::{Host, Script, Sim, Watched};

use crate::examples::http_echo::Echo;
use crate::ground::{Bytes, Ground, ListenerOf, StreamOf};
use crate::stage::{self, Clients, PORT};

pub(crate) type Server<L = SimTcpListener> = HttpAccept<Echo, L>;

/// What a connection may hold: the default limits of its input and output, plus what one read and
/// one response may exceed them by.
const INPUT_MAX: usize = (64 + 16) * 1_024;
const OUTPUT_MAX: usize = (64 + 4) * 1_024;

/// A request, split into pieces between which the client waits for an interim response, and the
/// body of its response.
struct Exchange {
    /// Sent in one write.
    head: Vec<u8>,
    /// Whether `100 Continue` has to come before the body.
    waits: bool,
    body: Vec<u8>,
    answer: Vec<u8>,
}

/// The fields of a request. The length of its response follows from its tag.
fn exchange(tag: &str, kind: u32) -> Exchange {
    let length = tag.bytes().map(usize::from).sum::<usize>() % 300;
    let content: Vec<u8> = tag.bytes().cycle().take(tag.len() + length).collect();
    let head = |line: &str, fields: &str| {
        format!("{line} HTTP/1.1\r\nHost: server\r\nX-Tag: {tag}\r\n{fields}\r\n").into_bytes()
    };
    let plain = |head, answer| Exchange { head, waits: false, body: Vec::new(), answer };
    let with_length = format!("Content-Length: {}\r\n", content.len());
    match kind {
        0 => plain(head("GET /echo", ""), format!("Host: server\nX-Tag: {tag}\n").into_bytes()),
        1 => plain(head("HEAD /echo", ""), Vec::new()),
        2 => {
            let head = head("POST /", &with_length);
            Exchange { head, waits: false, body: content.clone(), answer: content }
        }
        3 => {
            let head = head("POST /", "Transfer-Encoding: chunked\r\n");
            Exchange { head, waits: false, body: chunked(&content), answer: content }
        }
        4 => {
            let head = head("POST /", &(with_length + "Expect: 100-continue\r\n"));
            Exchange { head, waits: true, body: content.clone(), answer: content }
        }
        _ => {
            let head = head("POST /", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n");
            Exchange { head, waits: true, body: chunked(&content), answer: content }
        }
    }
}

/// Encodes the content in chunks of all sizes, some with an extension, with a trailer.
fn chunked(content: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut left = content;
    for size in (1usize..).map(|n| n * n) {
        let (chunk, rest) = left.split_at(size.min(left.len()));
        left = rest;
        if chunk.is_empty() {
            break;
        }
        let mut line = String::new();
        let extension = if size % 2 == 0 { ";part" } else { "" };
        write!(line, "{:x}{extension}\r\n", chunk.len()).expect("a string takes it");
        encoded.extend([line.as_bytes(), chunk, b"\r\n"].concat());
    }
    encoded.extend(b"0\r\nX-Trailer: one\r\n\r\n");
    encoded
}

impl Exchange {
    fn ask(&self, script: Script) -> Script {
        let script = script.send(&self.head);
        let script =
            if self.waits { script.expect(b"HTTP/1.1 100 Continue\r\n\r\n") } else { script };
        script.send(&self.body)
    }

    fn is_answered(&self, script: Script) -> Script {
        script.expect(b"HTTP/1.1 200 OK\r\n").receive_until(b"\r\n\r\n").expect(&self.answer)
    }
}

/// One connection: requests one by one, then several in one write, then the last one together with
/// EOF.
fn script(number: u32) -> Script {
    let tagged = |request: u32, kind: u32| exchange(&format!("c{number}r{request}"), kind % 6);
    let mut script = stage::persistent_script().may_refuse(b"HTTP/1.1 408");
    for request in 0..2 {
        let exchange = tagged(request, number + request);
        script =
            exchange.is_answered(exchange.ask(script)).pause(stage::think_time(number, request));
    }
    let at_once: Vec<Exchange> =
        (2..6).map(|request| tagged(request, (number + request) % 4)).collect();
    script = at_once.iter().fold(script, |script, exchange| exchange.ask(script));
    script = at_once.iter().fold(script, |script, exchange| exchange.is_answered(script));
    script = script.pause(stage::think_time(number, 6));
    let last = tagged(6, number + 2);
    last.is_answered(last.ask(script).shutdown()).expect_end()
}

/// A host that serves the example.
pub(crate) fn serve(sim: &mut Sim) -> Result<Host<Watched<Server>>, BoxError> {
    serve_on::<Bytes>(sim)
}

/// The same, on any kind of network.
fn serve_on<G: Ground>(sim: &mut Sim) -> Result<Host<Watched<Server<ListenerOf<G>>>>, BoxError> {
    stage::serve_on::<G, Server<ListenerOf<G>>>(sim, "server", |address, scope| {
        listen(ListenerOf::<G>::bind(&address, &ListenOptions::new(), scope), scope)
    })
}

/// The same, on a host of its own, with a copy of the listener that is open at this address.
pub(crate) fn follow(
    sim: &mut Sim,
    address: SocketAddr,
) -> Result<Host<Watched<Server>>, BoxError> {
    stage::serve_on::<Bytes, Server>(sim, "successor", move |_, scope| {
        listen(SimTcpListener::copy_of(&address, scope), scope)
    })
}

fn listen<L: Listener>(opened: io::Result<L>, scope: &mut EarlyScope<'_>) -> Response<Server<L>> {
    match opened {
        Ok(listener) => {
            let seed = HttpSeed::new((), ServerConfig::new());
            Accept::listen(listener, seed, stage::patient(), scope)
        }
        Err(error) => Response::error(error),
    }
}

pub(crate) fn scenario<G: Ground>(sim: &mut Sim) -> Result<(), BoxError> {
    let server = serve_on::<G>(sim)?;
    sim.always("buffers are bounded", move |sim| {
        let held = sim.machines(server, |_, machine| {
            machine
                .machine()
                .connection()
                .map_or((0, 0), |stream| (stream.input_len(), stream.output_len()))
        });
        let is_bounded =
            |(input, output): &(usize, usize)| *input <= INPUT_MAX && *output <= OUTPUT_MAX;
        if held.iter().all(is_bounded) { Ok(()) } else { Err(format!("{held:?} bytes")) }
    });
    let mut clients = Clients::<StreamOf<G>>::on::<G, _>(sim, server, PORT)?;
    for number in 0..6 {
        clients.add(sim, script(number));
    }
    stage::play(sim, server, &clients)
}

#[test]
fn each_request_gets_its_own_answer_or_its_connection_ends() {
    stage::check(scenario::<Bytes>);
}
