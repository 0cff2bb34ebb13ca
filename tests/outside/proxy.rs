//! nginx as a reverse proxy in front of `http_echo`, with kept-alive connections.
use crate::nginx::start_nginx;
use crate::support::{curl, program, start_example, text};

#[test]
fn nginx_forwards_requests_and_reuses_its_connections() {
    let (Some(nginx), Some(program)) = (program("nginx"), program("curl")) else { return };
    let server = start_example("http_echo");
    let front = start_nginx(
        &nginx,
        &format!(
            "upstream echo {{ server {}; keepalive 8; }}
             server {{
               listen 127.0.0.1:PORT;
               location / {{
                 proxy_pass http://echo;
                 proxy_http_version 1.1;
                 proxy_set_header Connection \"\";
               }}
             }}",
            server.address()
        ),
    );
    let url = format!("http://127.0.0.1:{}/", front.port);
    for number in 0..50 {
        let body = format!("body {number}").repeat(1 + 300 * (number % 3));
        let chunked = if number % 2 == 0 { "Transfer-Encoding: chunked" } else { "A: b" };
        let echoed =
            curl(&program, &["-H", chunked, "-H", "Expect:", "--data-binary", &body, &url]);
        assert_eq!(text(&echoed), body);
    }
    let head = text(&curl(&program, &["-I", &url]));
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let fields = text(&curl(&program, &[&format!("{url}echo")]));
    // HTTP/1.1 connections are persistent without a field that says so.
    assert!(!fields.to_lowercase().contains("connection: close"), "{fields}");
}
