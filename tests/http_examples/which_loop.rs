//! `which_loop`: on the loop that the environment names.

use crate::client::{ask, command, start_command};

#[test]
fn the_hello_server_answers_on_each_loop() {
    for name in ["", "mio", "uring"] {
        let mut command = command("which_loop");
        command.env("ROTOR_BACKEND", name);
        let server = start_command(command);
        for _ in 0..3 {
            let (head, body) = ask(&server, "GET /", "", "");
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{name}: {head}");
            assert_eq!(body, "Hello, World!", "{name}");
        }
    }
}

#[test]
fn a_loop_that_there_is_not_is_named_in_the_error() {
    let output = command("which_loop").env("ROTOR_BACKEND", "epoll").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("ROTOR_BACKEND is \"epoll\""), "{text}");
}
