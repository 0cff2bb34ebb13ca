//! A peer that goes away while what it has sent waits for a thread to write it.

use std::sync::mpsc::{Receiver, Sender, channel};

use rotor_body::{Collector, Expected, Progress, Spool, SpoolConfig};
use rotor_core::{Config, Infallible, Loop, Machine, OffloadPool, Response, Scope};
use rotor_stream::{Block, BytesHeld};
use rotor_test_kit::Directory;

/// What the machine has, and does.
struct World {
    spool: Spool,
    pool: OffloadPool,
    /// Given to the only thread, which waits for the test to drop its other end.
    gate: Option<Receiver<()>>,
}

/// Has all that its collector takes written, behind a thread that does nothing, and ends.
struct Leaver(Collector);

impl Machine for Leaver {
    type Context = World;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Leaver, Infallible> {
        let progress = self.0.poll(scope).expect("nothing fails");
        if !matches!(progress, Progress::More) {
            return Response::ok(self);
        }
        // The file is open.
        if let Some(gate) = scope.gate.take() {
            let mut waits = Some(move || {
                let _opened = gate.recv();
            });
            let is_taken = scope.pool.offer(&mut || {
                let waits = waits.take();
                Box::new(move || waits.into_iter().for_each(|wait| wait()))
            });
            assert!(is_taken);
        }
        while self.0.takes_more() {
            let added = self.0.add(Block::from(vec![7; 1_000]), scope);
            assert!(!matches!(added.expect("nothing fails"), Progress::Done(_)));
        }
        Response::done()
    }
}

#[test]
fn what_waits_for_a_thread_counts_though_nobody_wants_it_written() {
    let directory = Directory::create();
    let pool = OffloadPool::new(1, 10);
    let config = SpoolConfig::new(&*directory).ram_bytes_max(1_000).piece_bytes(4_000);
    let spool = config.keep_free_bytes(0).pool(pool.clone()).open().expect("it can be written");
    let (open, gate): (Sender<()>, _) = channel();
    let world = World { spool: spool.clone(), pool, gate: Some(gate) };
    let creator = Loop::<Leaver>::new(&Config::new()).expect("a loop can be made");
    let mut instance = creator.instantiate(world);
    let added = instance.add_machine_with(|scope| {
        let memory = BytesHeld::new(1 << 20);
        let expected =
            Expected { ram_max: 1_000, bytes_max: 1 << 20, announced: Some(100_000), memory };
        let spool = scope.spool.clone();
        Response::ok(Leaver(Collector::begin(Some(&spool), expected, scope).expect("it may")))
    });
    added.expect("a slot is free");
    instance.run().expect("it runs until the machine has ended");
    // Two pieces, in the memory of who was to write them.
    assert_eq!(spool.unwritten_bytes(), 8_000);
    drop(open);
    while spool.files() > 0 || spool.bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(spool.unwritten_bytes(), 0);
}
