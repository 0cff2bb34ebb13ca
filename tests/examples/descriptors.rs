//! A server that runs out of descriptors.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rotor_bench::process::cpu_times;
use rotor_bench::server::Server;

use crate::support::{PATIENCE, connect, example};

const DESCRIPTORS: &str = "20";
const CLIENTS: usize = 40;

#[test]
fn a_server_out_of_descriptors_pauses_warns_and_resumes() {
    let (warnings, writer) = pipe().expect("a descriptor is left");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"")]);
    command.arg(example("tcp_echo_server").get_program()).stderr(writer);
    let server = Server::start(command, PATIENCE).expect("it starts");
    let mut warnings = BufReader::new(warnings).lines().map(|line| line.expect("text"));

    // Measured from before the first warning, which this test may read late.
    let (before, began) = (cpu_times(server.pid()).expect("/proc"), Instant::now());

    // Each client keeps its connection until it is told to close it.
    let (answered, answers) = mpsc::channel::<TcpStream>();
    for _ in 0..CLIENTS {
        let (answered, mut socket) = (answered.clone(), connect(server.address()));
        thread::spawn(move || {
            socket.write_all(b"?").expect("the system takes it");
            socket.read_exact(&mut [0]).expect("it comes back, sooner or later");
            answered.send(socket).expect("the test waits for all");
        });
    }
    let first = warnings.next().expect("a warning");
    assert!(first.contains("connections wait") && first.contains("os error 24"), "{first}");

    let second = warnings.next().expect("another one");
    let (took, used) =
        (began.elapsed(), cpu_times(server.pid()).expect("/proc").since(&before).total());
    assert_eq!(first, second);
    assert!(took > Duration::from_millis(800), "the second warning came within {took:?}");
    assert!(used < took / 4, "{used:?} of {took:?}: it spins");

    // Each answered client closes its connection, which makes room for a waiting one.
    for number in 0..CLIENTS {
        let socket = answers.recv_timeout(PATIENCE);
        drop(socket.unwrap_or_else(|_| panic!("only {number} clients were answered")));
    }
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
    let seconds = began.elapsed().as_secs() as usize;
    let all = 2 + warnings.count();
    assert!(all <= seconds + 2, "{all} warnings in {seconds} s");
}
