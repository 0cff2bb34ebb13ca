//! `https_server`: TLS clients, reloading the certificate, and clients that do not speak TLS.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rotor_bench::process;
use rotor_bench::server::Server;
use rotor_test_kit::Directory;
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{PATIENCE, again, command, connect, exchange, start_command};

/// The server, with a generated certificate in a temporary directory.
struct Https {
    server: Server,
    directory: Directory,
}

impl Https {
    fn start() -> Https {
        let directory = Directory::create();
        write_certificate(&directory);
        let mut command = command("https_server");
        command.arg(directory.join("chain.pem")).arg(directory.join("key.pem"));
        Https { server: start_command(command), directory }
    }

    /// A connection that trusts the certificate currently in the file.
    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let root = CertificateDer::from_pem_file(self.directory.join("chain.pem"));
        let mut roots = RootCertStore::empty();
        roots.add(root.expect("it is there")).expect("it is well made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("it is a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("it begins");
        StreamOwned::new(client, connect(&self.server))
    }
}

/// Writes a new certificate and a new key to the files.
fn write_certificate(directory: &std::path::Path) {
    let key = KeyPair::generate().expect("there is randomness");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
    let certificate = params.self_signed(&key).expect("it signs");
    fs::write(directory.join("chain.pem"), certificate.pem()).expect("there is room");
    fs::write(directory.join("key.pem"), key.serialize_pem()).expect("there is room");
}

/// Makes the server reload its files.
fn hang_up(server: &Server) {
    process::signal(server.pid(), Signal::HUP).expect("it runs");
}

fn ask(client: &mut (impl Read + Write), target: &str) -> String {
    write!(client, "GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is open");
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&got);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len = crate::client::field(head, "Content-Length").expect("it has a length");
            if body.len() >= len.parse().expect("it is a number") {
                return body.to_owned();
            }
        }
        let count = again(|| client.read(&mut chunk)).expect("the server answers");
        assert!(count > 0, "the end after {}", got.escape_ascii());
        got.extend(&chunk[..count]);
    }
}

#[test]
fn the_server_answers_over_tls_and_reports_the_negotiated_versions() {
    let https = Https::start();
    let mut client = https.connect();
    assert_eq!(ask(&mut client, "/"), "Hello, World!");
    let session = ask(&mut client, "/session");
    assert!(session.starts_with("Tls13 TLS13_"), "{session}");
    assert!(session.ends_with("asked for localhost, from the beginning\n"), "{session}");
}

#[test]
fn a_server_with_two_threads_prints_an_https_url() {
    let mut command = command("https_server");
    command.env("THREADS", "2").arg("127.0.0.1:0").stdout(Stdio::piped());
    let mut server = command.spawn().expect("it starts");
    let mut line = String::new();
    let read = BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut line);
    server.kill().and_then(|()| server.wait()).expect("it ran");
    read.expect("it prints");
    assert!(line.starts_with("listening on https://127.0.0.1:"), "{line}");
    assert!(line.ends_with("/ with 2 threads\n"), "{line}");
}

#[test]
fn plaintext_http_is_told_to_use_https() {
    let https = Https::start();
    let answer = exchange(&https.server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.ends_with("with https:// in front of the address.\n"), "{answer}");
}

#[test]
fn sighup_reloads_the_certificate_and_keeps_connections() {
    let https = Https::start();
    let mut before = https.connect();
    assert_eq!(ask(&mut before, "/"), "Hello, World!");
    write_certificate(&https.directory);
    hang_up(&https.server);
    // Until the signal has arrived, the server presents the old certificate, which is no longer in
    // the file.
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let mut after = https.connect();
        let sent = write!(after, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        if sent.is_ok() && after.read_to_string(&mut answer).is_ok() {
            assert!(answer.ends_with("Hello, World!"), "{answer}");
            break;
        }
        assert!(std::time::Instant::now() < until, "the certificate is not read again");
    }
    assert_eq!(ask(&mut before, "/"), "Hello, World!", "it was there before");

    // Invalid files change nothing.
    fs::write(https.directory.join("key.pem"), "no key").expect("there is room");
    hang_up(&https.server);
    assert_eq!(ask(&mut https.connect(), "/"), "Hello, World!");
}

#[test]
fn the_server_generates_a_certificate_by_default_and_drains() {
    let server = start_command(command("https_server"));
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success());
}
