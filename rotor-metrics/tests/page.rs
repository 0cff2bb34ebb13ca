//! The page, scraped over a real connection, and parsed by the rules of both formats.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other end is a plain client, outside of any loop"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::exemplar::CounterWithExemplar;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopHandle, OffloadPool, Response};
use rotor_http::client;
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor_metrics::{Metrics, RotorCollector};

/// A server for the page, and the means to request it.
struct MetricsServer {
    address: SocketAddr,
    handle: LoopHandle,
}

impl MetricsServer {
    fn start() -> MetricsServer {
        let config = Config::new().sample_handlers(1);
        let mut creator =
            Loop::<HttpAccept<Metrics, TcpListener>>::new(&config).expect("a descriptor is left");
        let config = ServerConfig::new();
        let mut registry = Registry::default();
        RotorCollector::new()
            .event_loop("main", creator.stats())
            .event_loop("again", creator.stats())
            .pool("files", OffloadPool::default())
            .server("api", config.counters())
            .client("up\"stream\\\n", Arc::<client::Counters>::default())
            .register(&mut registry);
        // The families that it shares with the first collector are declared once.
        RotorCollector::new()
            .event_loop("third", creator.stats())
            .pool("more", OffloadPool::default())
            .register(&mut registry);
        // Counters of the program itself.
        let jobs = CounterWithExemplar::<Vec<(String, String)>>::default();
        jobs.inc_by(3, Some(vec![("trace_id".into(), "7".into())]), None);
        registry.register("jobs", "Jobs", jobs);
        registry.register("build", "Build", Info::new(vec![("version", "1\n # {")]));
        let seed = HttpSeed::new(Arc::new(registry), config);
        let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
        let made = creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().expect("it is bound");
                Ok(server::listen(listener, seed, scope))
            })
        });
        made.expect("there is room");
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut instance = creator.instantiate(());
            tell.send(instance.handle()).expect("somebody waits");
            instance.run().expect("it runs");
        });
        MetricsServer { address, handle: told.recv().expect("it starts") }
    }

    /// The head of the answer, and its body.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let text = format!("{request}Host: a\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

/// The samples of a page: names with labels, and values. Panics if the page breaks a rule that both
/// formats have: help and type come once and before the samples, no sample comes twice, each
/// belongs to a declared family, buckets increase and end in the count.
fn samples(page: &str, is_open: bool) -> BTreeMap<String, f64> {
    let (mut types, mut helps) = (BTreeMap::new(), BTreeSet::new());
    let mut samples = BTreeMap::new();
    let mut family = String::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(helps.insert(name.to_owned()) && !help.is_empty(), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            let is_known = ["counter", "gauge", "histogram"].contains(&kind);
            assert!(is_known || is_open && kind == "info", "{line}");
            assert!(helps.contains(name), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            family = name.to_owned();
        } else {
            let line = match line.split_once(" # {trace_id=") {
                Some((sample, _)) if is_open => sample,
                _ => line,
            };
            let (key, value) = line.rsplit_once(' ').expect("a value");
            let name = key.split('{').next().expect("a name");
            let suffixes: &[&str] = match (types[&family].as_str(), is_open) {
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                ("counter", true) => &["_total"],
                ("info", true) => &["_info"],
                _ => &[""],
            };
            assert!(suffixes.iter().any(|it| name == format!("{family}{it}")), "{line}");
            assert!(types[&family] != "counter" || name.ends_with("_total"), "{line}");
            let value = value.parse().expect("a number");
            assert!(samples.insert(key.to_owned(), value).is_none(), "{line} twice");
        }
    }
    for (key, count) in &samples {
        let Some((name, labels)) = key.split_once("_count{") else { continue };
        let bucket = format!("{name}_bucket{{le=\"+Inf\",{labels}");
        assert_eq!(samples.get(&bucket), Some(count), "{bucket}");
    }
    samples
}

