//! A response fetched into a file, through a pool, from a server of this crate, on real sockets.

use std::fs;
use std::net::SocketAddr;
use std::thread;

use rotor_body::{Body, Dir, IfExists, Spool};
use rotor_core::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor_core::{Config, ExitPolicy, Loop, LoopHandle, Response, rotor_compose};
use rotor_http::client::{
    ByAddress, ClientConfig, ClientError, Fetch, Fetched, Pool, PoolConfig, PoolMachine,
    PoolRequest,
};
use rotor_http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Scope, Server, ServerConfig,
};
use rotor_http::{BodyError, MessageError, Status};

use crate::place::{SpoolDirectory, pattern_bytes, wait_until_empty};

/// Answers with the number of bytes that the target names, below `/chunks` in chunks.
struct PatternServer;

impl PatternServer {
    fn write(path: &str, response: &mut server::Response<'_>) -> Result<(), MessageError> {
        let (is_chunked, number) = match path.strip_prefix("/chunks/") {
            Some(number) => (true, number),
            None => (false, path.trim_start_matches('/')),
        };
        let body = pattern_bytes(number.parse().unwrap_or(0));
        response.status(if body.is_empty() { Status::NOT_FOUND } else { Status::OK })?;
        if is_chunked {
            response.add_chunked()?;
        } else {
            response.add_length(body.len() as u64)?;
        }
        response.done_headers()?;
        response.write_body(&body)?;
        response.done()
    }
}

impl Server for PatternServer {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        PatternServer::write(head.path(), response).expect("it is in order");
        Next::finished()
    }
}

rotor_compose! {
    enum Machines <()> {
        Accept(HttpAccept<PatternServer, TcpListener>),
        Pool(PoolMachine<Fetch<()>, ByAddress<TcpStream>>),
    }
}

type FetchFn<'a> = &'a dyn Fn(Fetch<()>) -> Result<Fetched, ClientError>;

/// Runs a server and a pool that stores bodies in this spool, while `work` fetches.
fn with_server(spool: &Spool, work: impl FnOnce(FetchFn<'_>) + Send) {
    let (mut address, mut pool) = (None, None);
    let config = ClientConfig::new().spool(spool.clone());
    let of_loop = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<Machines>::new(&of_loop).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let any = "127.0.0.1:0".parse()?;
            let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
            address = listener.local_address();
            let seed = HttpSeed::<PatternServer>::new((), ServerConfig::new());
            Ok(server::listen::<PatternServer, _, _>(listener, seed, scope).wrap(Machines::Accept))
        })
    });
    made.expect("a listener");
    let made = creator.add_machine_with(|scope| {
        let (handle, response) = PoolMachine::new(PoolConfig::new(), config, scope);
        pool = Some(handle);
        response.wrap(Machines::Pool)
    });
    made.expect("there is room");
    let (address, pool) = (address.expect("it listens"), pool.expect("the closure ran"));
    let mut instance = creator.instantiate(());
    let handle = instance.handle();
    thread::scope(|threads| {
        threads.spawn(move || {
            // Also if an assertion fails; otherwise the loop would run forever.
            let _stop = StopOnDrop(handle);
            work(&|fetch| get(&pool, address, fetch.host("octets")));
        });
        instance.run().expect("the backend can wait");
    });
}

struct StopOnDrop(LoopHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn get(
    pool: &Pool<Fetch<()>>,
    origin: SocketAddr,
    fetch: Fetch<()>,
) -> Result<Fetched, ClientError> {
    let asked = pool.service().ask_from_thread(PoolRequest::new(origin, fetch));
    asked.expect("there is room").wait().expect("the pool answers")
}

#[test]
fn a_response_is_fetched_into_a_file_and_saved_under_a_name() {
    let (place, kept) = (SpoolDirectory::new(), SpoolDirectory::new());
    let spool = place.spool();
    with_server(&spool, |fetch| {
        let dir = Dir::open(&kept.0).expect("it is there");
        for (target, length) in [("/500", 500), ("/300000", 300_000), ("/chunks/70000", 70_000)] {
            let fetched = fetch(Fetch::get(target).stored(1_000, 1 << 20)).expect("it is there");
            assert_eq!((fetched.status, fetched.body.len()), (Status::OK, 0));
            let stored = fetched.stored.expect("it was asked for");
            assert_eq!((stored.len(), stored.is_in_memory()), (length, length <= 1_000));
            stored.store_in(&dir, "page", IfExists::Replace).run().expect("there is room");
            assert!(
                fs::read(kept.0.join("page")).expect("it is there")
                    == pattern_bytes(length as usize)
            );
        }
    });
    wait_until_empty(&spool);
    assert!(place.is_empty());
}

#[test]
fn the_last_storage_option_wins_and_error_pages_are_stored_too() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    with_server(&spool, |fetch| {
        let stored = |fetched: Fetched| fetched.stored.map(|body| body.len());
        let fetched = fetch(Fetch::get("/9000").stored(1_000, 10_000).body_bytes_max(10_000));
        let fetched = fetched.expect("it is there");
        assert_eq!((fetched.body.len(), stored(fetched)), (9_000, None));
        let fetched = fetch(Fetch::get("/0").stored(1_000, 10_000)).expect("it is an answer");
        assert!(matches!(fetched.stored, Some(Body::Empty)), "{fetched:?}");
        for target in ["/10001", "/chunks/10001"] {
            let error = fetch(Fetch::get(target).stored(1_000, 10_000)).expect_err("one too many");
            assert!(matches!(error, ClientError::Body(BodyError::TooLarge)), "{error}");
        }
    });
    wait_until_empty(&spool);
}
