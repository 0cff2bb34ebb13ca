//! `https://`: the clients `http_get` and `crawler`, and `reverse_proxy` with TLS on either side.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;

use rotor_bench::server::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Certificates;
use crate::client::{PATIENCE, again, ask, command, start, start_command};

fn output(mut command: Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Requests this URL, and trusts this issuer.
fn get(url: &str, trusted: &Certificates) -> Output {
    let mut get = command("http_get");
    get.arg(url);
    output(trusted.trusted_by(get))
}

/// Starts a proxy that serves the upstream over TLS.
fn start_tls_proxy(upstream: &str, shown: &Certificates) -> Server {
    let mut proxy = command("reverse_proxy");
    proxy.arg(upstream);
    start_command(shown.shown_by(proxy))
}

fn http(address: SocketAddr) -> String {
    format!("http://{address}/")
}

fn https(address: SocketAddr) -> String {
    format!("https://{address}/")
}

#[test]
fn a_page_is_fetched_over_tls_by_address_and_by_name() {
    let ours = Certificates::for_names(&["localhost", "127.0.0.1"]);
    let hello = start("hello_world_server");
    let proxy = start_tls_proxy(&http(hello.address()), &ours);
    let by_name = format!("https://LocalHost:{}/", proxy.address().port());
    for url in [https(proxy.address()), by_name] {
        let got = get(&url, &ours);
        assert!(got.status.success(), "{url}: {}", text(&got.stderr));
        assert_eq!(text(&got.stdout), "Hello, World!");
    }
}

#[test]
fn a_client_sends_no_request_to_an_untrusted_server() {
    let (ours, others) = (
        Certificates::for_names(&["127.0.0.1", "localhost.example.com"]),
        Certificates::for_names(&["127.0.0.1"]),
    );
    let hello = start("hello_world_server");
    let proxy = start_tls_proxy(&http(hello.address()), &ours);
    let port = proxy.address().port();
    for (url, trusted, expected) in [
        (
            https(proxy.address()),
            &others,
            "the certificate of the peer was not accepted: invalid peer certificate: UnknownIssuer",
        ),
        (
            format!("https://localhost:{port}/"),
            &ours,
            "certificate not valid for name \"localhost\"",
        ),
        (https(hello.address()), &ours, "the server speaks plain HTTP"),
        (http(proxy.address()), &ours, "the server answered 400 Bad Request"),
        ("ftp://127.0.0.1/".into(), &ours, "should be like http://127.0.0.1:8080/"),
    ] {
        let got = get(&url, trusted);
        let said = text(&got.stderr);
        assert!(!got.status.success() && said.contains(expected), "{url}: {said}");
        assert!(!text(&got.stdout).contains("Hello"), "{url}");
    }
    let mut no_roots = command("http_get");
    no_roots.arg(https(proxy.address())).env("SSL_CERT_FILE", ours.path("site.key"));
    no_roots.env_remove("SSL_CERT_DIR");
    let said = text(&output(no_roots).stderr);
    assert!(said.contains("the system has no roots"), "{said}");
}

#[test]
fn a_proxy_uses_tls_to_its_upstream_and_forwards_the_scheme() {
    let (ours, others) =
        (Certificates::for_names(&["127.0.0.1"]), Certificates::for_names(&["127.0.0.1"]));
    let echo = start("http_echo");
    let inner = start_tls_proxy(&http(echo.address()), &ours);
    let outer = |trusted: &Certificates| {
        let mut outer = command("reverse_proxy");
        outer.arg(https(inner.address()));
        start_command(trusted.trusted_by(outer))
    };
    let proxy = outer(&ours);
    for number in 0..20 {
        let body = format!("{number}").repeat(5000);
        let (head, answer) = ask(&proxy, "POST /", "", &body);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(answer.contains(&body), "{number}");
    }
    let distrusts = outer(&others);
    let (head, _) = ask(&distrusts, "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");

    let (address, heads) = crate::upstream::upstream(crate::upstream::says(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ));
    let proxy = start_tls_proxy(&http(address), &ours);
    let got = get(&https(proxy.address()), &ours);
    assert_eq!(text(&got.stdout), "hi");
    let head = heads.recv_timeout(PATIENCE).expect("it was passed on");
    assert!(head.contains("\r\nX-Forwarded-Proto: https\r\n"), "{head}");
}

#[test]
fn a_site_is_crawled_over_tls() {
    let ours = Certificates::for_names(&["127.0.0.1"]);
    fs::write(ours.path("index.html"), "<a href=\"a.html\">x</a><a href=\"b.html\">x</a>")
        .expect("a file");
    fs::write(ours.path("a.html"), "<a href=\"/\">x</a>").expect("a file");
    fs::write(ours.path("b.html"), "").expect("a file");
    let mut files = command("static_files");
    files.current_dir(ours.path(""));
    let files = start_command(files);
    let proxy = start_tls_proxy(&http(files.address()), &ours);
    let mut crawl = command("crawler");
    crawl.arg(https(proxy.address()));
    let said = text(&output(ours.trusted_by(crawl)).stdout);
    assert!(said.contains("3 pages, 0 not found or broken"), "{said}");
}

/// What one connection of a TLS server does: for each of these responses it reads a request and
/// sends the bytes. Then it closes, with or without `close_notify`.
struct ScriptedConnection(Vec<&'static [u8]>, CloseMode);

#[derive(Clone, Copy, PartialEq, Debug)]
enum CloseMode {
    InOrder,
    Cut,
    /// Closes when a second request arrives, like a server whose idle timeout ends at that moment.
    CutOnSecondRequest,
}

/// Starts a TLS server. Its connections follow these scripts, one after the other.
fn start_tls_server(shown: &Certificates, connections: Vec<ScriptedConnection>) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(shown.path("site.crt")).expect("a file");
    let key = PrivateKeyDer::from_pem_file(shown.path("site.key")).expect("a key");
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("there are some")
            .with_no_client_auth()
            .with_single_cert(chain.map(|one| one.expect("one")).collect(), key)
            .expect("they belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        let mut connections = VecDeque::from(connections);
        while let Some(ScriptedConnection(answers, closes)) = connections.pop_front() {
            let Ok((client, _)) = listener.accept() else { return };
            let tls = ServerConnection::new(config.clone()).expect("it is well made");
            let mut client = StreamOwned::new(tls, client);
            for answer in answers {
                if !read_request(&mut client) {
                    return;
                }
                let _ended_early = client.write_all(answer).and_then(|()| client.flush());
            }
            if closes == CloseMode::CutOnSecondRequest {
                read_request(&mut client);
            }
            if closes == CloseMode::InOrder {
                client.conn.send_close_notify();
                let _ended_early = client.flush();
            }
        }
    });
    address
}

