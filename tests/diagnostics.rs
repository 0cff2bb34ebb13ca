//! The compiler's errors for typical mistakes of beginners. Each must name the trait in the words
//! of the book, and say what to do.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The beginning of each program.
const HEAD: &str = "#![allow(unused)]
use rotor::http::client::{ByAddress, ByName, Client, Connection, Connector, RequestSource, Fetch, PoolMachine};
use rotor::http::server::{Head, HttpAccept, Route, Routed, Next, NoUpgrade, Response as Page, Serve, Server};
use rotor::net::{DatagramSocket, Inet, IpNet, Listener, Net, StreamSocket, TcpListener, TcpStream, Unix};
use rotor::stream::{Accept, Intent, Matched, Protocol, Stream, Transport};
use rotor::http::rotor_routes;
use rotor::{Backend, BackendHandle, Config, Interest, Loop, Scope, rotor_compose};
use std::net as std_net;

struct Foo;
struct Other;

struct Idle<C>(std::marker::PhantomData<fn(C)>);
impl<C> rotor::Machine for Idle<C> {
    type Context = C;
    type Seed = rotor::Infallible;
}

struct Echo;
impl Protocol for Echo {
    type Context = ();
    type Seed = ();
    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
}

struct Hello;
struct Upgrading;
impl Server for Upgrading {
    type Context = ();
    type Seed = ();
    type Upgrade = Echo;
    fn headers_received(_: (), _: &Head<'_>, _: &mut Page<'_>, _: &mut Scope<'_, ()>) -> Next<Self> { Next::finished() }
}
impl Server for Hello {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;
    fn headers_received(_: (), _: &Head<'_>, _: &mut Page<'_>, _: &mut Scope<'_, ()>) -> Next<Self> { Next::finished() }
}

fn run<M: rotor::Machine>() {}
fn client<K: Client>() {}
fn connector<N: Connector<()>>() {}
fn feed<F: RequestSource<Fetch<()>>>() {}
fn family<N: Net>() {}
fn ip_family<N: IpNet>() {}
fn datagrams<S: DatagramSocket>() {}
fn backend<B: Backend>() {}
fn handle<H: BackendHandle>() {}
";

/// The newest build of the facade in the directory of this test, and that directory.
fn facade() -> (PathBuf, PathBuf) {
    let test = env::current_exe().expect("the system knows the path of this test");
    let directory = test.parent().expect("it is in a directory").to_path_buf();
    let files = fs::read_dir(&directory)
        .expect("it can be read")
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let builds = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librotor-") && name.ends_with(".rlib")
    });
    let newest = builds.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    (newest.expect("the facade was built for this test"), directory)
}

/// Compiles a program and returns the compiler's output, with line ends replaced by spaces.
fn compile(number: usize, program: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = directory.join(format!("diagnostics_{number}.rs"));
    fs::write(&source, format!("{HEAD}\nfn main() {{\n    {program}\n}}\n"))
        .expect("the directory is there");
    let (facade, dependencies) = facade();
    let output = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()))
        // The sources of the workspace are found from here, so that their lines can be shown.
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["--edition", "2024", "--emit", "metadata", "--out-dir"])
        .arg(directory)
        .arg("--extern")
        .arg(format!("rotor={}", facade.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg(&source)
        .output()
        .expect("there is a compiler");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{program}: {said}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_correct_program_compiles() {
    assert_eq!(
        compile(0, "run::<Accept<Stream<Echo, TcpStream>, TcpListener>>(); family::<Inet>();"),
        ""
    );
    assert_eq!(compile(1, "run::<HttpAccept<Hello, TcpListener>>();"), "");
}

#[test]
fn correctly_composed_programs_compile() {
    let right = [
        "rotor_compose! { enum App <()> { Idle(Idle<()>), Echo(Stream<Echo, TcpStream>) } } run::<App>();",
        "rotor_compose! { enum App / Seeds <()> { Idle(Idle<()>) } } run::<App>(); let _: Option<Seeds> = None;",
        "rotor_compose! { enum App<N: IpNet> <()> { Echo(Stream<Echo, N::Stream>) } } run::<App<Inet>>();",
        "rotor_compose! { enum App<N, M: rotor::Machine<Context = ()>> / Seeds <()> where [N: IpNet + Send] {
            Echo(Stream<Echo, N::Stream>), More(M) } } run::<App<Inet, Idle<()>>>();",
    ];
    for (number, program) in right.iter().enumerate() {
        assert_eq!(compile(50 + number, program), "");
    }
}

