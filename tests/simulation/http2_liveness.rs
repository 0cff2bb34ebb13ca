//! An HTTP/2 client on a narrow path. The PING with which it probes its server queues behind its
//! other output. So a slow server is given the time that it needs, and a dead server is detected
//! nevertheless.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor::http::Status;
use rotor::http::client::{
    self, ByAddress, ClientConfig, ClientResult, Fetch, Pool, PoolConfig, PoolMachine,
};
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server, ServerConfig,
};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Block;
use rotor::{
    BoxError, Future, Infallible, Loop, Machine, Outcome, Response, Scope, Time, rotor_compose,
};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Network, Sim};

use crate::http_pool::lock;
use crate::stage::PORT;

/// How many bytes per second the path carries: more than `body_rate_min` requires.
const BANDWIDTH: u64 = 4_000;

/// The length of the body: far more than the path carries until a PING is late, behind 64 KiB of
/// output and the kernel's buffers.
const LENGTH: usize = 400_000;

/// As large as the whole body, so no window update comes before its end: the server sends nothing.
const WINDOW: u32 = 1 << 20;

/// The outcome of the upload, and its time.
type UploadResult = Arc<Mutex<Option<(Time, String)>>>;

/// Reads a body, and responds with its length.
struct Counts(usize);

impl Server for Counts {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(Counts(0), RecvMode::Blocks).no_deadline()
    }

    fn request_block(
        self,
        block: Block,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::go_on(Counts(self.0 + block.len())).no_deadline()
    }

    fn request_end(
        self,
        _: &rotor::http::Trailers,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.reply(Status::OK, "text/plain", self.0.to_string().as_bytes()).into()
    }
}

struct World {
    pool: Pool<Fetch<World>>,
    came: UploadResult,
}

/// Uploads once.
struct Uploads {
    server: SocketAddr,
    future: Option<Future<ClientResult<Fetch<World>>>>,
}

impl Machine for Uploads {
    type Context = World;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let fetch = Fetch::post("/", vec![b'x'; LENGTH]).host("server");
        self.future = Some(
            scope.pool.ask_until(self.server, fetch, Time::NEVER, scope).expect("there is room"),
        );
        Response::ok(self)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let came = match self.future.take().map(Future::take) {
            Some(Outcome::Pending(future)) => {
                self.future = Some(future);
                return Response::keep(self);
            }
            Some(Outcome::Value(Ok(fetched))) => {
                String::from_utf8_lossy(&fetched.body).into_owned()
            }
            Some(Outcome::Value(Err(error))) => format!("{error:?}"),
            Some(Outcome::Lost(_)) | None => "nothing".to_owned(),
        };
        *lock(&scope.came) = Some((scope.now(), came));
        Response::done()
    }
}

rotor_compose! {
    enum Machines <World> {
        Pool(PoolMachine<Fetch<World>, ByAddress<SimTcpStream>>),
        Uploads(Uploads),
    }
}

/// Starts an upload, and returns its outcome after some time. The path breaks at `breaks_at`, if
/// that is given.
fn upload(
    path: Network,
    breaks_at: Option<Duration>,
    time: Duration,
) -> Result<Option<(Duration, String)>, BoxError> {
    let mut sim = Sim::new(1);
    sim.set_network(path);
    let server = sim.host("server", |boot| {
        let mut creator: Loop<HttpAccept<Counts, SimTcpListener>, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let http2 = server::Http2Config::new().prior_knowledge(true);
        let http2 = http2.stream_window(WINDOW).connection_window(WINDOW);
        let seed = HttpSeed::<Counts>::new((), ServerConfig::new().http2(http2));
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let came = UploadResult::default();
    let shared = came.clone();
    let clients = sim.host("client", move |boot| {
        let mut creator: Loop<Machines, _> = boot.new_loop()?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            let http2 = client::Http2Config::new().prior_knowledge(true);
            let config = ClientConfig::new().http2(http2);
            Ok(PoolMachine::new(PoolConfig::new(), config, scope))
        })?;
        Ok(creator.instantiate(World { pool, came: shared.clone() }))
    })?;
    let begun = sim.with(clients, |instance| {
        let uploads = Uploads { server: address, future: None };
        let added = instance.add_machine_with(|scope| {
            Response::ok(Machines::Uploads(uploads)).deadline(scope.now())
        });
        added.map(|_| instance.now())
    });
    let begun = begun.ok_or("the client is up")??;
    if let Some(first) = breaks_at {
        sim.run_for(first)?;
        sim.partition(clients, server);
        sim.run_for(time - first)?;
    } else {
        sim.run_for(time)?;
    }
    let came = lock(&came).take();
    Ok(came.map(|(at, came)| (at - begun, came)))
}

fn narrow_network() -> Network {
    Network::new().bandwidth(BANDWIDTH).window(16 << 10)
}

#[test]
fn a_server_behind_a_narrow_path_stays_alive_during_an_upload() -> Result<(), BoxError> {
    let takes = Duration::from_secs(LENGTH as u64 / BANDWIDTH);
    let came = upload(narrow_network(), None, takes * 2)?;
    let (time, answer) = came.ok_or("nothing has come of it")?;
    assert_eq!(answer, LENGTH.to_string());
    assert!(time >= takes, "the path is narrow: {time:?}");
    Ok(())
}

#[test]
fn a_dead_server_is_detected_even_during_an_upload() -> Result<(), BoxError> {
    let gone = Duration::from_secs(40);
    let came = upload(narrow_network(), Some(gone), Duration::from_secs(100))?;
    let (time, error) = came.ok_or("nothing has come of it")?;
    // `response_grace` ends before the PING times out.
    assert!(error.contains("Lost(FlushTimeout)"), "{error}");
    assert!(time <= gone + Duration::from_secs(10 + 5), "{time:?}");
    Ok(())
}
