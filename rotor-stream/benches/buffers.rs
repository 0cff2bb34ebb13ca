//! What a buffer costs a request: ours beside netbuf's and a vector that is never given back.
//!
//! ```text
//! cargo bench -p rotor-stream --bench buffers              measures, and prints a table
//! cargo bench -p rotor-stream --bench buffers -- --test    runs every row once with little work
//! ```
//!
//! Rows are *patterns*, columns are *buffers*, which take turns within each round. `kept` is a
//! vector that is cleared but never freed: what the copying alone costs, at the price of a block
//! for every idle connection. To compare another buffer, implement [`Queue`] and add a column in
//! [`main`].
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use rotor_stream::Buf;

/// What a transport does with a buffer.
trait Queue {
    fn new() -> Self;
    fn append(&mut self, bytes: &[u8]);
    fn front(&self) -> &[u8];
    fn consume(&mut self, count: usize);
}

impl Queue for Buf {
    fn new() -> Buf {
        Buf::new()
    }
    fn append(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }
    fn front(&self) -> &[u8] {
        self
    }
    fn consume(&mut self, count: usize) {
        Buf::consume(self, count);
    }
}

impl Queue for netbuf::Buf {
    fn new() -> netbuf::Buf {
        netbuf::Buf::new()
    }
    fn append(&mut self, bytes: &[u8]) {
        let _never_fails = self.write(bytes);
    }
    fn front(&self) -> &[u8] {
        &self[..]
    }
    fn consume(&mut self, count: usize) {
        netbuf::Buf::consume(self, count);
    }
}

/// A vector that is cleared when all of it is consumed.
struct Kept {
    bytes: Vec<u8>,
    consumed: usize,
}

impl Queue for Kept {
    fn new() -> Kept {
        Kept { bytes: Vec::new(), consumed: 0 }
    }
    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    fn front(&self) -> &[u8] {
        &self.bytes[self.consumed..]
    }
    fn consume(&mut self, count: usize) {
        self.consumed += count;
        if self.consumed == self.bytes.len() {
            self.bytes.clear();
            self.consumed = 0;
        }
    }
}

/// A load: what comes in at once, what is made of it at once, and how often in one event.
struct Pattern {
    name: &'static str,
    /// Bytes of a message that comes in; its answer is half as long again.
    message: usize,
    /// Messages that come in together.
    together: usize,
    /// In how many pieces each comes.
    pieces: usize,
    events: usize,
}

const CONNECTIONS: usize = 64;

fn patterns(is_smoke: bool) -> [Pattern; 4] {
    let events = |events| if is_smoke { 200 } else { events };
    [
        Pattern { name: "request", message: 100, together: 1, pieces: 1, events: events(500_000) },
        Pattern {
            name: "pipelined x16",
            message: 100,
            together: 16,
            pieces: 1,
            events: events(100_000),
        },
        Pattern {
            name: "line in 10 pieces",
            message: 100,
            together: 1,
            pieces: 10,
            events: events(200_000),
        },
        Pattern {
            name: "record of 64 KiB",
            message: 65_536,
            together: 1,
            pieces: 4,
            events: events(4_000),
        },
    ]
}

/// Nanoseconds for each message.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn measure<Q: Queue>(pattern: &Pattern) -> f64 {
    let mut connections: Vec<(Q, Q)> = (0..CONNECTIONS).map(|_| (Q::new(), Q::new())).collect();
    let message = vec![b'x'; pattern.message];
    let answer = vec![b'y'; pattern.message * 3 / 2];
    let batch = message.repeat(pattern.together);
    let begun = Instant::now();
    for event in 0..pattern.events {
        let (input, output) = &mut connections[event * 7 % CONNECTIONS];
        for piece in batch.chunks(batch.len().div_ceil(pattern.pieces)) {
            input.append(black_box(piece));
        }
        while input.front().len() >= pattern.message {
            black_box(input.front());
            input.consume(pattern.message);
            output.append(black_box(&answer));
        }
        let written = black_box(output.front()).len();
        output.consume(written);
    }
    begun.elapsed().as_nanos() as f64 / (pattern.events * pattern.together) as f64
}

fn main() {
    // Cargo passes `--bench` from `cargo bench` and nothing from `cargo test`.
    let arguments: Vec<String> = std::env::args().collect();
    let is_smoke =
        !arguments.iter().any(|a| a == "--bench") || arguments.iter().any(|a| a == "--test");
    let rounds = if is_smoke { 1 } else { 9 };
    println!("ns per message, in and out; median of {rounds} rounds (lowest – highest)\n");
    println!("{:<20}{:>26}{:>26}{:>26}", "pattern", "kept", "Buf", "netbuf");
    for pattern in patterns(is_smoke) {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            figures[0].push(measure::<Kept>(&pattern));
            figures[1].push(measure::<Buf>(&pattern));
            figures[2].push(measure::<netbuf::Buf>(&pattern));
        }
        print!("{:<20}", pattern.name);
        for figure in &mut figures {
            figure.sort_by(f64::total_cmp);
            let [lowest, .., highest] = figure[..] else {
                print!("{:>26.1}", figure[0]);
                continue;
            };
            let text = format!("{:.1} ({lowest:.1} – {highest:.1})", figure[rounds / 2]);
            print!("{text:>26}");
        }
        println!();
    }
}
