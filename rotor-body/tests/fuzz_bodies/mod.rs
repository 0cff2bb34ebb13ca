//! The body of the fuzz target, as an ordinary function: the target in `fuzz/` calls it under
//! libFuzzer, `tests/corpus.rs` calls it on every saved input.
//!
//! **Any bytes make up to three bodies and a disk; a panic is a finding.** The bodies arrive
//! concurrently, in pieces of any size, with a right or wrong announced length. Their collectors
//! share an in-memory spool, which fails in one way. Each body must come back as it was fed, from
//! memory or from a file as its length requires, or fail for a reason that applies. In the end
//! nothing is left, whatever the outcome.

use std::sync::Arc;
use std::time::Duration;

use rotor_body::{Body, Collector, Expected, Faults, Progress, Spool, SpoolConfig, SpoolError};
use rotor_core::{Infallible, Machine, Response, Scope};
use rotor_sim::Sim;
use rotor_stream::{Block, BytesHeld};

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
pub(super) const TARGETS: [Target; 1] = [("spool", run)];

/// Fuzzed bytes that have not been used yet; when they run out, every choice is the first one.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }
}

/// How the disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    ShortWrites(usize),
    FullAt(u64),
    BrokenAt(u64),
    NoDescriptor,
    NoDirectory,
}

impl Fault {
    fn choose(input: &mut Input<'_>) -> Fault {
        let kind = input.byte() % 6;
        let at = usize::from(input.byte()) * 16;
        match kind {
            0 => Fault::None,
            1 => Fault::ShortWrites(at / 16 + 1),
            2 => Fault::FullAt(at as u64),
            3 => Fault::BrokenAt(at as u64),
            4 => Fault::NoDescriptor,
            _ => Fault::NoDirectory,
        }
    }

    fn faults(self) -> Faults {
        match self {
            Fault::None => Faults::none(),
            Fault::ShortWrites(bytes) => Faults::none().short_writes(bytes),
            Fault::FullAt(bytes) => Faults::none().full_at(bytes),
            Fault::BrokenAt(byte) => Faults::none().broken_at(byte),
            Fault::NoDescriptor => Faults::none().without_descriptor(),
            Fault::NoDirectory => Faults::none().without_directory(),
        }
    }

    /// Whether the fault affects a file of `len` bytes, with this announced length.
    fn affects(self, len: u64, announced: u64) -> bool {
        match self {
            Fault::None | Fault::ShortWrites(_) => false,
            Fault::FullAt(bytes) => len.max(announced) > bytes,
            Fault::BrokenAt(byte) => len > byte,
            Fault::NoDescriptor | Fault::NoDirectory => true,
        }
    }

    fn matches_error(self, error: &SpoolError) -> bool {
        match self {
            Fault::None | Fault::ShortWrites(_) => false,
            Fault::FullAt(_) => matches!(error, SpoolError::DiskFull(_)),
            Fault::NoDescriptor => matches!(error, SpoolError::NoDescriptor(_)),
            Fault::BrokenAt(_) | Fault::NoDirectory => matches!(error, SpoolError::Disk(_)),
        }
    }
}

/// The limits of all bodies.
#[derive(Debug, Clone, Copy)]
struct Limits {
    ram: usize,
    body: u64,
    files: usize,
    unwritten: usize,
}

/// One body: its announced length, and the pieces in which it arrives.
#[derive(Debug, Clone)]
struct Plan {
    announced: Option<u64>,
    pieces: Vec<usize>,
    /// Whether the body is complete, or its peer disconnects.
    ends: bool,
    /// Whether more arrives although the collector asked to wait.
    ignores_hold: bool,
}

