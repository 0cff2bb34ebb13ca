//! A body that is collected on a real loop: in memory, on a disk, on a failing disk.

mod extremes;
mod faults;
mod names;
mod totals;

use std::fs;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use rotor_body::{
    Body, Collector, Expected, Faults, Progress, Spool, SpoolConfig, SpoolError, SyncData,
};
use rotor_core::{Config, Infallible, Loop, Machine, OffloadPool, Response, Scope};
use rotor_stream::{Block, BytesHeld};
use rotor_test_kit::Directory;

/// A new directory, which must be empty in the end.
struct TestDirectory(Directory);

impl TestDirectory {
    fn new() -> TestDirectory {
        TestDirectory(Directory::create())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("it is one"))).collect();
        names.sort();
        names
    }
}

impl std::ops::Deref for TestDirectory {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

fn config(directory: &Path) -> SpoolConfig {
    SpoolConfig::new(directory).ram_bytes_max(1000).piece_bytes(4000).keep_free_bytes(0)
}

/// Feeds a body to a collector, as fast as it accepts it.
struct Feeder {
    collector: Collector,
    fed: usize,
}

/// The input of a collector, and the outcome.
struct Feed {
    spool: Option<Spool>,
    bytes: Vec<u8>,
    step: usize,
    announced: Option<u64>,
    bytes_max: u64,
    memory: Arc<BytesHeld>,
    whole: Option<Result<Body, SpoolError>>,
    /// Aborts the body at this position, like a peer that disconnects.
    abort_at: usize,
    /// Adds bytes after the end.
    adds_after_end: bool,
    unwritten_max: usize,
}

impl Feed {
    fn new(spool: Option<&Spool>, len: usize, step: usize) -> Feed {
        let bytes = (0..len).map(|at| (at % 251) as u8).collect();
        Feed {
            spool: spool.cloned(),
            bytes,
            step,
            announced: None,
            bytes_max: 1 << 20,
            memory: BytesHeld::new(1 << 20),
            whole: None,
            abort_at: usize::MAX,
            adds_after_end: false,
            unwritten_max: 0,
        }
    }

    fn run(self) -> Feed {
        let creator = Loop::<Feeder>::new(&Config::new()).expect("a loop can be made");
        let mut instance = creator.instantiate(self);
        // A machine that ends while it is created is not added.
        let _has_ended = instance.add_machine_with(Feeder::start);
        instance.run().expect("it runs");
        instance.into_context()
    }

    fn result(self) -> Result<Body, SpoolError> {
        self.run().whole.expect("something came of it")
    }
}

impl Feeder {
    fn start(scope: &mut Scope<'_, Feed>) -> Response<Feeder, Infallible> {
        let expected = Expected {
            ram_max: 1 << 20,
            bytes_max: scope.bytes_max,
            announced: scope.announced,
            memory: scope.memory.clone(),
        };
        match Collector::begin(scope.spool.clone().as_ref(), expected, scope) {
            Ok(collector) if collector.takes_more() => {
                Feeder { collector, fed: 0 }.proceed(Ok(Progress::More), scope)
            }
            Ok(collector) => Response::ok(Feeder { collector, fed: 0 }),
            Err(error) => {
                scope.whole = Some(Err(error));
                Response::done()
            }
        }
    }

    fn proceed(
        mut self,
        progress: Result<Progress, SpoolError>,
        scope: &mut Scope<'_, Feed>,
    ) -> Response<Self, Infallible> {
        let mut progress = progress;
        loop {
            let unwritten = scope.spool.as_ref().map_or(0, Spool::unwritten_bytes);
            scope.unwritten_max = scope.unwritten_max.max(unwritten);
            match progress {
                Err(error) => {
                    scope.whole = Some(Err(error));
                    return Response::done();
                }
                Ok(Progress::Done(body)) => {
                    scope.whole = Some(Ok(body));
                    return Response::done();
                }
                Ok(Progress::Hold) => return Response::ok(self),
                Ok(Progress::More) if self.fed >= scope.abort_at => return Response::done(),
                Ok(Progress::More) => progress = self.feed(scope),
            }
        }
    }

