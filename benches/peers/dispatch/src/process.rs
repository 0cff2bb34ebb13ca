//! Contenders that are programs of their own: blocking-permit, whose dependencies are not today's.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::work::Work;
use crate::{Contender, Runs};

pub(crate) fn contenders(work: Work) -> Vec<Contender> {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("permit/target/release/dispatch-permit");
    if !program.exists() {
        eprintln!("blocking-permit is left out: it is not built");
        return Vec::new();
    }
    let way = |name, way: &str| -> Contender {
        let process = RefCell::new(Process::start(&program, way, work));
        (name, Runs::There(Box::new(move |batches| process.borrow_mut().batches(batches))))
    };
    vec![way("blocking-permit pool", "dispatch_rx"), way("blocking-permit", "permit")]
}

/// It sleeps while others have their turns.
struct Process {
    child: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &Path, way: &str, work: Work) -> Process {
        let mut command = Command::new(program);
        command.args([way, work.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let asks = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        Process { child, asks, answers }
    }

    fn batches(&mut self, batches: usize) -> (f64, f64) {
        let asks = self.asks.as_mut().expect("it is there until the end");
        writeln!(asks, "{batches}").expect("it listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let figures = line.trim().split_once(' ').expect("two numbers");
        let number = |word: &str| word.parse().expect("a number");
        (number(figures.0), number(figures.1))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends when there is nothing more to read.
        drop(self.asks.take());
        let _ = self.child.wait();
    }
}