impl Plan {
    fn choose(input: &mut Input<'_>) -> Plan {
        let (announcing, count) = (input.byte(), input.byte() % 12);
        let pieces: Vec<usize> = (0..count)
            .map(|_| {
                let size = usize::from(input.byte());
                if size < 200 { size } else { (size - 199) * 100 }
            })
            .collect();
        let len: usize = pieces.iter().sum();
        let announced = match announcing % 4 {
            0 => None,
            1 => Some(len as u64),
            2 => Some(len as u64 / 2),
            _ => Some(len as u64 * 2 + 1),
        };
        Plan { announced, pieces, ends: announcing & 64 == 0, ignores_hold: announcing & 128 != 0 }
    }

    fn len(&self) -> u64 {
        self.pieces.iter().sum::<usize>() as u64
    }

    fn bytes(&self) -> Vec<u8> {
        (0..self.len()).map(|at| (at % 251) as u8).collect()
    }
}

/// The context that the machines share.
struct Shared {
    spool: Spool,
    memory: Arc<BytesHeld>,
    body_max: u64,
    plans: Vec<Plan>,
    results: Vec<Option<Result<Body, SpoolError>>>,
}

/// Feeds one body to a collector, one piece per call.
struct Feeder {
    collector: Collector,
    number: usize,
    next: usize,
    fed: usize,
}

impl Feeder {
    fn start(number: usize, scope: &mut Scope<'_, Shared>) -> Response<Feeder, Infallible> {
        let expected = Expected {
            ram_max: usize::MAX,
            bytes_max: scope.body_max,
            announced: scope.plans[number].announced,
            memory: scope.memory.clone(),
        };
        match Collector::begin(Some(&scope.spool.clone()), expected, scope) {
            Ok(collector) => {
                scope.wake_self();
                Response::ok(Feeder { collector, number, next: 0, fed: 0 })
            }
            Err(error) => {
                scope.results[number] = Some(Err(error));
                Response::done()
            }
        }
    }

    /// Feeds the next piece, or the end. Returns `None` if the peer has disconnected.
    fn feed(&mut self, scope: &mut Scope<'_, Shared>) -> Option<Result<Progress, SpoolError>> {
        let plan = &scope.plans[self.number];
        let Some(size) = plan.pieces.get(self.next) else {
            // Nothing comes twice, or after the end.
            let is_end = self.next == plan.pieces.len();
            self.next = usize::MAX;
            return (plan.ends && is_end).then(|| self.collector.end(scope));
        };
        let piece: Vec<u8> = (self.fed..self.fed + size).map(|at| (at % 251) as u8).collect();
        self.next += 1;
        self.fed += size;
        Some(self.collector.add(Block::from(piece), scope))
    }
}

impl Machine for Feeder {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let mut progress = self.collector.poll(scope);
        let has_ended = self.next == usize::MAX;
        let is_held = matches!(progress, Ok(Progress::Hold));
        let takes = matches!(progress, Ok(Progress::More)) && self.collector.takes_more()
            || is_held && scope.plans[self.number].ignores_hold;
        if takes && !has_ended {
            match self.feed(scope) {
                Some(fed) => progress = fed,
                None => return Response::done(),
            }
        }
        match progress {
            Ok(Progress::Done(body)) => scope.results[self.number] = Some(Ok(body)),
            Err(error) => scope.results[self.number] = Some(Err(error)),
            Ok(Progress::More) => {
                scope.wake_self();
                return Response::ok(self);
            }
            // The disk wakes it.
            Ok(_) => {
                if scope.plans[self.number].ignores_hold && self.next != usize::MAX {
                    scope.wake_self();
                }
                return Response::ok(self);
            }
        }
        Response::done()
    }
}

