//! A body that is collected on a real loop: in memory, on a disk, on one that fails.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rotor_body::{
    Body, Collector, Dir, Expected, Faults, How, Progress, Spool, SpoolConfig, SpoolError, SyncData,
};
use rotor_core::{Config, Infallible, Loop, Machine, OffloadPool, Response, Scope};
use rotor_stream::{Block, BytesHeld};
use rotor_test_kit::Directory;

/// A directory of its own, which must be empty in the end.
struct Place(Directory);

impl Place {
    fn new() -> Place {
        Place(Directory::create())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("it is one"))).collect();
        names.sort();
        names
    }
}

impl std::ops::Deref for Place {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

fn config(place: &Path) -> SpoolConfig {
    SpoolConfig::new(place).ram_bytes_max(1000).piece_bytes(4000).keep_free_bytes(0)
}

/// Feeds a body to a collector, as it takes it.
struct Feeder {
    collector: Collector,
    fed: usize,
}

/// What is fed, and what has come of it.
struct Feed {
    spool: Option<Spool>,
    bytes: Vec<u8>,
    step: usize,
    announced: Option<u64>,
    bytes_max: u64,
    memory: Arc<BytesHeld>,
    whole: Option<Result<Body, SpoolError>>,
    /// Ends in the middle, as a peer does that goes away.
    gives_up_at: usize,
    /// Goes on behind the end.
    adds_behind: bool,
    unwritten_most: usize,
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
            gives_up_at: usize::MAX,
            adds_behind: false,
            unwritten_most: 0,
        }
    }

    fn run(self) -> Feed {
        let creator = Loop::<Feeder>::new(&Config::new()).expect("a loop can be made");
        let mut instance = creator.instantiate(self);
        // One that ends as it is made is no machine.
        let _has_ended = instance.add_machine_with(Feeder::begin);
        instance.run().expect("it runs");
        instance.into_context()
    }

    fn result(self) -> Result<Body, SpoolError> {
        self.run().whole.expect("something came of it")
    }
}

impl Feeder {
    fn begin(scope: &mut Scope<'_, Feed>) -> Response<Feeder, Infallible> {
        let expected = Expected {
            ram_max: 1 << 20,
            bytes_max: scope.bytes_max,
            announced: scope.announced,
            memory: scope.memory.clone(),
        };
        match Collector::begin(scope.spool.clone().as_ref(), expected, scope) {
            Ok(collector) if collector.takes_more() => {
                Feeder { collector, fed: 0 }.go_on(Ok(Progress::More), scope)
            }
            Ok(collector) => Response::ok(Feeder { collector, fed: 0 }),
            Err(error) => {
                scope.whole = Some(Err(error));
                Response::done()
            }
        }
    }

