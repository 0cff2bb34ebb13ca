//! Code that the clients share: the body, how it is processed, and how a run is measured.
//!
//! A client is a program that is called with `run WAY ADDRESS DIRECTORY BATCHES` and prints one
//! line of numbers, a [`Figures`]. A batch is sixteen requests at a time, each for a body of 8 MiB
//! in chunks. Of each body every 1,973rd byte is read, so that each page of it is touched.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

/// The number of requests at a time.
pub const BATCH: usize = 16;

/// The length of a body, in bytes.
pub const BODY: usize = 8 << 20;

/// The interval between ticks of a client's loop.
pub const BEAT: Duration = Duration::from_millis(1);

/// One in this many bytes is read: a prime number, and less than half of a page.
const STEP: usize = 1_973;

/// A summary of a body.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    len: usize,
    /// The position of the next byte to read, from the end of what was processed.
    next: usize,
    most: u8,
}

impl Summary {
    pub fn add(&mut self, piece: &[u8]) {
        let mut at = self.next;
        while let Some(octet) = piece.get(at) {
            self.most = self.most.max(*octet);
            at += STEP;
        }
        self.next = at - piece.len();
        self.len += piece.len();
    }

    /// Checks the summary.
    ///
    /// # Panics
    ///
    /// If it was not the whole body.
    pub fn check(&self) {
        assert_eq!((self.len, self.most), (BODY, 255), "another body");
    }
}

/// Returns the bytes of a body.
pub fn octets() -> Vec<u8> {
    (0..BODY).map(|at| (at / 4_096 * 7 + at) as u8).collect()
}

/// The arguments of a client.
#[derive(Debug, Clone)]
pub struct Task {
    pub way: String,
    pub address: String,
    pub directory: String,
    pub batches: usize,
}

impl Task {
    /// Parses the arguments after `run`.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Option<Task> {
        Some(Task {
            way: words.next()?,
            address: words.next()?,
            directory: words.next()?,
            batches: words.next()?.parse().ok()?,
        })
    }
}

/// How late the ticks of a loop were.
#[derive(Debug, Default)]
pub struct Lateness(Vec<u32>);

impl Lateness {
    /// Notes that a tick that was due at this time happens now.
    pub fn note(&mut self, due: Instant) {
        self.0.push(Instant::now().saturating_duration_since(due).as_micros() as u32);
    }

    fn percentile(&mut self, percent: usize) -> u32 {
        self.0.sort_unstable();
        self.0.get(self.0.len() * percent / 100).copied().unwrap_or(0)
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// For one batch.
    pub clock_ms: f64,
    /// For one batch.
    pub cpu_ms: f64,
    pub late_us: f64,
    pub peak_mib: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { clock_ms, cpu_ms, late_us, peak_mib } = self;
        write!(f, "{clock_ms} {cpu_ms} {late_us} {peak_mib}")
    }
}

impl FromStr for Figures {
    type Err = String;

    fn from_str(line: &str) -> Result<Figures, String> {
        let numbers: Vec<f64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [clock_ms, cpu_ms, late_us, peak_mib] = numbers[..] else {
            return Err(format!("{line:?} is no line of figures"));
        };
        Ok(Figures { clock_ms, cpu_ms, late_us, peak_mib })
    }
}

/// A run that is being measured, from when connections are open and memory is allocated.
pub struct Run {
    began: Instant,
    cpu: Duration,
}

impl Run {
    pub fn begin() -> Run {
        Run { began: Instant::now(), cpu: cpu_time() }
    }

    pub fn end(self, batches: usize, mut lateness: Lateness) -> Figures {
        let (clock, cpu) = (self.began.elapsed(), cpu_time() - self.cpu);
        let each = |time: Duration| time.as_secs_f64() * 1e3 / batches as f64;
        Figures {
            clock_ms: each(clock),
            cpu_ms: each(cpu),
            late_us: f64::from(lateness.percentile(99)),
            peak_mib: peak_kib() as f64 / 1024.0,
        }
    }
}

/// Returns the CPU time of the process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the peak resident memory.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_in_any_pieces_and_a_short_one_is_none() {
        let body = octets();
        for size in [1_000, 4_096, 65_536, BODY] {
            let mut summary = Summary::default();
            body.chunks(size).for_each(|piece| summary.add(piece));
            summary.check();
        }
        let mut short = Summary::default();
        short.add(&body[1..]);
        assert!(std::panic::catch_unwind(|| short.check()).is_err());
    }

    #[test]
    fn figures_are_printed_and_read() {
        let figures = Figures { clock_ms: 1.5, cpu_ms: 2.25, late_us: 30.0, peak_mib: 4.0 };
        assert_eq!(figures.to_string().parse(), Ok(figures));
        assert!("1 2 3".parse::<Figures>().is_err());
    }
}
