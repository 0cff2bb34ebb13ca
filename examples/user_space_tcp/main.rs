//! The hello server on a TCP stack of its own, in user space.
//!
//! ```text
//! cargo run --release -p rotor-user-space-tcp --example user_space_tcp
//! 200 OK: Hello, World!
//! ```
//!
//! Without arguments, a server and a client, each a loop with a stack of its own, talk over a
//! virtual cable in memory. With a device, as root, the server gets the packets that the kernel
//! sends there:
//!
//! ```text
//! cargo build --release -p rotor-user-space-tcp --example user_space_tcp
//! sudo target/release/examples/user_space_tcp tun rotor0 10.90.0.2/24 &
//! listening on http://10.90.0.2:3000/
//! sudo ip address add 10.90.0.1/24 dev rotor0
//! sudo ip link set rotor0 up
//! curl http://10.90.0.2:3000/
//! ```
//!
//! `offloading` instead of `tun` leaves checksums and segmentation to the kernel. `tap` is the same
//! with Ethernet frames. `packet eth0 ..` is a socket on an existing interface, with an address
//! that the kernel does not have. `kernel - ADDRESS/PREFIX` is the same server on the kernel's
//! stack, for comparison. `/large` is a page of a mebibyte, `/middle` one of 64 KiB.
#![forbid(unsafe_code)]

use std::env;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use rotor::http::Status;
use rotor::http::client::{
    ByAddress, ClientConfig, ClientError, Fetch, Fetched, Pool, PoolConfig, PoolMachine,
};
use rotor::http::server::{self, Head, HttpAccept, HttpSeed, Reply, ServerConfig, ServerFn};
use rotor::net::{Inet, IpNet};
use rotor::{
    Backend, BoxError, Compose2, Config, EVENTS_LIMIT, Exit, ExitPolicy, Future, Infallible, Loop,
    LoopInstance, Machine, Mio, Outcome, Response, Scope, signals,
};
use rotor_examples::program;
#[cfg(target_os = "linux")]
use rotor_smoltcp::KernelDevice;
use rotor_smoltcp::{
    Device, MemoryConfig, MemoryDevice, Smoltcp, SmoltcpInet, SmoltcpTcpListener, SmoltcpTcpStream,
    StackConfig,
};

type Hello = ServerFn<fn(&Head<'_>, &mut server::Response<'_>, &mut Scope<'_, ()>) -> Reply, ()>;

/// A loop on a stack, with the hello server.
type Server = LoopInstance<HttpAccept<Hello, SmoltcpTcpListener>, Smoltcp>;

const PORT: u16 = 3_000;
/// Where packets come from, as the first argument.
const KINDS: &str = "tun, offloading, tap, packet, kernel";
static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];

fn hello(head: &Head<'_>, response: &mut server::Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    match head.path() {
        "/" => response.reply(Status::OK, "text/plain", b"Hello, World!"),
        "/large" => response.reply(Status::OK, "text/plain", &LARGE),
        "/middle" => response.reply(Status::OK, "text/plain", &LARGE[..64 << 10]),
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}

fn serve(device: impl Device, config: &StackConfig, ip: IpAddr) -> Result<Server, BoxError> {
    serve_on::<SmoltcpInet, _>(Smoltcp::open(device, config)?, ip)
}

/// Serves on any backend.
fn serve_on<N: IpNet, B: Backend>(
    backend: B,
    ip: IpAddr,
) -> Result<LoopInstance<HttpAccept<Hello, N::Listener>, B>, BoxError> {
    let mut creator = Loop::with_backend(backend, &Config::new())?;
    creator.add_machine_with(|scope| {
        let seed = HttpSeed::<Hello>::new(hello, ServerConfig::new());
        server::bind(&(ip, PORT).into(), seed, scope)
    })?;
    Ok(creator.instantiate(()))
}

/// A machine that makes one request, and stores the response in the context.
struct FetchOnce(Future<Result<Fetched, ClientError>>);

/// The response, when it has arrived.
type Answer = Option<Result<Fetched, BoxError>>;

type ClientMachine = Compose2<PoolMachine<Fetch<Answer>, ByAddress<SmoltcpTcpStream>>, FetchOnce>;

impl Machine for FetchOnce {
    type Context = Answer;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Answer>) -> Response<Self, Infallible> {
        **scope = match self.0.take() {
            Outcome::Pending(future) => return Response::keep(FetchOnce(future)),
            Outcome::Value(fetched) => Some(fetched.map_err(Into::into)),
            Outcome::Lost(_) => Some(Err("the pool is gone".into())),
        };
        Response::done()
    }
}

