//! WebSockets through the proxy, over TLS, with either HTTP version for clients and upstreams.
//!
//! ```text
//!   client ── TLS: http/1.1 or h2 ──▶ proxy ── TLS: http/1.1 ─────────────────────▶ the test
//!                                           └─ TLS: h2 ──▶ inner proxy ── in clear ──▶ the test
//! ```
//!
//! The test is the upstream. It gets the response to a handshake from `ws_echo`, which is not part
//! of the proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rotor_bench::server::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Certificates;
use crate::client::{PATIENCE, again, command, field, start, start_command};
use crate::tunnel_client::{Answer, End, KEY, PROOF, TunnelClient};
use crate::upstream::{agreement, read_head};

/// The protocols of clients and of upstreams.
const PAIRS: [(&str, &str); 4] =
    [("http/1.1", "http/1.1"), ("http/1.1", "h2"), ("h2", "http/1.1"), ("h2", "h2")];

/// The upstream's end of a connection.
trait Socket: Read + Write + Send {
    /// Shuts down its write side.
    fn end(&mut self);
}

impl Socket for TcpStream {
    fn end(&mut self) {
        self.shutdown(Shutdown::Write).expect("it is open");
    }
}

impl Socket for StreamOwned<ServerConnection, TcpStream> {
    fn end(&mut self) {
        self.conn.send_close_notify();
        self.flush().expect("the proxy reads");
    }
}

/// One or two proxies between a client and an upstream.
struct Rig {
    certificates: Certificates,
    proxies: Vec<Server>,
    connections: Receiver<TcpStream>,
    /// Set if the last connection to the upstream is encrypted.
    tls: Option<Arc<ServerConfig>>,
    echo: Server,
}

impl Rig {
    fn new(upstream: &str) -> Rig {
        let certificates = Certificates::for_names(&["127.0.0.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (accepted, connections) = channel();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let _test_is_over = accepted.send(socket);
            }
        });
        let proxy_to = |url: String| {
            let mut proxy = command("reverse_proxy");
            proxy.arg(url);
            start_command(certificates.shown_by(certificates.trusted_by(proxy)))
        };
        let mut proxies = Vec::new();
        if upstream == "h2" {
            proxies.push(proxy_to(format!("http://{address}/")));
        }
        let next = proxies.first().map_or(address, Server::address);
        proxies.insert(0, proxy_to(format!("https://{next}/")));
        let tls = (upstream != "h2").then(|| tls_of(&certificates));
        Rig { certificates, proxies, connections, tls, echo: start("ws_echo") }
    }

    fn client(&self, protocol: &str) -> TunnelClient {
        TunnelClient::connect(&self.proxies[0], &self.certificates, protocol)
    }

    /// Waits for a request to the upstream. Returns its end of the connection, and the head.
    fn asked(&self) -> (Box<dyn Socket>, String) {
        let socket = self.connections.recv_timeout(PATIENCE).expect("the proxy connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let mut socket: Box<dyn Socket> = match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                let tls = ServerConnection::new(tls.clone()).expect("it is well made");
                Box::new(StreamOwned::new(tls, socket))
            }
        };
        let head = read_head(&mut *socket);
        (socket, head)
    }

    /// The response of a WebSocket server to this request, with an additional field.
    fn agreement(&self, head: &str, more: &str) -> String {
        agreement(self.echo.address(), head, more)
    }
}

