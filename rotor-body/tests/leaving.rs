//! A peer that disconnects while its bytes wait for a thread to write them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rotor_body::{Collector, Expected, Progress, Spool, SpoolConfig};
use rotor_core::{Config, Infallible, Loop, Machine, OffloadPool, Response, Scope};
use rotor_stream::{Block, BytesHeld};
use rotor_test_kit::Directory;

/// The context of the machine.
struct World {
    spool: Spool,
    pool: OffloadPool,
    /// Counts the bytes of bodies that are kept in memory.
    memory: Arc<BytesHeld>,
    /// Given to the only thread, which waits until the test drops the other end.
    gate: Option<Receiver<()>>,
    /// The number of blocks of 1,000 bytes that the collector took while that thread was blocked.
    taken: usize,
}

impl World {
    /// The pool has one thread, which waits until the returned sender is dropped.
    fn new(
        directory: &Directory,
        config: impl FnOnce(SpoolConfig) -> SpoolConfig,
    ) -> (World, Sender<()>) {
        let pool = OffloadPool::new(1, 10);
        let spool = SpoolConfig::new(&**directory).ram_bytes_max(1_000).piece_bytes(4_000);
        let spool = config(spool.keep_free_bytes(0).pool(pool.clone()));
        let spool = spool.open().expect("it can be written");
        let (open, gate) = channel();
        (World { spool, pool, memory: BytesHeld::new(1 << 20), gate: Some(gate), taken: 0 }, open)
    }
}

/// Adds all blocks that its collector takes while the thread is blocked, and ends.
struct Leaver(Collector);

impl Leaver {
    /// A body with this announced length, of which blocks of these lengths have arrived.
    fn start(scope: &Scope<'_, World>, announced: Option<u64>, bytes: &[usize]) -> Leaver {
        let memory = scope.memory.clone();
        let expected = Expected { ram_max: 1_000, bytes_max: 1 << 20, announced, memory };
        let begun = Collector::begin(Some(&scope.spool), expected, scope);
        let mut collector = begun.expect("it may");
        for len in bytes {
            let added = collector.add(Block::from(vec![7; *len]), scope);
            assert!(!matches!(added.expect("nothing fails"), Progress::Done(_)));
        }
        Leaver(collector)
    }
}

/// Runs the loop until the machine has ended. Returns how many blocks its collector took.
fn run(world: World, announced: Option<u64>, bytes: &[usize]) -> usize {
    let creator = Loop::<Leaver>::new(&Config::new()).expect("a loop can be made");
    let mut instance = creator.instantiate(world);
    let added =
        instance.add_machine_with(|scope| Response::ok(Leaver::start(scope, announced, bytes)));
    added.expect("a slot is free");
    instance.run().expect("it runs until the machine has ended");
    instance.context().taken
}

impl Machine for Leaver {
    type Context = World;
    type Seed = Infallible;

    /// The file is open.
    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Leaver, Infallible> {
        let gate = scope.gate.take().expect("it is woken once");
        let mut waits = Some(move || {
            let _opened = gate.recv();
        });
        let is_taken = scope.pool.offer(&mut || {
            let waits = waits.take();
            Box::new(move || waits.into_iter().for_each(|wait| wait()))
        });
        assert!(is_taken);
        let _writes = self.0.poll(scope).expect("nothing fails");
        while self.0.takes_more() {
            scope.taken += 1;
            let added = self.0.add(Block::from(vec![7; 1_000]), scope);
            assert!(!matches!(added.expect("nothing fails"), Progress::Done(_)));
        }
        Response::done()
    }
}

#[test]
fn queued_writes_are_counted_after_their_peer_is_gone() {
    let directory = Directory::create();
    let (world, open) = World::new(&directory, |config| config);
    let spool = world.spool.clone();
    // Two pieces, which are held by the jobs that were to write them.
    assert_eq!((run(world, Some(100_000), &[]), spool.unwritten_bytes()), (8, 8_000));
    drop(open);
    while spool.files() > 0 || spool.bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(spool.unwritten_bytes(), 0);
}

#[test]
fn bytes_moved_from_memory_count_there_until_they_are_written() {
    let directory = Directory::create();
    let (world, open) = World::new(&directory, |config| config.unwritten_bytes_max(0));
    let (spool, memory) = (world.spool.clone(), world.memory.clone());
    // Nothing more is taken. The bytes that were counted for memory still are; only the last block
    // is not counted.
    assert_eq!(run(world, None, &[900, 200]), 0);
    assert_eq!((spool.unwritten_bytes(), memory.bytes()), (0, 900));
    drop(open);
    while spool.files() > 0 || spool.bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(memory.bytes(), 0);
}