fn create_client(
    device: impl Device,
    config: &StackConfig,
    server: SocketAddr,
) -> Result<LoopInstance<ClientMachine, Smoltcp>, BoxError> {
    let backend = Smoltcp::open(device, config)?;
    let limits = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<ClientMachine, _>::with_backend(backend, &limits)?;
    let pool: Pool<Fetch<Answer>> = creator.add_part(Compose2::A, |scope| {
        Ok(PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope))
    })?;
    let mut instance = creator.instantiate(None);
    instance.add_machine_with(|scope| {
        Response::attempt(|| {
            let future = pool.ask(server, Fetch::get("/").host("server"), scope);
            Ok(Response::ok(Compose2::B(FetchOnce(future.map_err(|_| "the pool is full")?))))
        })
    })?;
    Ok(instance)
}

/// Runs a server and a client in one process, each with a stack, connected by a cable in memory.
fn in_memory() -> Result<(), BoxError> {
    let (left, right) = MemoryDevice::pair(&MemoryConfig::new())?;
    let [server, client] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let mut serving = serve(left, &StackConfig::new().address(server, 24), server)?;
    let mut asking =
        create_client(right, &StackConfig::new().address(client, 24), (server, PORT).into())?;
    // Two loops on one thread take turns. On two threads, each would call `run`.
    while asking.context().is_none() {
        serving.turn(Some(Duration::ZERO))?;
        asking.turn(Some(Duration::from_millis(1)))?;
    }
    let fetched = asking.into_context().ok_or("there is an answer")??;
    let body = String::from_utf8_lossy(&fetched.body);
    program::print(&[format!("{}: {body}", fetched.status)])?;
    Ok(())
}

/// Parses an address of a stack, as `ip address` writes it.
fn address(text: &str) -> Result<(IpAddr, u8), BoxError> {
    let parsed = text
        .split_once('/')
        .and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text:?} should be like 10.90.0.2/24").into())
}

fn on_device(kind: &str, name: &str, text: &str) -> Result<(), BoxError> {
    let (ip, prefix) = address(text)?;
    let config = StackConfig::new().address(ip, prefix);
    let instance = match kind {
        // The kernel's stack.
        "kernel" => return run(serve_on::<Inet, _>(Mio::new(EVENTS_LIMIT)?, ip)?, ip),
        kind => serve_on_device(kind, name, config, ip)?,
    };
    run(instance, ip)
}

#[cfg(target_os = "linux")]
fn serve_on_device(
    kind: &str,
    name: &str,
    config: StackConfig,
    ip: IpAddr,
) -> Result<Server, BoxError> {
    let opened = match kind {
        "tun" => KernelDevice::tun(name),
        "offloading" => KernelDevice::tun_offloading(name),
        "tap" => KernelDevice::tap(name),
        "packet" => KernelDevice::packet_socket(name),
        other => return Err(format!("{other:?} is none of {KINDS}").into()),
    };
    let device = opened.map_err(|error| format!("cannot open {kind} {name:?}: {error}"))?;
    // Packets from this computer itself have no checksums yet.
    serve(device, &config.verify_checksums(kind != "packet"), ip)
}

#[cfg(not(target_os = "linux"))]
fn serve_on_device(kind: &str, _: &str, _: StackConfig, _: IpAddr) -> Result<Server, BoxError> {
    Err(format!("{kind:?}: devices of the kernel are Linux's").into())
}

fn run<M: Machine, B: Backend>(
    mut instance: LoopInstance<M, B>,
    ip: IpAddr,
) -> Result<(), BoxError> {
    signals::drain_on_termination(instance.handle(), Duration::from_secs(10))?;
    program::print(&[format!("listening on http://{}/", SocketAddr::new(ip, PORT))])?;
    match instance.run()? {
        Exit::Drained { .. } | Exit::Stopped | Exit::Empty => Ok(()),
        other => Err(format!("the loop has ended: {other:?}").into()),
    }
}

fn main() -> ExitCode {
    program::run(|| {
        let arguments: Vec<String> = env::args().skip(1).collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => in_memory(),
            [kind, name, address] => on_device(kind, name, address),
            _ => {
                Err(format!("arguments: none, or KIND NAME ADDRESS/PREFIX; KIND is one of {KINDS}")
                    .into())
            }
        }
    })
}