    fn feed(&mut self, scope: &mut Scope<'_, Feed>) -> Result<Progress, SpoolError> {
        let end = (self.fed + scope.step).min(scope.bytes.len());
        if self.fed == end {
            let progress = self.collector.end(scope);
            if scope.adds_after_end {
                let refused = self.collector.add(Block::from("more"), scope);
                assert!(matches!(refused, Err(SpoolError::AfterEnd)), "{refused:?}");
            }
            return progress;
        }
        let block = Block::from(scope.bytes[self.fed..end].to_vec());
        self.fed = end;
        self.collector.add(block, scope)
    }
}

impl Machine for Feeder {
    type Context = Feed;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Feed>) -> Response<Self, Infallible> {
        let progress = self.collector.poll(scope);
        self.proceed(progress, scope)
    }
}

fn read(body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.reader().read_to_end(&mut bytes).expect("it can be read");
    bytes
}

/// Waits until the spool's threads have closed the files of dropped bodies.
fn wait_until_empty(spool: &Spool) {
    while spool.files() > 0 || spool.bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(spool.unwritten_bytes(), 0);
}

#[test]
fn the_body_is_the_same_at_any_length_step_and_storage() {
    let directory = TestDirectory::new();
    let disk = config(&directory).open().expect("it can be written");
    let synced =
        config(&directory).sync(SyncData::BeforeHandedOver).open().expect("it can be written");
    let memory = Spool::in_memory(config(&directory), Faults::none());
    let short = Spool::in_memory(config(&directory), Faults::none().short_writes(7));
    for spool in [&disk, &synced, &memory, &short] {
        for (len, step) in [
            (0, 1),
            (1, 1),
            (999, 10),
            (1000, 100),
            (1001, 100),
            (4000, 1000),
            (4001, 3999),
            (100_000, 16_384),
            (300_000, 1000),
        ] {
            for is_announced in [false, true] {
                let mut feed = Feed::new(Some(spool), len, step);
                feed.announced = is_announced.then_some(len as u64);
                let memory = feed.memory.clone();
                let expected = feed.bytes.clone();
                let body = feed.result().expect("nothing fails");
                assert!(read(&body) == expected, "{spool:?} {len} {step}");
                assert_eq!(body.is_in_memory(), len <= 1000, "{spool:?} {len} {step}");
                assert_eq!(memory.bytes(), 0, "what is handed over is not counted any more");
                assert_eq!(spool.bytes() as u64, if len <= 1000 { 0 } else { body.len() });
                assert_eq!(directory.names(), [""; 0], "a file has no name");
                let part = body.slice(1..);
                drop(body);
                assert!(read(&part) == expected.get(1..).unwrap_or(&[]));
                drop(part);
                wait_until_empty(spool);
            }
        }
    }
}

#[test]
fn syncing_adds_a_job_only_if_configured() {
    let directory = TestDirectory::new();
    // Opening, writing, and the sync that is waited for.
    for (sync, jobs) in [(SyncData::Never, 2), (SyncData::BeforeHandedOver, 3)] {
        let pool = OffloadPool::new(1, 10);
        let spool =
            config(&directory).sync(sync).pool(pool.clone()).open().expect("it can be written");
        let body = Feed::new(Some(&spool), 2_000, 2_000).result().expect("nothing fails");
        assert_eq!(pool.stats().begun, jobs, "{sync:?}");
        drop(body);
        wait_until_empty(&spool);
    }
}

#[test]
fn a_reader_reads_the_configured_number_of_bytes_at_a_time() {
    let directory = TestDirectory::new();
    let spool = config(&directory).read_bytes(700).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 2_000, 2_000).result().expect("nothing fails");
    let mut reader = body.reader();
    for expected in [700, 700, 600, 0] {
        let len = reader.fill_buf().expect("it can be read").len();
        assert_eq!(len, expected);
        reader.consume(len);
    }
}

#[test]
fn bytes_after_the_end_are_refused_and_the_body_is_unchanged() {
    let directory = TestDirectory::new();
    let spool = config(&directory).open().expect("it can be written");
    for spool in [None, Some(&spool)] {
        for len in [0, 10, 1_001, 9_000] {
            let feed = Feed { adds_after_end: true, ..Feed::new(spool, len, 500) };
            let expected = feed.bytes.clone();
            assert_eq!(read(&feed.result().expect("it is kept")), expected, "{len}");
        }
    }
    wait_until_empty(&spool);
}

#[test]
fn an_unlimited_number_of_pieces_under_way_is_allowed() {
    let directory = TestDirectory::new();
    let spool = config(&directory).pieces_under_way(usize::MAX).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 100_000, 1_000).result().expect("nothing fails");
    assert_eq!(body.len(), 100_000);
}
