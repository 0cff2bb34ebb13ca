//! Runs the programs as processes, with rotor servers on a thread of the test.
#![expect(clippy::disallowed_methods, reason = "the other end is no machine of theirs")]

// The server half of the example `grpc_greeter`.
#[path = "../../grpc_greeter/greeter.rs"]
mod greeter;
#[path = "../../grpc_greeter/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rotor::http::Status;
use rotor::http::server::{
    self, Head, Http2Config, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Server, ServerConfig,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, LoopHandle, Scope};
use rotor_test_kit::Directory;

/// A running server loop; stopped on drop.
struct Served {
    address: SocketAddr,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start<S: Server<Context = (), Seed = ()> + 'static>() -> Served {
        let (told, heard) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut creator =
                Loop::<HttpAccept<S, TcpListener>>::new(&Config::new()).expect("a loop");
            let mut bound = None;
            let added = creator.add_machine_with(|scope| {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let listener =
                    TcpListener::bind(&any, &ListenOptions::new(), scope).expect("a port");
                bound = listener.local_address();
                let http2 = Http2Config::new().prior_knowledge(true);
                let seed = HttpSeed::new((), ServerConfig::new().http2(http2));
                server::listen(listener, seed, scope)
            });
            added.expect("there is room");
            let mut instance = creator.instantiate(());
            told.send((bound.expect("it was bound"), instance.handle())).expect("the test waits");
            instance.run().expect("it runs");
        });
        let (address, handle) = heard.recv().expect("it listens");
        Served { address, handle, thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// Responds with hello, and with 404 to other paths.
struct Hello;

impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let (status, body) = match head.path() {
            "/" => (Status::OK, "Hello!\n"),
            _ => (Status::NOT_FOUND, "nothing\n"),
        };
        response.reply(status, "text/plain", body.as_bytes()).into()
    }
}

/// Runs a program. Returns whether it exited successfully, and its output.
fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(program);
    // A proxy configured on this machine must not be used for our servers.
    let output = command.envs([("no_proxy", "*"), ("NO_PROXY", "*")]).args(arguments).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn a_machine_makes_a_request_with_reqwest() {
    let served = Served::start::<Hello>();
    let program = env!("CARGO_BIN_EXE_with_reqwest");
    let url = format!("http://{}/", served.address);
    assert_eq!(run(program, &[&url]), (true, "Hello!\n".to_owned()));
    assert_eq!(run(program, &[&format!("{url}none")]), (false, String::new()));
}

#[test]
fn a_machine_makes_a_query_with_sqlx() {
    // SQLite creates additional files next to this file.
    let directory = Directory::create();
    let file = directory.join("runs.sqlite");
    let name = file.to_string_lossy();
    let program = env!("CARGO_BIN_EXE_with_sqlx");
    for count in 1..=3 {
        assert_eq!(run(program, &[&name]), (true, format!("run {count} times\n")));
    }
    assert_eq!(run(program, &["/nowhere/there.sqlite"]), (false, String::new()));
}

#[test]
fn a_machine_makes_a_call_with_tonic() {
    let served = Served::start::<greeter::Greeter>();
    let program = env!("CARGO_BIN_EXE_with_tonic");
    let url = format!("http://{}", served.address);
    let said = "Hello, Ann!\nHello, Ann! (1 of 3)\nHello, Ann! (2 of 3)\nHello, Ann! (3 of 3)\n";
    assert_eq!(run(program, &[&url, "Ann"]), (true, said.to_owned()));
    // A server that does not speak gRPC.
    let other = Served::start::<Hello>();
    let url = format!("http://{}", other.address);
    assert_eq!(run(program, &[&url, "Ann"]), (false, String::new()));
}
