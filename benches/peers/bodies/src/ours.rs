//! rotor: one loop, with a pool of connections.

use std::fs::File;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use bodies_work::{BATCH, BEAT, BODY, Figures, Lateness, Run, Summary, Task};
use rotor::body::{Body, Spool, SpoolConfig};
use rotor::http::client::{
    ByAddress, Client, ClientConfig, ClientResult, Head, Next, NoUpgrade, Pool, PoolConfig,
    PoolMachine, RecvMode, Request, Scope,
};
use rotor::http::{Limits, MessageError, Method, Trailers};
use rotor::net::TcpStream;
use rotor::stream::Block;
use rotor::{
    Config, Future, Infallible, Loop, Machine, OffloadPool, Outcome, Response, Time, rotor_compose,
};

use crate::BoxError;

/// In this order: in memory, in the pieces that arrived; in memory, joined to one piece; written to
/// a file by the handler; the same in a section, while another thread goes on with the loop; stored
/// in a file of a spool, and read by a job; the same, with a lower priority for the threads of the
/// jobs; stored, and read by the handler.
pub(crate) const WAYS: &[&str] = &[
    "ram",
    "gather",
    "file-here",
    "file-handed",
    "file-pool",
    "file-pool-nice",
    "file-pread-here",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Ram,
    Gather,
    FileHere,
    FileHanded,
    FilePool,
    FileReadHere,
}

struct Context {
    pool: Option<Pool<Get>>,
    directory: PathBuf,
    lateness: Lateness,
    run: Option<Run>,
    figures: Option<Figures>,
}

/// One request, and how its body is processed.
enum Get {
    Begins(Way),
    Writes(File, u64),
    /// A job reads the body.
    Reads(Future<Summary>),
}

impl Get {
    fn write(request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::Get, "/")?;
        request.add_header("Host", "bodies")?;
        request.done_headers()?;
        request.done()
    }
}

type Sc<'a, 'b> = &'a mut Scope<'b, Context>;

fn checked(summary: Summary) -> Next<Get> {
    summary.check();
    Next::finished(())
}

/// Reads all of a body that is in a file.
fn read(body: &Body) -> Summary {
    let (mut reader, mut summary) = (body.reader(), Summary::default());
    loop {
        let piece = reader.fill_buf().expect("it can be read");
        let count = piece.len();
        if count == 0 {
            return summary;
        }
        summary.add(piece);
        reader.consume(count);
    }
}

impl Client for Get {
    type Context = Context;
    type Output = ();
    type Upgrade = NoUpgrade<Context>;

    fn prepare_request(self, request: &mut Request<'_>, _: Sc<'_, '_>) -> Next<Self> {
        match Get::write(request) {
            Ok(()) => Next::go_on(self).no_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn headers_received(self, _: &Head<'_>, _: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        match self {
            // Without `handing_over`, sections run on the loop's thread.
            Get::Begins(Way::FileHere | Way::FileHanded) => {
                let directory = scope.directory.clone();
                let file = scope.blocking(|| tempfile::tempfile_in(directory));
                let file = file.expect("it can be made");
                Next::recv(Get::Writes(file, 0), RecvMode::Blocks).no_deadline()
            }
            Get::Begins(way) => {
                let ram_max = if matches!(way, Way::Ram | Way::Gather) { BODY } else { 64 << 10 };
                let mode = RecvMode::Stored { ram_max, max: BODY as u64 };
                Next::recv(self, mode).no_deadline()
            }
            _ => Next::go_on(self).no_deadline(),
        }
    }

    fn response_block(
        mut self,
        block: Block,
        _: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        if let Get::Writes(file, len) = &mut self {
            scope.blocking(|| file.write_all(&block)).expect("there is room");
            *len += block.len() as u64;
        }
        Next::go_on(self).no_deadline()
    }

    fn response_end(self, _: &Trailers, _: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let Get::Writes(file, len) = self else { return Next::go_on(self).no_deadline() };
        checked(scope.blocking(|| read(&Body::from_file(file.into(), 0..len))))
    }

    fn response_stored(self, body: Body, _: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let Get::Begins(way) = self else { return Next::go_on(self).no_deadline() };
        let mut summary = Summary::default();
        match way {
            Way::Gather => summary.add(&body.gather(BODY).expect("it is in memory")),
            Way::FileReadHere => summary = read(&body),
            Way::FilePool => {
                let job = scope.offload(move || read(&body)).expect("there is room");
                return Next::go_on(Get::Reads(job)).no_deadline();
            }
            _ => body.blocks().for_each(|block| summary.add(block)),
        }
        checked(summary)
    }

    fn wakeup(self, _: &mut Request<'_>, _: Sc<'_, '_>) -> Next<Self> {
        let Get::Reads(job) = self else { return Next::go_on(self).no_deadline() };
        match job.take() {
            Outcome::Pending(job) => Next::go_on(Get::Reads(job)).no_deadline(),
            Outcome::Value(summary) => checked(summary),
            Outcome::Lost(lost) => panic!("{lost}"),
        }
    }
}

/// Begins a batch when the previous one is done.
struct Batches {
    way: Way,
    address: SocketAddr,
    left: usize,
    of: usize,
    under_way: Vec<Future<ClientResult<Get>>>,
}

impl Machine for Batches {
    type Context = Context;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        for future in std::mem::take(&mut self.under_way) {
            match future.take() {
                Outcome::Pending(future) => self.under_way.push(future),
                Outcome::Value(outcome) => outcome.expect("the server is well"),
                Outcome::Lost(lost) => return Response::error(lost),
            }
        }
        if !self.under_way.is_empty() {
            return Response::keep(self);
        }
        if self.left == self.of {
            // The first batch was for warming up.
            scope.run = Some(Run::begin());
            scope.lateness = Lateness::default();
        }
        if self.left == 0 {
            let lateness = std::mem::take(&mut scope.lateness);
            scope.figures = scope.run.take().map(|run| run.end(self.of, lateness));
            scope.stop_loop();
            return Response::done();
        }
        self.left -= 1;
        for _ in 0..BATCH {
            let pool = scope.pool.clone().expect("it was made first");
            let asked = pool.ask(self.address, Get::Begins(self.way), scope);
            self.under_way.push(asked.expect("there is room"));
        }
        Response::keep(self)
    }
}