    fn go_on(
        mut self,
        progress: Result<Progress, SpoolError>,
        scope: &mut Scope<'_, Feed>,
    ) -> Response<Self, Infallible> {
        let mut progress = progress;
        loop {
            let unwritten = scope.spool.as_ref().map_or(0, Spool::unwritten_bytes);
            scope.unwritten_most = scope.unwritten_most.max(unwritten);
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
                Ok(Progress::More) if self.fed >= scope.gives_up_at => return Response::done(),
                Ok(Progress::More) => progress = self.feed(scope),
            }
        }
    }

    fn feed(&mut self, scope: &mut Scope<'_, Feed>) -> Result<Progress, SpoolError> {
        let end = (self.fed + scope.step).min(scope.bytes.len());
        if self.fed == end {
            let progress = self.collector.end(scope);
            if scope.adds_behind {
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
        self.go_on(progress, scope)
    }
}

fn read(body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.reader().read_to_end(&mut bytes).expect("it can be read");
    bytes
}

/// Waits until the spool's threads have closed what nobody has any more.
fn wait_until_empty(spool: &Spool) {
    while spool.files() > 0 || spool.bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(spool.unwritten_bytes(), 0);
}

#[test]
fn any_length_and_any_step_give_the_same_body_on_a_disk_and_in_memory() {
    let place = Place::new();
    let disk = config(&place).open().expect("it can be written");
    let synced = config(&place).sync(SyncData::BeforeHandedOver).open().expect("it can be written");
    let memory = Spool::in_memory(config(&place), Faults::none());
    let short = Spool::in_memory(config(&place), Faults::none().short_writes(7));
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
                assert_eq!(place.names(), [""; 0], "a file has no name");
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
fn what_is_added_behind_the_end_is_refused_and_the_body_is_as_it_was() {
    let place = Place::new();
    let spool = config(&place).open().expect("it can be written");
    for spool in [None, Some(&spool)] {
        for len in [0, 10, 1_001, 9_000] {
            let feed = Feed { adds_behind: true, ..Feed::new(spool, len, 500) };
            let expected = feed.bytes.clone();
            assert_eq!(read(&feed.result().expect("it is kept")), expected, "{len}");
        }
    }
    wait_until_empty(&spool);
}

#[test]
fn each_fault_is_told_and_leaves_nothing() {
    use SpoolError as E;
    type Is = fn(&SpoolError) -> bool;
    let place = Place::new();
    let full: Is = |error| matches!(error, E::DiskFull(_));
    let broken: Is = |error| matches!(error, E::Disk(_));
    let no_descriptor: Is = |error| matches!(error, E::NoDescriptor(_));
    let too_large: Is = |error| matches!(error, E::TooLarge);
    let no_room: Is = |error| matches!(error, E::NoRoom);
    let with = |faults: Faults| Spool::in_memory(config(&place), faults);
    let limited = |config: SpoolConfig| Some(Spool::in_memory(config, Faults::none()));
    let rows: [(Option<Spool>, Is); 12] = [
        (Some(with(Faults::none().full_at(0))), full),
        (Some(with(Faults::none().full_at(9_999))), full),
        (Some(with(Faults::none().short_writes(100).full_at(5_000))), full),
        (Some(with(Faults::none().broken_at(0))), broken),
        (Some(with(Faults::none().broken_at(9_999))), broken),
        (Some(with(Faults::none().without_descriptor())), no_descriptor),
        (Some(with(Faults::none().without_directory())), broken),
        (None, too_large),
        (limited(config(&place).body_bytes_max(9_999)), too_large),
        (limited(config(&place).all_bytes_max(9_999)), no_room),
        (limited(config(&place).files_max(0)), no_room),
        // Where memory is full and there is no file it is nobody's fault.
        (None, no_room),
    ];
    for (number, (spool, is_expected)) in rows.into_iter().enumerate() {
        for is_announced in [false, true] {
            let mut feed = Feed::new(spool.as_ref(), 10_000, 100);
            feed.announced = is_announced.then_some(10_000);
            if number == 7 {
                feed.bytes_max = 9_999;
            }
            feed.memory = BytesHeld::new(if number == 11 { 5_000 } else { 1 << 20 });
            let memory = feed.memory.clone();
            let error = feed.result().expect_err("it fails");
            assert!(is_expected(&error), "row {number}: {error:?}");
            assert_eq!(memory.bytes(), 0);
            spool.iter().for_each(wait_until_empty);
        }
    }
}

#[test]
fn a_body_that_is_not_as_long_as_was_announced_counts_as_it_comes() {
    let place = Place::new();
    for announced in [10, 1_001, 9_999] {
        let spool = config(&place).all_bytes_max(10_000).open().expect("it can be written");
        let mut feed = Feed::new(Some(&spool), 10_000, 1_000);
        feed.announced = Some(announced);
        let body = feed.result().expect("there is room for that");
        assert_eq!((body.len(), spool.bytes()), (10_000, 10_000));
        drop(body);
        wait_until_empty(&spool);
        let mut feed = Feed::new(Some(&spool), 10_001, 1_000);
        feed.announced = Some(announced);
        let error = feed.result().expect_err("it has grown past what all may hold");
        assert!(matches!(error, SpoolError::NoRoom), "{error:?}");
        wait_until_empty(&spool);
    }
    let spool = config(&place).open().expect("it can be written");
    let mut feed = Feed::new(Some(&spool), 5_000, 1_000);
    feed.announced = Some(10_000);
    let body = feed.result().expect("an end is an end");
    assert_eq!(read(&body).len(), 5_000);
}

#[test]
fn a_full_disk_is_seen_before_anything_is_taken() {
    let place = Place::new();
    let keep_all = config(&place).keep_free_bytes(u64::MAX).open().expect("nothing is written yet");
    for announced in [None, Some(10_000)] {
        let mut feed = Feed::new(Some(&keep_all), 10_000, 100);
        feed.announced = announced;
        let error = feed.result().expect_err("nothing may be written");
        assert!(matches!(error, SpoolError::DiskFull(_)), "{error:?}");
        wait_until_empty(&keep_all);
    }
}

#[test]
fn memory_that_is_spent_sends_bodies_to_files() {
    let place = Place::new();
    let spool = config(&place).open().expect("it can be written");
    let mut feed = Feed::new(Some(&spool), 900, 100);
    feed.memory = BytesHeld::new(500);
    let bytes = feed.bytes.clone();
    let body = feed.result().expect("there is a file");
    assert!(!body.is_in_memory() && read(&body) == bytes);
}

#[test]
fn what_is_not_written_yet_is_bounded_for_all() {
    let place = Place::new();
    for (max, most) in [(0, 1_000 + 1_000), (3_000, 3_000), (1 << 20, 2 * 4_000)] {
        let spool = config(&place).unwritten_bytes_max(max).open().expect("it can be written");
        let mut feed = Feed::new(Some(&spool), 100_000, 1_000);
        feed.announced = Some(100_000);
        let expected = feed.bytes.clone();
        let feed = feed.run();
        assert!(feed.unwritten_most <= most, "{} with {max}", feed.unwritten_most);
        let body = feed.whole.expect("it came to something").expect("nothing fails");
        assert!(read(&body) == expected);
    }
}

#[test]
fn what_waits_for_its_file_is_always_in_one_of_the_totals() {
    let place = Place::new();
    for (max, is_unwritten) in [(0, false), (1 << 20, true)] {
        let pool = OffloadPool::new(1, 10);
        let config = config(&place).unwritten_bytes_max(max).pool(pool.clone());
        let spool = config.open().expect("it can be written");
        // It opens no file before what waits for it is where it is to be.
        let feed = Feed::new(Some(&spool), 10_000, 1_000);
        let (of_thread, memory) = (spool.clone(), feed.memory.clone());
        let counted = Arc::new(AtomicU32::new(0));
        let sees = counted.clone();
        let is_taken = pool.offer(&mut || {
            let (spool, memory, sees) = (of_thread.clone(), memory.clone(), sees.clone());
            Box::new(move || {
                // 1,000 that memory keeps, and a second thousand that it does not.
                while spool.files() == 0 {
                    std::thread::yield_now();
                }
                let bytes = if is_unwritten { spool.unwritten_bytes() } else { memory.bytes() };
                sees.store(bytes as u32, Relaxed);
            })
        });
        assert!(is_taken);
        drop(feed.result().expect("nothing fails"));
        let least = if is_unwritten { 2_000 } else { 1_000 };
        assert_eq!(counted.load(Relaxed), least, "{max}");
        wait_until_empty(&spool);
    }
}

#[test]
fn as_many_pieces_as_there_can_be_are_no_mistake() {
    let place = Place::new();
    let spool = config(&place).pieces_under_way(usize::MAX).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 100_000, 1_000).result().expect("nothing fails");
    assert_eq!(body.len(), 100_000);
}

#[test]
fn a_peer_that_goes_away_leaves_nothing() {
    let place = Place::new();
    let spool = config(&place).open().expect("it can be written");
    for gives_up_at in [0, 500, 1_500, 50_000, 99_999] {
        for announced in [None, Some(100_000)] {
            let mut feed = Feed::new(Some(&spool), 100_000, 1_000);
            (feed.gives_up_at, feed.announced) = (gives_up_at, announced);
            assert!(feed.run().whole.is_none());
            wait_until_empty(&spool);
            assert_eq!(place.names(), [""; 0]);
        }
    }
}

#[test]
fn a_file_that_is_still_sent_is_closed_behind_that_and_counts_until_then() {
    let place = Place::new();
    let spool = config(&place).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 10_000, 1_000).result().expect("nothing fails");
    let Body::File(file) = &body else { panic!("it is in a file") };
    let (sent, offset) = file.file().expect("it is on a disk");
    assert_eq!(offset, 0);
    drop(body);
    assert_eq!((spool.files(), spool.bytes()), (1, 10_000), "an output has it");
    drop(sent);
    // The next one sees to it.
    let next = Feed::new(Some(&spool), 2_000, 1_000).result().expect("nothing fails");
    while spool.files() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(spool.bytes(), 2_000);
    drop(next);
    wait_until_empty(&spool);
}

