//! The trace of a run: a hash of everything that happened, and the last records, or all of them, to
//! read.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

use rotor_core::{EventSet, Time, Token};

use crate::faults::Fault;

/// How many records are kept unless all are wanted.
const RECORDS_MAX: usize = 60;

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) time: Time,
    pub(crate) step: u64,
    /// The number of the host, from 1; 0 for the simulation itself.
    pub(crate) host: u32,
    pub(crate) event: TraceEvent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent {
    Started,
    Turn,
    Edge(Token, EventSet),
    Fault(Fault),
    Connect(u32),
    Connected(u32),
    ConnectFailed(u32, &'static str),
    Accepted(u32),
    Closed(u32, u8),
    Shutdown(u32, u8),
    Reset(u32, u8),
    Read(u32, u8, usize),
    ReadEnd(u32, u8),
    Written(u32, u8, usize),
    Blocked(u32, u8, Operation),
    DatagramSent(usize),
    DatagramReceived(usize),
    DatagramRefused,
    /// The length, and a hash of the bytes.
    PacketSent(usize, u32),
    PacketArrived(usize),
    PacketLost(usize),
    Ordered(Token),
    Offloaded(u32),
    JobRan(u32),
    Handler(&'static str, Token, &'static str),
    Partitioned(u32, u32),
    Healed,
    Crashed,
    Exited,
    Note(u32),
}

/// The kind of operation that had to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Read,
    Write,
}

/// The kept records of a run, and the hash of all its records.
pub(crate) struct Trace {
    hash: u64,
    records: VecDeque<Record>,
    keep_all: bool,
    notes: Vec<String>,
}

impl Trace {
    pub(crate) fn new(seed: u64) -> Trace {
        Trace {
            hash: mix(0, seed),
            records: VecDeque::with_capacity(RECORDS_MAX),
            keep_all: false,
            notes: Vec::new(),
        }
    }

