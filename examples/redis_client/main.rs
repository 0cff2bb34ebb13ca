//! Sends commands to a Redis server and shows its answers.
//!
//! ```text
//! printf 'SET greeting hello\nGET greeting\n' | cargo run --release -p rotor-examples --example redis_client [ADDRESS:PORT]
//! OK
//! "hello"
//! ```
//!
//! 127.0.0.1:6379 if there is no address. One command a line, words between spaces. Commands are
//! sent without waiting for the answers to those before. When the connection breaks, it is made
//! again; commands that had been sent then are shown as lost, since some of them may have been
//! obeyed. The program ends with the input.
#![forbid(unsafe_code)]

mod machine;
mod resp;

use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};

use machine::{Asks, Command, PIPELINE_MAX, Redis};
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
    /// For the thread that reads commands, until it is started.
    reader: Option<SyncSender<Vec<Vec<u8>>>>,
    waiting: usize,
    is_over: bool,
    link: Link,
}

impl Asks for Console {
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

    fn waiting(&self) -> usize {
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
    // Where this cannot be printed there is nobody to tell.
    let _ = program::print(&[line.to_string()]);
}

/// Reads commands, one a line. Reading blocks, so it has a thread of its own, which ends with the
/// input.
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

/// The server that is asked, by its address.
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
