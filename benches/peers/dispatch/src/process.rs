//! Contenders as processes: those of this program, and blocking-permit, which is a separate program
//! because its dependencies are old.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::measure;
use crate::work::Work;

/// The argument that makes this program one contender; workload and name follow.
pub(crate) const CONTENDER: &str = "contender";

/// Starts the contenders with `part` in their name.
pub(crate) fn all(work: Work, part: &str) -> Vec<(&'static str, Process)> {
    let mut all = Vec::new();
    let this = std::env::current_exe().expect("this program has a path");
    for (name, _) in crate::contenders(work) {
        if name.contains(part) {
            let mut command = Command::new(&this);
            command.args([CONTENDER, work.name(), name]);
            // The crate `blocking` reads this variable once.
            command.env("BLOCKING_MAX_THREADS", work.threads().to_string());
            all.push((name, Process::start(command)));
        }
    }
    let permit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("permit/target/release/dispatch-permit");
    if !permit.exists() {
        eprintln!("blocking-permit is left out: it is not built");
        return all;
    }
    for (name, way) in [("blocking-permit pool", "dispatch_rx"), ("blocking-permit", "permit")] {
        if name.contains(part) {
            let mut command = Command::new(&permit);
            command.args([way, work.name()]);
            all.push((name, Process::start(command)));
        }
    }
    all
}

/// Runs as this contender: reads numbers of batches, runs that many, and prints how long one of
/// them took, in microseconds of wall-clock time and of CPU time.
pub(crate) fn serve(work: Work, name: &str) {
    let mut contenders = crate::contenders(work).into_iter();
    let (_, set_up) = contenders.find(|(other, _)| *other == name).expect("a contender");
    let run = set_up();
    for line in io::stdin().lock().lines() {
        let batches = line.expect("it can be read").parse().expect("a number of batches");
        let (clock, cpu) = measure::batches(name, work, batches, &run);
        println!("{clock} {cpu}");
    }
}

/// A contender's process, which sleeps while others have their turns.
pub(crate) struct Process {
    child: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(mut command: Command) -> Process {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let asks = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        Process { child, asks, answers }
    }

    pub(crate) fn batches(&mut self, batches: usize) -> (f64, f64) {
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
        // The process ends when its input does.
        drop(self.asks.take());
        let _ = self.child.wait();
    }
}
