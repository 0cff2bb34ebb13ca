//! The error messages of the examples for invalid arguments.

use std::net::{TcpListener, UdpSocket};

use crate::support::run_example;

/// Programs whose first argument is a numeric address.
const PROGRAMS: [&str; 20] = [
    "backend_pool",
    "tcp_echo_server",
    "udp_echo_server",
    "udp_sessions",
    "two_protocols",
    "key_value",
    "line_chat",
    "line_echo",
    "tcp_proxy",
    "redis_client",
    "http_echo",
    "inspected",
    "metrics",
    "notes",
    "static_files",
    "streaming",
    "todo_backend",
    "upgrade_echo",
    "upload",
    "upload_to_disk",
];

/// Programs that return the library's error from `main`.
const FIRST_PROGRAMS: [&str; 2] = ["hello_world_server", "threaded_hello_world"];

/// Runs an example that must fail without a panic. Returns its error message, a single line.
fn refusal(name: &str, arguments: &[&str]) -> String {
    let output = run_example(name, arguments);
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{name}: {message}");
    let message = message.replacen("Error: ", "error: ", 1);
    assert!(message.starts_with("error: ") && message.lines().count() == 1, "{name}: {message}");
    message
}

#[test]
fn an_invalid_address_is_refused_with_an_example() {
    for program in PROGRAMS {
        for wrong in ["nonsense", "localhost", "127.0.0.1", "127.0.0.1:70000", "", "--help"] {
            let message = refusal(program, &[wrong]);
            assert!(
                message.contains(&format!("{wrong:?} should be like 127.0.0.1:")),
                "{program}: {message}"
            );
        }
    }
    for program in FIRST_PROGRAMS {
        for wrong in ["nonsense", "localhost", "127.0.0.1", "127.0.0.1:70000", "", "--help"] {
            let message = refusal(program, &[wrong]);
            assert!(
                message.contains(&format!("{wrong:?}: it should be like 127.0.0.1:")),
                "{message}"
            );
        }
    }
    let message = refusal("tcp_proxy", &["127.0.0.1:0", "upstream"]);
    assert!(message.contains("\"upstream\" should be like 127.0.0.1:7001"), "{message}");
    let message = refusal("tcp_proxy", &["127.0.0.1:0", "127.0.0.1:1", "v3"]);
    assert!(message.contains("\"v3\" should be like send-proxy-v2"), "{message}");
    let message = refusal("everything", &["1", "nonsense"]);
    assert!(message.contains("\"nonsense\" should be like 127.0.0.1:3000"), "{message}");
    assert!(refusal("everything", &["soon"]).contains("\"soon\" should be like 10"));
    let message = refusal("key_value", &["127.0.0.1:0", "0.0.0.0:0"]);
    assert!(message.contains("for this machine only, not on 0.0.0.0:0"), "{message}");
    assert!(refusal("timers", &["many"]).contains("\"many\" should be like 100000"));
    for wrong in ["-1", "0", "256", "18446744073709551615"] {
        let message = refusal("notify_threads", &[wrong]);
        assert!(message.contains(&format!("{wrong:?} should be like 4")), "{message}");
    }
    assert!(refusal("notify_threads", &["1", "0"]).contains("\"0\" should be like 100000"));
}

#[test]
fn a_target_that_does_not_resolve_is_named() {
    for wrong in ["nonsense", "127.0.0.1", "127.0.0.1:70000", "", "--help"] {
        let message = refusal("telnet", &[wrong]);
        assert!(message.starts_with(&format!("error: {wrong:?} is no address: ")), "{message}");
    }
}

#[test]
fn the_proxy_refuses_an_upstream_url_with_a_path() {
    for url in ["http://127.0.0.1:1/base/", "http://127.0.0.1:1/?a=b"] {
        let message = refusal("reverse_proxy", &[url, "127.0.0.1:0"]);
        assert!(message.contains(&format!("without a path: {url}")), "{message}");
    }
}

#[test]
fn a_missing_directory_is_named() {
    let file_servers: [(&str, &[&str]); 3] = [
        ("static_files", &["127.0.0.1:0", "/no/such/directory"]),
        ("rest_service", &["127.0.0.1:0", ":memory:", "/no/such/directory"]),
        ("upload_to_disk", &["127.0.0.1:0", "/dev/null/directory"]),
    ];
    for (server, arguments) in file_servers {
        let directory = arguments.last().expect("there is one");
        let message = refusal(server, arguments);
        assert!(message.contains(&format!(" {directory}: ")), "{server}: {message}");
    }
}

#[test]
fn an_address_in_use_is_named() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let tcp_address = tcp.local_addr().expect("it is bound").to_string();
    let udp_address = udp.local_addr().expect("it is bound").to_string();
    let cases: [(&str, &[&str]); 22] = [
        ("hello_world_server", &[&tcp_address]),
        ("threaded_hello_world", &[&tcp_address]),
        ("tcp_echo_server", &[&tcp_address]),
        ("key_value", &[&tcp_address]),
        ("key_value", &["127.0.0.1:0", &tcp_address]),
        ("line_chat", &[&tcp_address]),
        ("tcp_proxy", &[&tcp_address]),
        ("udp_echo_server", &[&udp_address]),
        ("udp_sessions", &[&udp_address]),
        ("udp_sessions", &["127.0.0.1:0", &tcp_address]),
        ("two_protocols", &[&tcp_address]),
        ("two_protocols", &["127.0.0.1:0", &tcp_address]),
        ("everything", &["1", &tcp_address]),
        ("everything", &["1", "127.0.0.1:0", &udp_address]),
        ("http_echo", &[&tcp_address]),
        ("inspected", &[&tcp_address]),
        ("metrics", &[&tcp_address]),
        ("static_files", &[&tcp_address]),
        ("streaming", &[&tcp_address]),
        ("todo_backend", &[&tcp_address]),
        ("upgrade_echo", &[&tcp_address]),
        ("upload", &[&tcp_address]),
    ];
    for (server, arguments) in cases {
        let address = arguments.last().expect("there is one");
        let message = refusal(server, arguments);
        assert!(
            message.contains(&format!("cannot listen on {address}: Address")),
            "{server}: {message}"
        );
    }
}