#[test]
fn the_place_of_a_file_that_was_sent_is_free_before_it_is_closed() {
    let place = Place::new();
    let pool = OffloadPool::new(1, 10);
    let spool = config(&place).files_max(1).pool(pool.clone()).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 10_000, 1_000).result().expect("nothing fails");
    let Body::File(file) = &body else { panic!("it is in a file") };
    let sent = file.file().expect("it is on a disk");
    drop(body);
    drop(sent);
    // The thread that is to close it is busy until the next body has its place.
    let of_thread = spool.clone();
    let is_taken = pool.offer(&mut || {
        let spool = of_thread.clone();
        Box::new(move || {
            while spool.bytes() != 2_000 {
                std::thread::yield_now();
            }
        })
    });
    assert!(is_taken);
    let mut next = Feed::new(Some(&spool), 2_000, 1_000);
    next.announced = Some(2_000);
    drop(next.result().expect("there is room for one file"));
    wait_until_empty(&spool);
}

#[test]
fn a_directory_that_cannot_be_used_is_refused_at_once() {
    let place = Place::new();
    fs::write(place.join("file"), "").expect("it can be written");
    for name in ["missing", "file"] {
        assert!(SpoolConfig::new(place.join(name)).open().is_err(), "{name}");
        assert!(Dir::open(place.join(name)).is_err(), "{name}");
    }
}

