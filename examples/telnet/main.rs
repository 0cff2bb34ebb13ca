//! Connects to a server, shows what it sends, and sends what is typed.
//!
//! ```text
//! # without an argument: 127.0.0.1:7002, a `line_chat`
//! cargo run --release -p rotor-examples --example telnet [HOST:PORT]
//! ```
//!
//! The end of the input (Ctrl-D) is passed on; the program ends when the server does. A connection
//! that cannot be made, or breaks, is an error.
#![forbid(unsafe_code)]

mod machine;

use std::io::{self, BufRead, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, SyncSender};

use machine::{Telnet, Terminal};
use rotor::net::IpNet;
use rotor::stream::Stream;
use rotor::{Backend, BoxError, Config, Loop, Notifier};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_uring::OnAnyLoop;

/// How many typed lines may wait for the server; then the terminal waits.
const LINES_AHEAD_MAX: usize = 64;

/// The context: the terminal.
struct Console {
    typed: Receiver<Vec<u8>>,
    /// Given to the thread that reads the input when it is started.
    typing: Option<SyncSender<Vec<u8>>>,
    failure: Option<String>,
}

impl Terminal for Console {
    fn typed(&mut self) -> &mut Receiver<Vec<u8>> {
        &mut self.typed
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    fn failed(&mut self, why: String) {
        self.failure = Some(why);
    }

    fn connected(&mut self, notifier: Notifier) {
        let Some(typing) = self.typing.take() else { return };
        let thread = std::thread::Builder::new().name("typing".into());
        if let Err(error) = thread.spawn(move || read_lines(typing, &notifier)) {
            self.failure = Some(format!("what is typed cannot be read: {error}"));
        }
    }
}

/// Reads the input line by line. Reading blocks, so this has a thread of its own, which ends with
/// the program.
fn read_lines(typing: SyncSender<Vec<u8>>, notifier: &Notifier) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let is_over = !matches!(stdin.read_until(b'\n', &mut line), Ok(count) if count > 0);
        if is_over || typing.send(line).is_err() {
            break;
        }
        notifier.wakeup();
    }
    drop(typing);
    notifier.wakeup();
}

fn main() -> ExitCode {
    program::run(telnet)
}

fn telnet() -> Result<(), BoxError> {
    let target = program::argument(1, String::from("127.0.0.1:7002"))?;
    let address = target
        .to_socket_addrs()
        .map_err(|error| format!("{target:?} is no address: {error}"))?
        .next();
    let address = address.ok_or_else(|| format!("{target:?} has no address"))?;
    program::print(&[format!("connecting to {address}")])?;
    on_chosen_loop(Session { target, address })
}

/// The server, as it was named, and its address.
struct Session {
    target: String,
    address: SocketAddr,
}

impl OnAnyLoop for Session {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Session { target, address } = self;
        let (typing, typed) = mpsc::sync_channel(LINES_AHEAD_MAX);
        let mut creator =
            Loop::<Stream<Telnet<Console>, N::Stream>, B>::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| Stream::connect(&address, (), scope))?;
        let console = Console { typed, typing: Some(typing), failure: None };
        let mut instance = creator.instantiate(console);
        instance.run()?;
        match instance.into_context().failure {
            Some(failure) => Err(format!("{target}: {failure}").into()),
            None => Ok(()),
        }
    }
}
