//! `http_get` through a proxy that makes tunnels.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::certificates::Certificates;
use crate::client::{PATIENCE, command, start_command};

/// Starts a proxy. It answers each request for a tunnel with these bytes, and then connects the
/// client to `server`, if there is one. Returns its address, and the requests that it gets.
fn start_proxy(
    answer: &'static [u8],
    server: Option<SocketAddr>,
) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (requests, received) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).expect("a whole request");
                head.extend(byte);
            }
            let _test_has_ended = requests.send(String::from_utf8_lossy(&head).into_owned());
            client.write_all(answer).expect("it reads");
            if let Some(server) = server {
                let server = TcpStream::connect(server).expect("it listens");
                connect(&client, &server);
                connect(&server, &client);
            }
        }
    });
    (address, received)
}

/// Copies what arrives from one side to the other, until its end.
fn connect(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("a file"), to.try_clone().expect("a file"));
    thread::spawn(move || {
        let _reset = copy(&mut from, &mut to);
        let _is_gone = to.shutdown(Shutdown::Write);
    });
}

fn get(url: &str, proxy: &str, trusted: &Certificates) -> Output {
    let mut get = command("http_get");
    get.arg(url).env("HTTPS_PROXY", proxy);
    trusted.trusted_by(get).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[test]
fn an_https_page_is_fetched_through_a_proxy_that_knows_the_servers_name() {
    let ours = Certificates::for_names(&["site.test"]);
    let mut server = command("https_server");
    server.args([ours.path("site.crt"), ours.path("site.key")]);
    let server = start_command(server);
    let (proxy, requests) = start_proxy(ESTABLISHED, Some(server.address()));
    // Nobody on this side can look up the name.
    let got = get("https://site.test/", &format!("http://{proxy}"), &ours);
    assert!(got.status.success(), "{}", text(&got.stderr));
    assert_eq!(text(&got.stdout), "Hello, World!");
    let request = requests.recv_timeout(PATIENCE).expect("it was asked");
    assert_eq!(request, "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n");
    let got = get("https://site.test/", &format!("me:secret@{proxy}"), &ours);
    assert_eq!(text(&got.stdout), "Hello, World!", "{}", text(&got.stderr));
    let request = requests.recv_timeout(PATIENCE).expect("it was asked");
    assert!(request.ends_with("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"), "{request}");

    // The certificate is checked as without a proxy.
    let others = Certificates::for_names(&["site.test"]);
    let got = get("https://site.test/", &format!("http://{proxy}"), &others);
    assert!(text(&got.stderr).contains("UnknownIssuer"), "{}", text(&got.stderr));
}

#[test]
fn a_proxy_that_makes_no_tunnel_is_reported_with_its_reason() {
    let ours = Certificates::for_names(&["site.test"]);
    let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let (proxy, _requests) = start_proxy(refusal, None);
    let (not_http, _requests) = start_proxy(b"SSH-2.0-x\r\n", None);
    for (proxy, expected) in [
        (format!("http://{proxy}"), "the proxy has refused the tunnel: 407"),
        (format!("http://{not_http}"), "the proxy's response is malformed"),
        (format!("https://{proxy}"), "HTTPS_PROXY: only proxies that begin with http://"),
        ("proxy:x".into(), "HTTPS_PROXY: the URL has no host, or one that is malformed"),
    ] {
        let got = get("https://site.test/", &proxy, &ours);
        let message = text(&got.stderr);
        assert!(!got.status.success() && message.contains(expected), "{proxy}: {message}");
    }
}