    pub(crate) fn keep_all(&mut self) {
        self.keep_all = true;
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        let (kind, a, b) = record.event.numbers();
        let mut hash = mix(self.hash, record.time.as_nanos());
        hash = mix(hash, u64::from(record.host) << 8 | kind);
        hash = mix(hash, a << 20 ^ b);
        self.hash = hash;
        if !self.keep_all && self.records.len() == RECORDS_MAX {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// Keeps a text for [`TraceEvent::Note`], and returns its number.
    pub(crate) fn add_note(&mut self, text: String) -> u32 {
        for byte in text.bytes() {
            self.hash = mix(self.hash, u64::from(byte));
        }
        self.notes.push(text);
        self.notes.len() as u32 - 1
    }

    /// Returns the kept records, one per line.
    pub(crate) fn text(&self, host_name: impl Fn(u32) -> String) -> String {
        let mut text = String::new();
        for record in &self.records {
            let Record { time, step, host, event } = record;
            let (seconds, nanos) =
                (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
            let host = if *host == 0 { "-".to_string() } else { host_name(host - 1) };
            let _ = write!(text, "{seconds:>4}.{nanos:09} step {step:<6} {host:<10} ");
            let _ = match event {
                TraceEvent::Note(number) => writeln!(text, "{}", self.notes[*number as usize]),
                TraceEvent::Partitioned(a, b) => {
                    writeln!(
                        text,
                        "partitioned from each other: {} and {}",
                        host_name(*a),
                        host_name(*b)
                    )
                }
                event => writeln!(text, "{event}"),
            };
        }
        text
    }
}

/// One step of a multiplicative hash: it is cheap, and each input changes all later values.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl TraceEvent {
    /// Returns the record as numbers that are the same in each run.
    #[inline]
    fn numbers(self) -> (u64, u64, u64) {
        let token = |token: Token| token.into_usize() as u64;
        let end = |link: u32, side: u8| u64::from(link) << 1 | u64::from(side);
        match self {
            TraceEvent::Started => (0, 0, 0),
            TraceEvent::Turn => (1, 0, 0),
            TraceEvent::Edge(of, events) => (2, token(of), bits(events)),
            TraceEvent::Fault(fault) => (3, fault as u64, 0),
            TraceEvent::Connect(link) => (4, end(link, 0), 0),
            TraceEvent::Connected(link) => (5, end(link, 0), 0),
            TraceEvent::ConnectFailed(link, _) => (6, end(link, 0), 0),
            TraceEvent::Accepted(link) => (7, end(link, 1), 0),
            TraceEvent::Closed(link, side) => (8, end(link, side), 0),
            TraceEvent::Shutdown(link, side) => (9, end(link, side), 0),
            TraceEvent::Reset(link, side) => (10, end(link, side), 0),
            TraceEvent::Read(link, side, bytes) => (11, end(link, side), bytes as u64),
            TraceEvent::ReadEnd(link, side) => (12, end(link, side), 0),
            TraceEvent::Written(link, side, bytes) => (13, end(link, side), bytes as u64),
            TraceEvent::Blocked(link, side, operation) => (14, end(link, side), operation as u64),
            TraceEvent::DatagramSent(bytes) => (15, bytes as u64, 0),
            TraceEvent::DatagramReceived(bytes) => (16, bytes as u64, 0),
            TraceEvent::Ordered(of) => (17, token(of), 0),
            TraceEvent::Offloaded(job) => (18, u64::from(job), 0),
            TraceEvent::JobRan(job) => (19, u64::from(job), 0),
            TraceEvent::Handler(name, of, answer) => {
                // The lengths distinguish the names well enough. Their addresses would differ from
                // run to run.
                (20, token(of), (name.len() << 8 ^ answer.len()) as u64)
            }
            TraceEvent::Partitioned(a, b) => (21, u64::from(a), u64::from(b)),
            TraceEvent::Healed => (22, 0, 0),
            TraceEvent::Crashed => (23, 0, 0),
            TraceEvent::Exited => (24, 0, 0),
            TraceEvent::Note(number) => (25, u64::from(number), 0),
            TraceEvent::DatagramRefused => (26, 0, 0),
            TraceEvent::PacketSent(bytes, sum) => (27, bytes as u64, u64::from(sum)),
            TraceEvent::PacketArrived(bytes) => (28, bytes as u64, 0),
            TraceEvent::PacketLost(bytes) => (29, bytes as u64, 0),
        }
    }
}

fn bits(events: EventSet) -> u64 {
    let all = [
        EventSet::READABLE,
        EventSet::WRITABLE,
        EventSet::READ_CLOSED,
        EventSet::WRITE_CLOSED,
        EventSet::ERROR,
        EventSet::URGENT,
    ];
    all.iter().enumerate().map(|(bit, event)| u64::from(events.contains(*event)) << bit).sum()
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |side: &u8| if *side == 0 { "client" } else { "server" };
        match self {
            TraceEvent::Started => f.write_str("starts"),
            TraceEvent::Turn => f.write_str("turn"),
            TraceEvent::Edge(token, events) => write!(f, "edge for {token}: {events:?}"),
            TraceEvent::Fault(fault) => write!(f, "FAULT {fault:?}"),
            TraceEvent::Connect(link) => write!(f, "connection {link}: connecting"),
            TraceEvent::Connected(link) => write!(f, "connection {link}: connected"),
            TraceEvent::ConnectFailed(link, why) => write!(f, "connection {link}: failed, {why}"),
            TraceEvent::Accepted(link) => write!(f, "connection {link}: accepted"),
            TraceEvent::Closed(link, side) => {
                write!(f, "connection {link}: closed by the {}", end(side))
            }
            TraceEvent::Shutdown(link, side) => {
                write!(f, "connection {link}: the {} ends its output", end(side))
            }
            TraceEvent::Reset(link, side) => {
                write!(f, "connection {link}: reset reaches the {}", end(side))
            }
            TraceEvent::Read(link, side, bytes) => {
                write!(f, "connection {link}: {} reads {bytes}", end(side))
            }
            TraceEvent::ReadEnd(link, side) => {
                write!(f, "connection {link}: {} reads the end", end(side))
            }
            TraceEvent::Written(link, side, bytes) => {
                write!(f, "connection {link}: {} writes {bytes}", end(side))
            }
            TraceEvent::Blocked(link, side, operation) => {
                let name = if *operation == Operation::Read { "read" } else { "write" };
                write!(f, "connection {link}: {} would block on {name}", end(side))
            }
            TraceEvent::DatagramSent(bytes) => write!(f, "datagram of {bytes} sent"),
            TraceEvent::DatagramReceived(bytes) => write!(f, "datagram of {bytes} received"),
            TraceEvent::DatagramRefused => f.write_str("nobody takes its datagram"),
            TraceEvent::PacketSent(bytes, _) => write!(f, "packet of {bytes} sent"),
            TraceEvent::PacketArrived(bytes) => write!(f, "packet of {bytes} arrives"),
            TraceEvent::PacketLost(bytes) => write!(f, "packet of {bytes} gets nowhere"),
            TraceEvent::Ordered(token) => write!(f, "fires among others of its tick: {token}"),
            TraceEvent::Offloaded(job) => write!(f, "job {job} offloaded"),
            TraceEvent::JobRan(job) => write!(f, "job {job} ran"),
            TraceEvent::Handler(handler, token, answer) => {
                write!(f, "machine {token}: {handler} -> {answer}")
            }
            TraceEvent::Partitioned(..) => f.write_str("partitioned"),
            TraceEvent::Healed => f.write_str("the network heals"),
            TraceEvent::Crashed => f.write_str("CRASH"),
            TraceEvent::Exited => f.write_str("the loop has ended"),
            TraceEvent::Note(_) => f.write_str("note"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(nanos: u64, event: TraceEvent) -> Record {
        Record { time: Time::from_nanos(nanos), step: 3, host: 1, event }
    }

    #[test]
    fn the_hash_depends_on_every_part_and_on_the_order() {
        let hash = |records: &[Record]| {
            let mut trace = Trace::new(1);
            records.iter().for_each(|record| trace.record(*record));
            trace.hash()
        };
        let (a, b) = (record(1, TraceEvent::Turn), record(1, TraceEvent::Read(1, 0, 5)));
        assert_eq!(hash(&[a, b]), hash(&[a, b]));
        let others = [
            [b, a],
            [a, a],
            [a, record(2, TraceEvent::Read(1, 0, 5))],
            [a, record(1, TraceEvent::Read(1, 1, 5))],
        ];
        for other in others {
            assert_ne!(hash(&[a, b]), hash(&other));
        }
    }

    #[test]
    fn the_last_records_are_retained_and_printed() {
        let mut trace = Trace::new(1);
        (0..RECORDS_MAX as u64 + 5).for_each(|nanos| trace.record(record(nanos, TraceEvent::Turn)));
        let note = trace.add_note("a client gives up".into());
        trace.record(record(1_500_000_000, TraceEvent::Note(note)));
        let text = trace.text(|_| "server".into());
        assert_eq!(text.lines().count(), RECORDS_MAX);
        assert!(text.ends_with("1.500000000 step 3      server     a client gives up\n"), "{text}");
    }
}