#[test]
fn both_formats_are_valid_and_show_the_counters() {
    let server = MetricsServer::start();
    for _ in 0..5 {
        assert!(server.ask("GET /metrics HTTP/1.1\r\n").0.starts_with("HTTP/1.1 200 "));
    }
    assert!(server.ask("POST / HTTP/1.1\r\nContent-Length: 0\r\n").0.contains("405"));
    let (head, page) = server.ask("HEAD / HTTP/1.1\r\n");
    assert!(head.contains("text/plain; version=0.0.4") && page.is_empty(), "{head}");
    let (head, page) = server.ask("GET / HTTP/1.1\r\n");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let classic = samples(&page, false);
    assert_eq!(classic["rotor_http_server_requests_total{server=\"api\"}"], 8.0);
    assert_eq!(classic["rotor_http_server_requests_open{server=\"api\"}"], 1.0);
    assert_eq!(classic["rotor_http_server_responses_total{server=\"api\",class=\"2xx\"}"], 6.0);
    assert_eq!(classic["rotor_http_server_responses_total{server=\"api\",class=\"4xx\"}"], 1.0);
    assert!(classic["rotor_loop_turns_total{loop=\"main\"}"] > 0.0);
    assert!(classic["rotor_loop_turns_total{loop=\"third\"}"] > 0.0);
    assert!(classic["rotor_loop_busy_seconds_total{loop=\"main\"}"] > 0.0);
    assert_eq!((classic["jobs_total"], classic["build_info{version=\"1\\n # {\"}"]), (3.0, 1.0));
    assert!(page.contains("# TYPE build_info gauge\n"), "{page}");
    assert!(page.contains("rotor_loop_handler_seconds_count{loop=\"main\",machine=\""), "{page}");
    assert!(classic.contains_key("rotor_loop_longest_turn_seconds{loop=\"main\"}"), "{page}");
    assert!(page.contains("rotor_loop_longest_handler_seconds{loop=\"main\",machine=\""), "{page}");
    // Classes that have occurred, and the successful ones in any case.
    for (class, count) in [("2xx", Some(6.0)), ("4xx", Some(1.0)), ("5xx", None)] {
        let times =
            format!("rotor_http_server_request_seconds_count{{server=\"api\",class=\"{class}\"}}");
        assert_eq!(classic.get(&times).copied(), count, "{class}: {page}");
    }
    let accept = "GET / HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n";
    let (head, page) = server.ask(accept);
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains("\r\nVary: Accept\r\n"), "{head}");
    assert!(page.ends_with("# EOF\n"));
    let refused = "GET / HTTP/1.1\r\nAccept: application/openmetrics-text;q=0, */*\r\n";
    let (head, _) = server.ask(refused);
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains("\r\nVary: Accept\r\n"), "{head}");
    assert_eq!(samples(&page, true).len() / 10, classic.len() / 10, "they say the same");
}

#[test]
fn duplicate_names_are_numbered_and_no_row_repeats() {
    let mut registry = Registry::default();
    let servers = [(); 3].map(|()| ServerConfig::new().counters());
    let [one, other, third] = servers;
    RotorCollector::new()
        .server("api", one)
        .server("api", other)
        .server("api (2)", third)
        .pool("api", OffloadPool::default())
        .register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).expect("it is a string");
    let samples = samples(&page, true);
    for name in ["api", "api (2)", "api (2) (2)"] {
        let row = format!("rotor_http_server_requests_total{{server=\"{name}\"}}");
        assert_eq!(samples.get(&row), Some(&0.0), "{row}");
    }
    // Another kind of source has another label.
    assert!(samples.contains_key("rotor_offload_threads{pool=\"api\"}"));
}

#[test]
fn custom_counters_are_families_with_a_row_per_source() {
    let mut registry = Registry::default();
    RotorCollector::new()
        .counters("tls", "site", || vec![("handshakes", 3), ("too-many", 1)])
        .counters("mail", "out\"going\n", || vec![("sent", 7), ("sent", 8)])
        .counters("tls", "admin", || vec![("handshakes_total", 4), ("late", 2)])
        .counters("tls", "site", || vec![("handshakes", 5)])
        .counters("none", "at all", Vec::new)
        .register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).expect("it is a string");
    let expected = [
        ("rotor_mail_sent_total{mail=\"out\\\"going\\n\"}", 7.0),
        ("rotor_tls_handshakes_total{tls=\"admin\"}", 4.0),
        ("rotor_tls_handshakes_total{tls=\"site (2)\"}", 5.0),
        ("rotor_tls_handshakes_total{tls=\"site\"}", 3.0),
        ("rotor_tls_late_total{tls=\"admin\"}", 2.0),
        ("rotor_tls_too_many_total{tls=\"site\"}", 1.0),
    ];
    let samples = samples(&page, true);
    assert_eq!(samples.iter().map(|(row, count)| (&**row, *count)).collect::<Vec<_>>(), expected);
}

/// The checker by the authors of the format, if it is installed (`PROMTOOL` may set its path).
#[test]
fn promtool_finds_no_errors() {
    let program = std::env::var("PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    let started = Command::new(program)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else {
        eprintln!("skipped: no promtool");
        return;
    };
    let (_, page) = MetricsServer::start().ask("GET / HTTP/1.1\r\n");
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(page.as_bytes()).expect("it reads");
    drop(input);
    let output = promtool.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
