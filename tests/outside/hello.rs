//! The hello servers. All answer `GET /` with 200 and `Hello, World!`.
#![expect(
    clippy::disallowed_methods,
    reason = "a client with a plain blocking socket, outside of any loop"
)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use rotor_bench::server::Server;

use crate::support::{PATIENCE, ask, program, run, start_example, text};

/// The last one runs on io_uring if the system allows it.
const HELLO_SERVERS: [&str; 3] = ["hello_world_server", "threaded_hello_world", "which_loop"];

/// The URL with a trailing slash, as the servers print it.
fn url(server: &Server) -> String {
    format!("http://{}/", server.address())
}

#[test]
fn every_pipelined_answer_is_right() {
    for example in HELLO_SERVERS {
        let server = start_example(example);
        for pipeline in [1, 2, 16, 500] {
            ask(&server, 50, pipeline, 20_000)
                .unwrap_or_else(|e| panic!("{example}, {pipeline} at a time: {e}"));
        }
    }
}

#[test]
fn curl_gets_the_page() {
    let Some(curl) = program("curl") else { return };
    for example in HELLO_SERVERS {
        let server = start_example(example);
        let output = run(curl_command(&curl).arg("-v").arg(url(&server)));
        assert_eq!(output.stdout, b"Hello, World!", "{example}: {}", text(&output));
        assert!(text(&output).contains("< HTTP/1.1 200 OK"), "{example}: {}", text(&output));
    }
}

#[test]
fn curl_reuses_its_connection_for_a_second_request() {
    let Some(curl) = program("curl") else { return };
    for example in HELLO_SERVERS {
        let server = start_example(example);
        let each =
            [" %{http_code}, connections made: %{num_connects}\\n", &url(&server), &url(&server)];
        let output = run(curl_command(&curl).arg("-w").args(each));
        let expected =
            "Hello, World! 200, connections made: 1\nHello, World! 200, connections made: 0\n";
        assert_eq!(text(&output), expected, "{example}");
    }
}

/// curl, without the user's configuration and without a proxy.
fn curl_command(curl: &Path) -> Command {
    let mut command = Command::new(curl);
    command.args(["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "100"]);
    command
}

/// By default wrk counts a response after more than two seconds as an error. On a busy machine it
/// is none.
const WRK: [&str; 5] = ["-t2", "-c50", "-d1s", "--timeout", "30s"];

#[test]
fn wrk_meets_no_error() {
    let Some(wrk) = program("wrk") else { return };
    for example in HELLO_SERVERS {
        let server = start_example(example);
        check_wrk(example, Command::new(&wrk).args(WRK).arg(url(&server)));
    }
}

#[test]
fn wrk_meets_no_error_when_it_pipelines() {
    let Some(wrk) = program("wrk") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/outside/pipeline.lua");
    for example in HELLO_SERVERS {
        let server = start_example(example);
        let arguments = ["-s", script, &url(&server), "--", "16"];
        check_wrk(example, Command::new(&wrk).args(WRK).args(arguments));
        ask(&server, 1, 1, 1).unwrap_or_else(|e| panic!("{example}, after wrk: {e}"));
    }
}

/// How often wrk is run for a second. If two programs share a core, one of them may not run in that
/// second.
const SECONDS_MAX: u32 = 30;

/// wrk exits successfully even after errors; only its report shows them.
fn check_wrk(example: &str, command: &mut Command) {
    for _ in 0..SECONDS_MAX {
        let report = text(&run(command));
        for complaint in ["Socket errors", "Non-2xx"] {
            assert!(!report.contains(complaint), "{example}:\n{report}");
        }
        let (_, after_requests) = report.split_once("connections\n").unwrap_or_default();
        let answered = after_requests
            .split_once(" requests in")
            .and_then(|(before, _)| before.split_ascii_whitespace().last()?.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{example}: no number of requests:\n{report}"));
        if answered > 0 {
            return;
        }
    }
    panic!("{example}: nothing was answered");
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let lines_without_end = b"a: b\r\n".repeat(100_000);
    let garbage: [&[u8]; 8] = [
        b"",
        b"\r\n\r\n\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 is how TLS begins",
        &[0xff; 100_000],
        &lines_without_end,
    ];
    for example in HELLO_SERVERS {
        let server = start_example(example);
        let mut bystander = ask(&server, 1, 1, 1).expect("a right answer before");
        for bytes in garbage {
            send_to_the_end(server.address(), bytes);
            let excerpt = bytes[..bytes.len().min(20)].escape_ascii();
            bystander
                .run(1)
                .unwrap_or_else(|e| panic!("{example}, old connection, after {excerpt}: {e}"));
            ask(&server, 1, 1, 1)
                .unwrap_or_else(|e| panic!("{example}, new one, after {excerpt}: {e}"));
        }
    }
}

/// Sends the bytes and shuts down, then reads until the server closes too.
fn send_to_the_end(address: SocketAddr, bytes: &[u8]) {
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    // The server may respond and close before it has read everything. Then these writes fail, and a
    // reset ends the read.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    if let Err(e) = socket.read_to_end(&mut Vec::new()) {
        let timed_out =
            matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        assert!(!timed_out, "the server keeps a connection whose peer has ended it");
    }
}

#[test]
fn sigterm_drains_and_exits_with_success() {
    for example in HELLO_SERVERS {
        let server = start_example(example);
        // These connections stay open and idle until the server closes them.
        let clients = ask(&server, 10, 1, 100).expect("right answers");
        let status = server.terminate(PATIENCE).unwrap_or_else(|e| panic!("{example}: {e}"));
        assert!(status.success(), "{example}: {status}");
        drop(clients);
    }
}
