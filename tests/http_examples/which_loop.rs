//! `which_loop`: runs on the loop that the environment selects.

use std::fs;

use rotor_bench::server::Server;
use rotor_uring::{UringConfig, UringKind};

use crate::client::{ask, command, start_command};

/// How many io_uring descriptors a process has open; zero if there is no `/proc`.
fn rings(server: &Server) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.pid())).into_iter().flatten();
    // A descriptor may be closed meanwhile.
    let names = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    names.filter(|name| name.to_string_lossy().contains("io_uring")).count()
}

#[test]
fn the_hello_server_answers_on_each_loop() {
    let refused = UringKind::new(&UringConfig::new()).probe().err();
    for (name, threads) in [("", 1), ("mio", 2), ("uring", 1), ("uring", 2)] {
        let mut command = command("which_loop");
        command.env("ROTOR_BACKEND", name).env("THREADS", threads.to_string());
        let server = start_command(command);
        let rings_expected = if name == "uring" && refused.is_none() { threads } else { 0 };
        assert_eq!(rings(&server), rings_expected, "{name}, {threads} threads: {refused:?}");
        // Connections are distributed over the threads.
        for _ in 0..16 {
            let (head, body) = ask(&server, "GET /", "", "");
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{name}: {head}");
            assert_eq!(body, "Hello, World!", "{name}");
        }
    }
}

#[test]
fn an_unknown_loop_is_named_in_the_error() {
    let output = command("which_loop").env("ROTOR_BACKEND", "epoll").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("ROTOR_BACKEND is \"epoll\""), "{text}");
}
