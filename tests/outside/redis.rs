//! `redis_client` with a real server.
#![expect(clippy::disallowed_methods, reason = "a thread that types")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::daemon::Daemon;
use crate::support::{example, program};

/// A server without persistence.
struct Redis(Daemon);

impl Redis {
    fn start(program: &Path) -> Redis {
        Redis(Daemon::start(|directory, port| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]);
            command.arg(directory).args(["--save", "", "--appendonly", "no"]);
            command.args(["--daemonize", "no", "--logfile", ""]).stdout(Stdio::null());
            command
        }))
    }

    /// Our client of it.
    fn client(&self) -> Command {
        let mut command = example("redis_client");
        command.arg(format!("127.0.0.1:{}", self.0.port));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The output of our client for these commands.
    fn ask(&self, commands: &str) -> Vec<String> {
        let mut child = self.client().spawn().expect("it is built");
        let mut input = child.stdin.take().expect("it is a pipe");
        let commands = commands.to_owned();
        let typing = thread::spawn(move || input.write_all(commands.as_bytes()).expect("it reads"));
        let Output { status, stdout, stderr } = child.wait_with_output().expect("it was started");
        typing.join().expect("it types");
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success() && stderr.is_empty(), "{status}\n{stderr}");
        String::from_utf8(stdout).expect("text").lines().map(str::to_owned).collect()
    }
}

#[test]
fn redis_and_our_client_understand_each_other() {
    let Some(program) = program("redis-server") else { return };
    let redis = Redis::start(&program);
    let commands = "PING\nSET greeting hello\nGET greeting\nGET nothing\nINCRBY number 42\nDECRBY number 50\n\
                    RPUSH list a b c\nLRANGE list 0 -1\nLRANGE none 0 -1\nLPUSH greeting x\nNOSUCH\nECHO \u{e9}\n";
    let shown = redis.ask(commands);
    assert_eq!(shown[..2], ["PONG", "OK"]);
    assert_eq!(shown[2..6], ["\"hello\"", "(nil)", "(integer) 42", "(integer) -8"]);
    assert_eq!(shown[6..9], ["(integer) 3", "[\"a\", \"b\", \"c\"]", "[]"]);
    assert!(shown[9].starts_with("(error) WRONGTYPE "), "{}", shown[9]);
    assert!(shown[10].starts_with("(error) ERR unknown command"), "{}", shown[10]);
    assert_eq!(shown[11..], ["\"\\xc3\\xa9\""]);
}

#[test]
fn twenty_thousand_commands_in_a_pipeline_are_answered_in_order() {
    const COMMANDS: usize = 20_000;
    let Some(program) = program("redis-server") else { return };
    let redis = Redis::start(&program);
    let shown = redis.ask(&"INCR counter\n".repeat(COMMANDS));
    let expected: Vec<String> =
        (1..=COMMANDS).map(|number| format!("(integer) {number}")).collect();
    assert!(shown == expected, "{} answers", shown.len());
}

#[test]
fn a_string_of_a_megabyte_is_shown_whole() {
    let Some(program) = program("redis-server") else { return };
    let redis = Redis::start(&program);
    // This is the last byte of the longest string that the client accepts. Redis pads the string
    // with zeros up to it.
    let shown = redis.ask("SETRANGE long 1048575 x\nGET long\nPING\n");
    assert_eq!(shown[0], "(integer) 1048576");
    assert!(
        shown[1] == format!("\"{}x\"", "\\x00".repeat(1_048_575)),
        "{} characters",
        shown[1].len()
    );
    assert_eq!(shown[2..], ["PONG"]);
}

#[test]
fn a_connection_closed_by_redis_is_reopened() {
    let Some(program) = program("redis-server") else { return };
    let redis = Redis::start(&program);
    let mut child = redis.client().stderr(Stdio::null()).spawn().expect("it is built");
    let mut input = child.stdin.take().expect("it is a pipe");
    let mut shown = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    let mut next = || shown.next().expect("it answers").expect("text");
    input.write_all(b"SET key value\nQUIT\n").expect("it reads");
    assert_eq!((next(), next()), ("OK".into(), "OK".into()));
    // This command is either lost with the connection, or sent on the next one.
    input.write_all(b"GET key\n").expect("it reads");
    let first = next();
    assert!(first == "\"value\"" || first.starts_with("(lost) "), "{first}");
    // After a loss, commands are sent on the new connection.
    if first != "\"value\"" {
        input.write_all(b"GET key\n").expect("it reads");
        assert_eq!(next(), "\"value\"");
    }
    drop(input);
    assert!(child.wait().expect("it was started").success());
}
