//! Sends commands to a Redis server and shows its answers.
//!
//! ```text
//! printf 'SET greeting hello\nGET greeting\n' | cargo run --release -p rotor-examples --example redis_client [ADDRESS:PORT]
//! OK
//! "hello"
//! ```
//!
//! The default address is 127.0.0.1:6379. The input has one command per line, with words separated
//! by spaces. Commands are sent without waiting for the answers to earlier ones. If the connection
//! breaks, it is made again; unanswered commands are then shown as lost, since some of them may
//! have been executed. The input is read once there is a connection; the program ends with it.
#![forbid(unsafe_code)]

mod machine;
mod resp;

use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};

use machine::{Command, CommandSource, PIPELINE_MAX, Redis};
use resp::Reply;
use rotor::net::IpNet;
use rotor::stream::{Link, Persistent, PersistentConfig, PersistentSeed};
use rotor::{Backend, BoxError, Config, Loop, Notifier};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_uring::OnAnyLoop;

/// The context: commands and answers.
struct Console {
    commands: Receiver<Vec<Vec<u8>>>,
    /// Given to the thread that reads commands when it is started.
    reader: Option<SyncSender<Vec<Vec<u8>>>>,
    waiting: usize,
    is_over: bool,
    link: Link,
}

impl CommandSource for Console {
    fn connected(&mut self, notifier: Notifier) {
        let Some(sender) = self.reader.take() else { return };
        let thread = std::thread::Builder::new().name("commands".into());
        if let Err(error) = thread.spawn(move || read_commands(sender, &notifier)) {
            log::error!("commands cannot be read: {error}");
        }
    }

    fn command(&mut self) -> Command {
        match self.commands.try_recv() {
            Ok(words) => {
                self.waiting += 1;
                Command::Words(words)
            }
            Err(TryRecvError::Empty) => Command::NoneYet,
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                self.close_if_done();
                Command::End
            }
        }
    }

    fn answered(&mut self, reply: Reply) {
        self.waiting -= 1;
        show(&reply.to_string());
        self.close_if_done();
    }

    fn lost(&mut self, why: String) {
        for _ in 0..std::mem::take(&mut self.waiting) {
            show(&format!("(lost) {why}"));
        }
        log::warn!("not connected: {why}");
        self.close_if_done();
    }

    fn unanswered_count(&self) -> usize {
        self.waiting
    }
}

impl Console {
    fn close_if_done(&self) {
        if self.is_over && self.waiting == 0 {
            self.link.close();
        }
    }
}

fn show(line: &str) {
    // If this cannot be printed, nothing else can be done.
    let _ = program::print(&[line.to_string()]);
}

/// Reads commands, one per line. Reading blocks, so this has a thread of its own, which ends with
/// the input.
fn read_commands(sender: SyncSender<Vec<Vec<u8>>>, notifier: &Notifier) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<Vec<u8>> =
            line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        if !words.is_empty() && sender.send(words).is_err() {
            break;
        }
        notifier.wakeup();
    }
    drop(sender);
    notifier.wakeup();
}

fn main() -> ExitCode {
    program::run(redis)
}

fn redis() -> Result<(), BoxError> {
    on_chosen_loop(Server(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 6379)))?))
}

/// The server, by its address.
struct Server(SocketAddr);

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Server(target) = self;
        let (sender, commands) = mpsc::sync_channel(PIPELINE_MAX);
        let link = Link::new();
        let config = PersistentConfig::new();
        let seed = PersistentSeed::new(target, ()).config(config).link(link.clone());
        let console = Console { commands, reader: Some(sender), waiting: 0, is_over: false, link };
        let mut creator = Loop::<Persistent<Redis<Console>, N::Stream>, B>::with_backend(
            backend,
            &Config::new(),
        )?;
        creator.add_machine_with(|scope| Persistent::new(seed, scope))?;
        creator.instantiate(console).run()?;
        Ok(())
    }
}