/// Ticks once a millisecond.
struct Heart {
    due: Instant,
}

impl Heart {
    fn beats_again(scope: &Scope<'_, Context>) -> (Heart, Time) {
        (Heart { due: Instant::now() + BEAT }, scope.now() + BEAT)
    }
}

impl Machine for Heart {
    type Context = Context;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
        scope.lateness.note(self.due);
        let (heart, time) = Heart::beats_again(scope);
        Response::ok(heart).deadline(time)
    }
}

rotor_compose! {
    enum Machines <Context> {
        Pool(PoolMachine<Get, ByAddress<TcpStream>>),
        Batches(Batches),
        Heart(Heart),
    }
}

fn spool(task: &Task) -> Result<Spool, BoxError> {
    let mut config = SpoolConfig::new(&task.directory).keep_free_bytes(0);
    if is_nice(task) {
        config = config.pool(nice(2)?);
    }
    Ok(config.open()?)
}

fn is_nice(task: &Task) -> bool {
    task.way == "file-pool-nice"
}

/// Makes a pool whose threads have a lower priority than the loop's.
fn nice(threads: usize) -> Result<OffloadPool, BoxError> {
    let lower = |_| {
        rustix::process::nice(10).expect("one's own may be lowered");
    };
    Ok(OffloadPool::builder().threads_max(threads).on_thread_start(lower).build()?)
}

pub(crate) fn run(task: &Task) -> Result<Figures, BoxError> {
    let way = match task.way.as_str() {
        "ram" => Way::Ram,
        "gather" => Way::Gather,
        "file-here" => Way::FileHere,
        "file-handed" => Way::FileHanded,
        "file-pool" | "file-pool-nice" => Way::FilePool,
        "file-pread-here" => Way::FileReadHere,
        other => return Err(format!("no way: {other}").into()),
    };
    let address = task.address.parse()?;
    let limits = Limits::new().buffered_body_bytes_max(BODY as u64).output_high_water(64 << 10);
    let mut config = ClientConfig::new().limits(limits);
    if matches!(way, Way::FilePool | Way::FileReadHere) {
        config = config.spool(spool(task)?);
    }
    let mut loop_config = Config::new();
    if is_nice(task) {
        loop_config = loop_config.offload_pool(nice(4)?);
    }
    let mut creator = Loop::<Machines>::new(&loop_config)?;
    let pool = creator
        .add_part(Machines::Pool, |scope| Ok(PoolMachine::new(PoolConfig::new(), config, scope)))?;
    creator.add_machine_with(|scope| {
        let batches = task.batches;
        scope.notifier().wakeup();
        let batches =
            Batches { way, address, left: batches + 1, of: batches, under_way: Vec::new() };
        Response::ok(Machines::Batches(batches))
    })?;
    creator.add_machine_with(|scope| {
        let now = scope.now();
        Response::ok(Machines::Heart(Heart { due: Instant::now() })).deadline(now)
    })?;
    let mut instance = creator.instantiate(Context {
        pool: Some(pool),
        directory: task.directory.clone().into(),
        lateness: Lateness::default(),
        run: None,
        figures: None,
    });
    if way == Way::FileHanded {
        instance = instance.handing_over();
    }
    instance.run()?;
    instance.into_context().figures.ok_or_else(|| "it has ended early".into())
}