/// The usual problem of macros: after one mistake the compiler shows every line that the macro
/// generated.
#[test]
fn a_wrong_composition_is_reported_by_the_macro_or_at_the_part() {
    const FORM: &str = "expected `enum NAME <CONTEXT> { PART(MACHINE), .. }`";
    let cases: [(&str, &str, usize); 10] = [
        ("rotor_compose! { enum App { Idle(Idle<()>) } }", FORM, 1),
        ("rotor_compose! { enum App <()> { } }", FORM, 1),
        ("rotor_compose! { enum App <()> { Idle } }", FORM, 1),
        ("rotor_compose! { enum App <()> { Idle(Idle<()>, u32) } }", FORM, 1),
        ("rotor_compose! { struct App <()> { Idle(Idle<()>) } }", FORM, 1),
        ("rotor_compose! { enum App <()> { Foo(Foo) } }", "`Foo` is not a machine", 3),
        (
            "rotor_compose! { enum App <()> { Echo(Echo) } }",
            "becomes one as `rotor::stream::Stream<P, S>`",
            3,
        ),
        (
            "rotor_compose! { enum App <()> { Idle(Idle<Other>) } }",
            "type mismatch resolving `<Idle<Other> as Machine>::Context == ()`",
            2,
        ),
        // Each method reports a missing bound of a part's own type.
        (
            "rotor_compose! { enum App <Other> { Pool(PoolMachine<Fetch<Other>, ByName<TcpStream>>) } }",
            "the context `Other` has no resolver",
            17,
        ),
        (
            "rotor_compose! { enum App <()> { Http(HttpAccept<Foo, TcpListener>) } }",
            "`Foo` does not handle HTTP requests",
            17,
        ),
    ];
    for (number, (program, problem, errors_max)) in cases.into_iter().enumerate() {
        let said = compile(60 + number, program);
        assert!(said.contains(problem), "{program}: no {problem:?} in\n{said}");
        let errors = said.matches("error[").count() + said.matches("error: expected").count();
        assert!((1..=errors_max).contains(&errors), "{program}: {errors} errors in\n{said}");
    }
}

#[test]
fn a_wrong_combination_of_servers_is_reported_by_the_macro_or_at_the_part() {
    const FORM: &str = "expected `server NAME / SEED <CONTEXT> { PART(SERVER) if CONDITION, .. }`";
    let right = "rotor_routes! { server Site / Seeds <()> {
        a(Hello) if |head, _| head.path() == \"/a\", b(Hello) } } run::<HttpAccept<Site, TcpListener>>();";
    assert_eq!(compile(80, right), "");
    let cases: [(&str, &str, usize); 9] = [
        ("rotor_routes! { server Site <()> { a(Hello) } }", FORM, 1),
        ("rotor_routes! { server Site / Seeds { a(Hello) } }", FORM, 1),
        ("rotor_routes! { enum Site / Seeds <()> { a(Hello) } }", FORM, 1),
        (
            "rotor_routes! { server Site / Seeds <()> { a(Hello), b(Hello) } }",
            "`a` gets every request, and the parts after it none: give it a condition",
            1,
        ),
        (
            "rotor_routes! { server Site / Seeds <()> { a(Hello) if |_, _| true, b(Foo) } }",
            "`Foo` does not handle HTTP requests",
            10,
        ),
        (
            "rotor_routes! { server Site / Seeds <Other> { a(Hello) if |_, _| true, b(Hello) } }",
            "type mismatch resolving `<Hello as Server>::Context == Other`",
            6,
        ),
        (
            "rotor_routes! { server Site / Seeds <()> { a(Hello) if |_, _| true, b(Upgrading) } }",
            "type mismatch resolving `<Upgrading as Server>::Upgrade == NoUpgrade<()>`",
            3,
        ),
        (
            "rotor_routes! { server Site / Seeds <()> { a(Upgrading) if |_, _| true, b(Hello) } }",
            "`WithUpgrade<S, P>` gives `S` that of others",
            3,
        ),
        (
            "rotor_routes! { server Site / Seeds <()> { a(Hello) if |head| true, b(Hello) } }",
            "closure is expected to take 2 arguments",
            1,
        ),
    ];
    for (number, (program, problem, errors_max)) in cases.into_iter().enumerate() {
        let said = compile(81 + number, program);
        assert!(said.contains(problem), "{program}: no {problem:?} in\n{said}");
        let errors = said.matches("error[").count() + said.matches("error: ").count();
        let errors = errors - said.matches("error: aborting").count();
        assert!((1..=errors_max).contains(&errors), "{program}: {errors} errors in\n{said}");
    }
}

