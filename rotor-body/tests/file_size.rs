//! A process whose files may not become long (`RLIMIT_FSIZE`). Runs in its own process, whose limit
//! it lowers, and which the system would end by SIGXFSZ.

use rotor_body::{
    Body, Collector, Dir, Expected, IfExists, Progress, Spool, SpoolConfig, SpoolError,
};
use rotor_core::{Config, Infallible, Loop, Machine, Response, Scope};
use rotor_stream::{Block, BytesHeld};
use rotor_test_kit::Directory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The maximum length of a file.
const LIMIT: u64 = 10_000;

/// The context: how long a body is, and what came of it.
struct World {
    spool: Spool,
    is_announced: bool,
    left: usize,
    outcome: Option<Result<Body, SpoolError>>,
}

/// Feeds a body to its collector, in blocks of 1,000 bytes.
struct Feeder(Collector);

impl Feeder {
    fn start(scope: &mut Scope<'_, World>) -> Response<Feeder, Infallible> {
        let expected = Expected {
            ram_max: 1_000,
            bytes_max: 1 << 20,
            announced: scope.is_announced.then_some(scope.left as u64),
            memory: BytesHeld::new(1 << 20),
        };
        let begun = Collector::begin(Some(&scope.spool), expected, scope);
        let collector = begun.expect("the file is opened later");
        let progress = if collector.takes_more() { Progress::More } else { Progress::Hold };
        Feeder(collector).proceed(Ok(progress), scope)
    }

    fn proceed(
        mut self,
        mut progress: Result<Progress, SpoolError>,
        scope: &mut Scope<'_, World>,
    ) -> Response<Feeder, Infallible> {
        let outcome = loop {
            progress = match progress {
                Ok(Progress::Hold) => return Response::ok(self),
                Ok(Progress::More) if scope.left == 0 => self.0.end(scope),
                Ok(Progress::More) => {
                    let len = scope.left.min(1_000);
                    scope.left -= len;
                    self.0.add(Block::from(vec![7; len]), scope)
                }
                Ok(Progress::Done(body)) => break Ok(body),
                Err(error) => break Err(error),
            }
        };
        scope.outcome = Some(outcome);
        Response::done()
    }
}

impl Machine for Feeder {
    type Context = World;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Feeder, Infallible> {
        let progress = self.0.poll(scope);
        self.proceed(progress, scope)
    }
}

fn spool_body(spool: &Spool, is_announced: bool, len: u64) -> Result<Body, SpoolError> {
    let (spool, left) = (spool.clone(), len as usize);
    let creator = Loop::<Feeder>::new(&Config::new()).expect("a loop can be made");
    let mut instance = creator.instantiate(World { spool, is_announced, left, outcome: None });
    instance.add_machine_with(Feeder::start).expect("it waits for its file");
    instance.run().expect("it runs");
    instance.into_context().outcome.expect("something came of it")
}

/// Runs a function while files may not become longer than `LIMIT`.
fn with_limit<T>(run: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Fsize);
    let lower = Rlimit { current: Some(LIMIT), maximum: before.maximum };
    setrlimit(Resource::Fsize, lower).expect("it may be lowered");
    let result = run();
    setrlimit(Resource::Fsize, before).expect("it may be raised again");
    result
}

/// One test: the limit is that of the process. The result of another one that ends meanwhile would be
/// written to a file, perhaps, that is longer than the limit already.
#[test]
fn neither_a_body_nor_a_copy_makes_a_file_longer_than_it_may_be() {
    check_bodies();
    check_copies();
}

fn check_bodies() {
    let directory = Directory::create();
    let config = SpoolConfig::new(&*directory).ram_bytes_max(1_000).piece_bytes(4_000);
    let spool = config.keep_free_bytes(0).open().expect("it can be written");
    for is_announced in [true, false] {
        for (len, is_stored) in [(LIMIT, true), (LIMIT + 1, false), (1 << 20, false)] {
            let outcome = with_limit(|| spool_body(&spool, is_announced, len));
            match outcome {
                Ok(body) => assert!(is_stored && body.len() == len, "{is_announced} {len}"),
                Err(SpoolError::TooLarge) => assert!(!is_stored, "{is_announced} {len}"),
                Err(error) => panic!("{is_announced} {len}: {error}"),
            }
        }
    }
}

fn check_copies() {
    let directory = Directory::create();
    let dir = Dir::open(&*directory).expect("it is there");
    for (len, is_stored) in [(LIMIT, true), (LIMIT + 1, false)] {
        let body = Body::from(vec![7; len as usize]);
        let stored = with_limit(|| body.store_in(&dir, "name", IfExists::Replace).run());
        assert_eq!(stored.is_ok(), is_stored, "{len}");
    }
    let names = std::fs::read_dir(&*directory).expect("it is there").count();
    assert_eq!(names, 1, "nothing is left behind");
}