fn tls_of(certificates: &Certificates) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(certificates.path("site.crt")).expect("a file");
    let key = PrivateKeyDer::from_pem_file(certificates.path("site.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are some")
        .with_no_client_auth()
        .with_single_cert(chain.map(|one| one.expect("one")).collect(), key)
        .expect("they belong together");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// A client with an accepted WebSocket, and its upstream.
fn opened(rig: &Rig, protocol: &str) -> (TunnelClient, Box<dyn Socket>) {
    let mut client = rig.client(protocol);
    let (answer, upstream) = ask(rig, &mut client, &[], |head| rig.agreement(head, ""));
    assert_eq!(answer.status, if protocol == "h2" { 200 } else { 101 });
    (client, upstream)
}

/// The client sends a request, and the upstream answers with the result of `says`.
fn ask(
    rig: &Rig,
    client: &mut TunnelClient,
    fields: &[(&str, &str)],
    says: impl FnOnce(&str) -> String,
) -> (Answer, Box<dyn Socket>) {
    thread::scope(|threads| {
        // `TunnelClient::ask` blocks until the head of the response has arrived.
        let answer = threads.spawn(|| client.ask("/chat", fields));
        let (mut upstream, head) = rig.asked();
        upstream.write_all(says(&head).as_bytes()).expect("the proxy reads");
        (answer.join().expect("it is answered"), upstream)
    })
}

#[test]
fn a_websocket_passes_between_any_two_versions_of_http() {
    for (client_speaks, upstream_speaks) in PAIRS {
        let rig = Rig::new(upstream_speaks);
        let mut client = rig.client(client_speaks);
        let fields = [
            ("sec-websocket-protocol", "chat.v2, chat.v1"),
            ("sec-websocket-extensions", "permessage-deflate"),
            ("x-mine", "yes"),
        ];
        let mut asked = String::new();
        let (answer, mut upstream) = ask(&rig, &mut client, &fields, |head| {
            asked = head.to_owned();
            rig.agreement(head, "Sec-WebSocket-Protocol: chat.v1\r\n")
        });
        let pair = format!("{client_speaks} to {upstream_speaks}: {asked}");
        // Fields that the two ends negotiate are passed on.
        assert!(asked.starts_with("GET /chat HTTP/1.1\r\n"), "{pair}");
        for (name, value) in fields.iter().chain(&[("Origin", "https://a.example")]) {
            assert_eq!(field(&asked, name), Some(*value), "{pair}");
        }
        assert_eq!(answer.field("sec-websocket-protocol"), Some("chat.v1"), "{pair}");
        let extensions = answer.field("sec-websocket-extensions").unwrap_or_default();
        assert!(extensions.starts_with("permessage-deflate"), "{pair}");
        // Fields that belong to one connection are not passed on.
        assert_ne!(field(&asked, "Sec-WebSocket-Key"), Some(KEY), "{pair}");
        let (status, proof) = if client_speaks == "h2" { (200, None) } else { (101, Some(PROOF)) };
        let own = (answer.status, answer.field("sec-websocket-accept"));
        assert_eq!(own, (status, proof), "{pair}");
        let asked = asked.to_lowercase();
        let ways: Vec<&str> = asked.lines().filter_map(|line| line.strip_prefix("via: ")).collect();
        let version = |protocol| if protocol == "h2" { "2" } else { "1.1" };
        let mut expected = vec![format!("{} rotor", version(client_speaks))];
        if upstream_speaks == "h2" {
            expected.push("2 rotor".to_owned());
        }
        assert_eq!(ways.join(", "), expected.join(", "), "{pair}");
        // More bytes than all windows and buffers hold.
        for round in 0..40 {
            let said = vec![b'a' + round % 26; 50_000];
            client.say(&said);
            let mut heard = vec![0; said.len()];
            upstream.read_exact(&mut heard).expect("the proxy writes");
            assert_eq!(heard, said, "{pair}");
            heard.make_ascii_uppercase();
            upstream.write_all(&heard).and_then(|()| upstream.flush()).expect("the proxy reads");
            assert_eq!(client.hear(said.len()), heard, "{pair}");
        }
        // Each direction ends on its own.
        client.end();
        let mut rest = Vec::new();
        upstream.read_to_end(&mut rest).expect("the end is passed on, in order");
        assert!(rest.is_empty(), "{pair}");
        upstream.write_all(b"last words").expect("the proxy reads");
        upstream.end();
        assert_eq!(client.hear_end(), (b"last words".to_vec(), End::InOrder), "{pair}");
    }
}

#[test]
fn the_end_of_the_upstream_passes_while_the_client_still_sends() {
    for (client_speaks, upstream_speaks) in PAIRS {
        let rig = Rig::new(upstream_speaks);
        let (mut client, mut upstream) = opened(&rig, client_speaks);
        upstream.write_all(b"first").expect("the proxy reads");
        upstream.end();
        assert_eq!(client.hear_end(), (b"first".to_vec(), End::InOrder), "{client_speaks}");
        client.say(b"still here");
        client.end();
        let mut rest = Vec::new();
        upstream.read_to_end(&mut rest).expect("the end is passed on, in order");
        assert_eq!(rest, b"still here", "{client_speaks} to {upstream_speaks}");
    }
}

#[test]
fn an_abort_on_one_side_aborts_the_other() {
    for (client_speaks, upstream_speaks) in PAIRS {
        let rig = Rig::new(upstream_speaks);
        // The client aborts while it sends. Per RFC 8441 §5, CANCEL corresponds to a TCP reset.
        let (mut client, mut upstream) = opened(&rig, client_speaks);
        client.say(b"never to be read");
        upstream.read_exact(&mut [0]).expect("the proxy writes");
        drop(upstream);
        let code = (client_speaks == "h2").then_some(8);
        let pair = format!("{client_speaks} to {upstream_speaks}");
        assert_eq!(client.hear_end(), (Vec::new(), End::Cut(code)), "{pair}");
        let (client, mut upstream) = opened(&rig, client_speaks);
        client.cut();
        let ended = again(|| upstream.read(&mut [0]));
        match upstream_speaks {
            // Over TLS, an end without `close_notify` is an error.
            "http/1.1" => assert!(ended.is_err(), "{pair}: {ended:?}"),
            _ => assert!(!matches!(ended, Ok(1..)), "{pair}: {ended:?}"),
        }
    }
}

#[test]
fn a_side_that_does_not_read_stops_the_other() {
    // More than the peers' sockets and the proxy may hold, by far.
    const COUNT: usize = 24 << 20;
    for (client_speaks, upstream_speaks) in PAIRS {
        let rig = Rig::new(upstream_speaks);
        let (mut client, mut upstream) = opened(&rig, client_speaks);
        thread::scope(|threads| {
            threads.spawn(move || {
                let piece = vec![b'x'; 1 << 20];
                for _ in 0..COUNT / piece.len() {
                    upstream.write_all(&piece).expect("the proxy reads");
                }
                upstream.end();
            });
            // Meanwhile the proxy has the time to read too much.
            let mut other = rig.client("h2");
            (0..500).for_each(|_| other.ping());
            let mut count = 0;
            while count < COUNT {
                let piece = client.hear(64 << 10);
                assert!(piece.iter().all(|octet| *octet == b'x'));
                count += piece.len();
            }
        });
        for proxy in &rig.proxies {
            let status =
                fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap_or_default();
            let kib = |name| {
                let value = status.lines().find_map(|line| line.strip_prefix(name));
                value?.trim().strip_suffix(" kB")?.parse::<usize>().ok()
            };
            // How much of the program itself is in memory depends on the file system.
            if let (Some(peak), Some(program)) = (kib("VmHWM:"), kib("RssFile:")) {
                let kib = peak.saturating_sub(program);
                assert!(kib < 7 << 10, "{client_speaks} to {upstream_speaks}: {kib} KiB");
            }
        }
    }
}

#[test]
fn a_refusal_passes_with_its_body_and_a_wrong_accept_key_is_502() {
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\nX-Why: origin\r\n\r\nnot you";
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n";
    for (client_speaks, upstream_speaks) in PAIRS {
        let rig = Rig::new(upstream_speaks);
        let pair = format!("{client_speaks} to {upstream_speaks}");
        let mut client = rig.client(client_speaks);
        let (answer, upstream) = ask(&rig, &mut client, &[], |_| refusal.to_owned());
        assert_eq!((answer.status, answer.field("x-why")), (403, Some("origin")), "{pair}");
        assert_eq!(client.hear(7), b"not you", "{pair}");
        drop(upstream);
        // In HTTP/2 a 200 would accept the WebSocket.
        let mut client = rig.client(client_speaks);
        let (answer, upstream) = ask(&rig, &mut client, &[], |_| page.to_owned());
        let is_all_of_http1 = (client_speaks, upstream_speaks) == ("http/1.1", "http/1.1");
        assert_eq!(answer.status, if is_all_of_http1 { 200 } else { 502 }, "{pair}");
        drop(upstream);
        for false_one in [
            "Upgrade: websocket\r\n\r\n".to_owned(),
            format!("Upgrade: websocket\r\nSec-WebSocket-Accept: {PROOF}\r\n\r\n"),
            "TWICE".to_owned(),
            "OTHER".to_owned(),
        ] {
            let mut client = rig.client(client_speaks);
            let (answer, _upstream) = ask(&rig, &mut client, &[], |head| match &*false_one {
                "TWICE" => rig.agreement(head, &format!("Sec-WebSocket-Accept: {PROOF}\r\n")),
                "OTHER" => rig.agreement(head, "").replace("Upgrade: websocket", "Upgrade: h2c"),
                fields => format!("{switch}{fields}"),
            });
            assert_eq!(answer.status, 502, "{pair}: {false_one}");
        }
    }
}