/// A body of every kind, of so many bytes.
fn of_every_kind(spool: &Spool, len: usize) -> Vec<(&'static str, Body)> {
    let whole = Feed::new(Some(spool), len, 1_000).result().expect("nothing fails");
    let mut around = Feed::new(Some(spool), len + 2_000, 1_000);
    let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    around.bytes = [&[7; 1_000][..], &bytes, &[7; 1_000]].concat();
    let part = around.result().expect("nothing fails").slice(1_000..1_000 + len as u64);
    let longer = Feed::new(Some(spool), len + 1, 1_000).result().expect("nothing fails");
    let blocks = bytes.chunks(700).map(|chunk| Block::from(chunk.to_vec())).collect();
    let in_memory = Spool::in_memory(SpoolConfig::new("").ram_bytes_max(0), Faults::none());
    let no_disk = Feed::new(Some(&in_memory), len, 1_000).result().expect("nothing fails");
    vec![
        ("file", whole),
        ("part of a file", part),
        ("beginning of a file", longer.slice(..len as u64)),
        ("blocks", blocks),
        ("block", Body::from(bytes)),
        ("no disk", no_disk),
    ]
}

#[test]
fn a_body_of_every_kind_is_kept_under_its_name_and_nothing_else_is() {
    let (spooled, kept) = (Place::new(), Place::new());
    let spool = config(&spooled).open().expect("it can be written");
    let dir = Dir::open(&*kept).expect("it is there");
    for (kind, body) in of_every_kind(&spool, 5_000) {
        for (how, is_there, syncs) in [
            (How::New, false, false),
            (How::New, true, false),
            (How::Replace, true, true),
            (How::Replace, true, false),
            (How::Replace, false, false),
        ] {
            let path = kept.join("name");
            // Not over what is there: that is the body itself.
            drop(fs::remove_file(&path));
            if is_there {
                fs::write(&path, "before").expect("it can be written");
            }
            let job = body.store_in(&dir, "name", how).mode(0o640);
            let stored = if syncs { job.sync().run() } else { job.run() };
            let found = fs::read(&path).expect("something is there");
            if how == How::New && is_there {
                let error = stored.expect_err("the name is taken");
                assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{kind}");
                assert_eq!(found, b"before", "{kind}");
            } else {
                stored.unwrap_or_else(|error| panic!("{kind} {how:?}: {error}"));
                assert!(found == read(&body), "{kind} {how:?}");
                use std::os::unix::fs::MetadataExt;
                let mode = fs::metadata(&path).expect("it is there").mode();
                assert_eq!(mode & 0o777, 0o640, "{kind} {how:?}");
            }
            assert_eq!(kept.names(), ["name"], "{kind} {how:?}");
        }
        fs::remove_file(kept.join("name")).expect("it is there");
    }
    assert_eq!(spooled.names(), [""; 0]);
}

#[test]
fn what_is_no_name_is_refused_and_a_directory_that_is_gone_too() {
    let kept = Place::new();
    let dir = Dir::open(&*kept).expect("it is there");
    let body = Body::from("x");
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "../a"] {
        for how in [How::New, How::Replace] {
            let error = body.store_in(&dir, name, how).run().expect_err("it is none");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
    fs::create_dir(kept.join("folder")).expect("it can be made");
    for how in [How::New, How::Replace] {
        assert!(body.store_in(&dir, "folder", how).run().is_err(), "a directory is not replaced");
    }
    assert_eq!(kept.names(), ["folder"]);
    fs::remove_dir(kept.join("folder")).expect("it is empty");
    fs::remove_dir(&*kept).expect("it is empty");
    assert!(body.store_in(&dir, "name", How::New).run().is_err());
}

#[test]
fn two_that_want_a_name_at_once_find_one_that_has_it() {
    let (spooled, kept) = (Place::new(), Place::new());
    let spool = config(&spooled).open().expect("it can be written");
    let dir = Dir::open(&*kept).expect("it is there");
    let bodies = of_every_kind(&spool, 5_000);
    let stored = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (_, body) in &bodies {
            scope.spawn(|| {
                if body.store_in(&dir, "name", How::New).run().is_ok() {
                    stored.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!((stored.into_inner(), kept.names()), (1, vec!["name".to_owned()]));
}
