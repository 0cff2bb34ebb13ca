//! What the pure half costs per hello request: `cargo bench -p rotor-http --bench h1`. Each part
//! checks what it did, so that it cannot rot. For instructions, run one part under callgrind with
//! two counts and divide the difference: `valgrind --tool=callgrind <binary> parse 1000`, then
//! `2000`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use rotor_http::h1::{
    Body, DateCache, Ending, FieldStorage, HeadReader, Limits, ReplyTo, RequestSemantics,
    ResponseState, Status, Version,
};

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n\r\n";

const BROWSER: &[u8] = b"GET /static/page/42?lang=en&theme=dark HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; consent=yes\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Cache-Control: max-age=0\r\n\r\n";

#[inline(never)]
fn parse(input: &[u8], reader: &mut HeadReader, limits: &Limits) -> usize {
    let mut storage = FieldStorage::new();
    let head = reader
        .read_request(input, &mut storage, limits)
        .expect("a good head")
        .expect("a whole head");
    black_box(&head).input_len()
}

#[inline(never)]
fn parse_and_check(input: &[u8], reader: &mut HeadReader, limits: &Limits) -> ReplyTo {
    let mut storage = FieldStorage::new();
    let head = reader
        .read_request(input, &mut storage, limits)
        .expect("a good head")
        .expect("a whole head");
    let terms = RequestSemantics::from_head(black_box(&head)).expect("a good request");
    assert_eq!(terms.body, Body::Empty);
    terms.reply_to()
}

#[inline(never)]
fn write(out: &mut Vec<u8>, reply: ReplyTo, date: &DateCache) -> Ending {
    let mut response = ResponseState::new(reply);
    let mut attempt = || {
        response.status(out, Status::OK)?;
        response.add_header(out, "Content-Type", b"text/plain")?;
        response.add_length(out, black_box(13))?;
        response.done_headers(out, Some(date), None)?;
        response.write_body(out, b"Hello, world!")?;
        response.done(out)
    };
    attempt().expect("a good response");
    response.ending()
}

fn measure(name: &str, chosen: Option<&str>, count: u64, mut once: impl FnMut()) {
    if chosen.is_some_and(|chosen| chosen != name) {
        return;
    }
    let start = Instant::now();
    (0..count).for_each(|_| once());
    println!("{name:>14} {:8.1} ns", start.elapsed().as_nanos() as f64 / count as f64);
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let chosen = arguments.next();
    let chosen = chosen.as_deref();
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);

    let limits = Limits::new();
    let date = DateCache::new(784_111_777);
    let mut reader = HeadReader::new();
    let mut out = Vec::with_capacity(4096);
    let reply = ReplyTo { version: Version::Http11, keep_alive: true, ..ReplyTo::unreadable() };

    measure("parse", chosen, count, || {
        assert_eq!(parse(black_box(HELLO), &mut reader, &limits), HELLO.len());
    });
    measure("check", chosen, count, || {
        assert!(parse_and_check(black_box(HELLO), &mut reader, &limits).keep_alive);
    });
    measure("browser", chosen, count, || {
        assert!(parse_and_check(black_box(BROWSER), &mut reader, &limits).keep_alive);
    });
    measure("write", chosen, count, || {
        out.clear();
        assert_eq!(write(&mut out, black_box(reply), black_box(&date)), Ending::KeepAlive);
        assert_eq!(black_box(&out).len(), 115);
    });
}
