//! HTTP/2 clients with prior knowledge, on plain connections.

use std::process::Command;

use rotor_bench::server::Server;

use crate::support::{program, run, start_example, text};

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address())
}

#[test]
fn curl_gets_pages_and_sends_bodies_over_http2() {
    let Some(curl) = program("curl") else { return };
    let server = start_example("http_echo");
    let curl = |arguments: &[&str]| {
        let mut command = Command::new(&curl);
        command.args(["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "100"]);
        run(command.arg("--http2-prior-knowledge").args(arguments))
    };
    let output = curl(&["-i", &url(&server, "/")]);
    assert!(text(&output).starts_with("HTTP/2 200"), "{}", text(&output));
    assert!(text(&output).contains("Hello from http_echo"), "{}", text(&output));
    let body = "x".repeat(100_000);
    let output = curl(&["-d", &body, &url(&server, "/")]);
    assert_eq!(output.stdout, body.as_bytes());
    let output = curl(&["-i", "-X", "DELETE", &url(&server, "/")]);
    assert!(text(&output).starts_with("HTTP/2 405"), "{}", text(&output));
    // Not two requests on one connection: with prior knowledge, the second request of curl 7.88
    // fails with any server.
}

#[test]
fn curl_is_not_upgraded_from_http1() {
    let Some(curl) = program("curl") else { return };
    let server = start_example("http_echo");
    let output = run(Command::new(&curl)
        .args(["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "100"])
        .args(["--http2", "-i", &url(&server, "/")]));
    assert!(text(&output).starts_with("HTTP/1.1 200"), "h2c is not offered: {}", text(&output));
}

#[test]
fn nghttp_gets_many_pages_concurrently() {
    let Some(nghttp) = program("nghttp") else { return };
    let server = start_example("http2_hello");
    let page = url(&server, "/");
    let output = run(Command::new(&nghttp).args(["--no-verify-peer", "-m", "50", &page]));
    assert_eq!(text(&output).matches("Hello, World!").count(), 50, "{}", text(&output));
}