/// Reads the head of a request, and a body if it has two bytes.
fn read_request(client: &mut StreamOwned<ServerConnection, TcpStream>) -> bool {
    let (mut head, mut octet) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(again(|| client.read(&mut octet)), Ok(1)) {
            return false;
        }
        head.push(octet[0]);
    }
    let has_body = text(&head).contains("Content-Length: 2\r\n");
    !has_body || client.read_exact(&mut [0; 2]).is_ok()
}

#[test]
fn a_truncated_body_is_an_error_in_any_framing() {
    let ours = Certificates::for_names(&["127.0.0.1"]);
    const CUT: Option<&str> = Some("bad body: the stream ended before the body did");
    const HEADLESS: Option<&str> = Some("the server closed the connection before its response");
    let rows: [(&[u8], Option<&str>, Option<&str>); 8] = [
        // The response, then the expected error after a proper end, and after a truncated one.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole", None, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwhole", CUT, CUT),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
            None,
            None,
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n", CUT, CUT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n", CUT, CUT),
        // RFC 9112 §9.8: only the end of TLS tells how long this body is.
        (b"HTTP/1.1 200 OK\r\n\r\nwhole", None, CUT),
        (b"HTTP/1.1 204 No Content\r\n\r\n", None, None),
        (b"HTTP/1.1 200 OK\r\nContent-Le", HEADLESS, HEADLESS),
    ];
    for (answer, told, cut) in rows {
        for (closes, expected) in [(CloseMode::InOrder, told), (CloseMode::Cut, cut)] {
            let server = start_tls_server(&ours, vec![ScriptedConnection(vec![answer], closes)]);
            let got = get(&https(server), &ours);
            let said = text(&got.stderr);
            let shown = format!("{closes:?} after {}: {said}", text(answer));
            assert_eq!(got.status.success(), expected.is_none(), "{shown}");
            assert!(said.contains(expected.unwrap_or("HTTP/1.1 20")), "{shown}");
        }
    }
}

#[test]
fn a_request_lost_on_a_cut_idle_connection_is_retried_if_idempotent() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let ours = Certificates::for_names(&["127.0.0.1"]);
    for (second, body, expected) in [
        ("GET /", "", "200"),
        ("DELETE /", "", "200"),
        ("POST /", "", "502"),
        // A body that is passed through cannot be sent again.
        ("PUT /", "xx", "502"),
    ] {
        let connections = vec![
            ScriptedConnection(vec![OK], CloseMode::CutOnSecondRequest),
            ScriptedConnection(vec![OK, OK], CloseMode::InOrder),
        ];
        let mut proxy = command("reverse_proxy");
        proxy.arg(https(start_tls_server(&ours, connections)));
        let proxy = start_command(ours.trusted_by(proxy));
        let (head, _) = ask(&proxy, "GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let (head, _) = ask(&proxy, second, "", body);
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{second}: {head}");
    }
}