fn run(data: &[u8]) {
    let mut input = Input(data.iter());
    let limits = Limits {
        ram: input.pick(&[0, 1, 100, 1_000, 5_000]),
        body: input.pick(&[1_000_000, 0, 1, 999, 3_000]),
        files: input.pick(&[3, 0, 1, 2]),
        unwritten: input.pick(&[1_000_000, 1, 500, 4_000]),
    };
    let piece = input.pick(&[256, 1, 7, 1_000, 10_000]);
    let fault = Fault::choose(&mut input);
    let count = 1 + usize::from(input.byte() % 3);
    let plans: Vec<Plan> = (0..count).map(|_| Plan::choose(&mut input)).collect();

    let config = SpoolConfig::new("").ram_bytes_max(limits.ram).body_bytes_max(limits.body);
    let config = config.piece_bytes(piece).files_max(limits.files);
    let config = config.unwritten_bytes_max(limits.unwritten);
    let spool = Spool::in_memory(config, fault.faults());
    let memory = BytesHeld::new(1 << 30);
    let results = collect(&spool, &memory, limits.body, &plans);
    for (plan, result) in plans.iter().zip(&results) {
        check(plan, result.as_ref(), limits, fault);
    }
    drop(results);
    assert_eq!(memory.bytes(), 0, "of memory nothing is counted any more");
}

/// The results, from a loop in virtual time. In the end, the spool holds only what the bodies hold.
fn collect(
    spool: &Spool,
    memory: &Arc<BytesHeld>,
    body_max: u64,
    plans: &[Plan],
) -> Vec<Option<Result<Body, SpoolError>>> {
    let mut sim = Sim::new(1);
    let (of_host, plans) = ((spool.clone(), memory.clone()), plans.to_vec());
    let count = plans.len();
    let host = sim.host("host", move |boot| {
        let shared = Shared {
            spool: of_host.0.clone(),
            memory: of_host.1.clone(),
            body_max,
            plans: plans.clone(),
            results: plans.iter().map(|_| None).collect(),
        };
        let mut instance = boot.new_loop::<Feeder>()?.instantiate(shared);
        for number in 0..count {
            // A machine that ends while it is created is not added.
            let _has_ended = instance.add_machine_with(|scope| Feeder::start(number, scope));
        }
        Ok(instance)
    });
    let host = host.expect("it starts");
    sim.run_for(Duration::from_secs(60)).expect("nothing goes wrong by itself");
    // The files of disconnected peers are closed by now; the loop has nothing left to do.
    let results = sim.with(host, |instance| std::mem::take(&mut instance.context_mut().results));
    let results = results.unwrap_or_default();
    let in_files = |result: &&Option<Result<Body, SpoolError>>| matches!(result, Some(Ok(body)) if !body.is_in_memory());
    assert_eq!(spool.files(), results.iter().filter(in_files).count(), "others are closed");
    assert_eq!(spool.unwritten_bytes(), 0);
    results
}

fn check(plan: &Plan, result: Option<&Result<Body, SpoolError>>, limits: Limits, fault: Fault) {
    let (len, announced) = (plan.len(), plan.announced.unwrap_or(0));
    let needs_file = len.max(announced) > limits.ram as u64;
    match result {
        None => assert!(!plan.ends, "nothing has come of {plan:?}"),
        Some(Ok(body)) => {
            assert!(plan.ends && len.max(announced) <= limits.body, "{plan:?}");
            assert_eq!(body.len(), len);
            assert_eq!(body.is_in_memory(), !needs_file || len == 0, "{plan:?} {limits:?}");
            assert!(!needs_file || !fault.affects(len, announced), "{plan:?} {fault:?}");
            let mut bytes = vec![0; len as usize];
            let mut at = 0;
            while at < bytes.len() {
                at += body.read_at(at as u64, &mut bytes[at..]).expect("it can be read");
            }
            assert!(bytes == plan.bytes(), "another body than {plan:?}");
        }
        Some(Err(SpoolError::TooLarge)) => {
            assert!(len.max(announced) > limits.body, "{plan:?} {limits:?}");
        }
        Some(Err(SpoolError::NoRoom)) => {
            assert!(needs_file && limits.files < 3, "{plan:?} {limits:?}");
        }
        Some(Err(error)) => {
            assert!(needs_file && fault.matches_error(error), "{plan:?} {fault:?}: {error}");
        }
    }
}