#[test]
fn a_wrong_program_gets_an_error_with_the_missing_part_and_the_fix() {
    const FROM_STD: &str = "which `from_std` makes of the standard library's";
    let cases: [(&str, &str, &str); 23] = [
        (
            "fn f() -> Intent<Foo> { Intent::of(Foo).bytes(1) }",
            "mismatched types",
            "found `NeedsDeadline<Foo>`",
        ),
        (
            "run::<Foo>();",
            "`Foo` is not a machine",
            "handlers of the events that it waits for are enough",
        ),
        (
            "run::<Echo>();",
            "`Echo` is not a machine",
            "a protocol becomes one as `rotor::stream::Stream<P, S>`",
        ),
        (
            "run::<Hello>();",
            "`Hello` is not a machine",
            "with its listener, as `rotor::http::server::HttpAccept<S, L>`",
        ),
        (
            "run::<Stream<Foo, TcpStream>>();",
            "`Foo` is not a protocol",
            "`create` and `bytes_read` are enough",
        ),
        (
            "run::<Accept<Echo, TcpListener>>();",
            "`Echo` cannot be made from an accepted",
            "`Accept<Stream<P, ",
        ),
        (
            "run::<HttpAccept<Foo, TcpListener>>();",
            "`Foo` does not handle HTTP requests",
            "and `headers_received` are enough",
        ),
        (
            "run::<Stream<Echo, std_net::TcpStream>>();",
            "`std::net::TcpStream` is not a stream socket",
            FROM_STD,
        ),
        (
            "run::<Accept<Stream<Echo, TcpStream>, std_net::TcpListener>>();",
            "is not a listener of rotor",
            FROM_STD,
        ),
        (
            "datagrams::<std_net::UdpSocket>();",
            "`std::net::UdpSocket` is not a datagram socket of rotor",
            FROM_STD,
        ),
        (
            "fn f(scope: &Scope<'_, ()>, mut socket: std_net::TcpStream) { scope.register(&mut socket, Interest::Both); }",
            "`std::net::TcpStream` cannot be registered with a loop",
            FROM_STD,
        ),
        ("client::<Foo>();", "`Foo` does not handle HTTP answers", "implement `Client` for it"),
        (
            "connector::<TcpStream>();",
            "does not connect for a pool whose context is `()`",
            "`ByAddress<S>` connects",
        ),
        (
            "feed::<Foo>();",
            "`Foo` gives a connection no requests of `Fetch<()>`",
            "a `Pool` has a source of its own",
        ),
        (
            "run::<HttpAccept<Routed<Foo>, TcpListener>>();",
            "`Foo` does not say which of two servers",
            "and `is_first`",
        ),
        (
            "fn f(config: rotor::tls::TlsServerConfig) { Serve::new(\"\").over(config); }",
            "`TlsServerConfig` is not a layer around listeners",
            "which `TlsServer::new(config)?` makes",
        ),
        (
            "fn f(tls: rotor::tls::TlsServer) { Serve::new(\"\").over(&tls); }",
            "`&TlsServer` is not a layer around listeners",
            "`TlsServer` is one",
        ),
        (
            "fn f(tls: rotor::tls::TlsServer, behind: rotor::proxy_protocol::ProxyProtocol) { Serve::new(\"\").over(tls).over(behind); }",
            "no method named `over` found for struct `Serve<MioKind, TlsServer>`",
            "the method was found for - `Serve<K>`",
        ),
        ("family::<TcpListener>();", "is not a family of sockets", "has `Inet` and `Unix`"),
        ("ip_family::<Foo>();", "is not a family of sockets with IP addresses", "`Inet` is one"),
        ("backend::<Foo>();", "`Foo` is not a backend", "`Loop::with_backend` takes others"),
        (
            "handle::<Foo>();",
            "`Foo` is not the handle of a backend",
            "a name and two clocks are enough",
        ),
        (
            "fn f(instance: rotor::LoopInstance<Idle<u32>>) { instance.taking_over(); }",
            "`u32` is not a context that several threads may have clones of",
            "implement `SharedContext` for a type of your own if all its clones show the same data",
        ),
    ];
    for (number, (program, problem, advice)) in cases.into_iter().enumerate() {
        let said = compile(10 + number, program);
        assert!(said.contains(problem), "{program}: no {problem:?} in\n{said}");
        assert!(said.contains(advice), "{program}: no {advice:?} in\n{said}");
    }
}
