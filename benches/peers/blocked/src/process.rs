//! A server's process: its address, its CPU time, its threads.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::BoxError;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    counter: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    is_over: AtomicBool,
    threads_most: AtomicUsize,
}

impl Server {
    /// Starts a server, which prints its address.
    pub(crate) fn start(program: &Path, words: &[&str]) -> Result<Server, BoxError> {
        let mut child = Command::new(program).args(words).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("it has an output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("listening on http://").trim_end_matches('/');
        let address = address.parse();
        let (counts, pid) = (Arc::new(Counts::default()), child.id());
        let counted = counts.clone();
        // Threads are counted by sampling: one that lives for less than an interval is missed.
        let counter = thread::spawn(move || {
            while !counted.is_over.load(Relaxed) {
                counted.threads_most.fetch_max(threads(pid), Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let address = address.unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)));
        Ok(Server { child, address, counter: Some(counter), counts })
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        // The second field is the program's name in parentheses; user and system are 14 and 15, in
        // hundredths of a second.
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
        let ticks = field(14).unwrap_or(0) + field(15).unwrap_or(0);
        Duration::from_millis(ticks * 10)
    }

    pub(crate) fn threads_most(&self) -> usize {
        self.counts.threads_most.load(Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(counter) = self.counter.take() {
            let _ = counter.join();
        }
    }
}

fn threads(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}
