//! The page, requested over real connections, for a loop that has real connections.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other end is a plain client, outside of any loop"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopHandle, LoopInstance, Response};
use rotor_http::Status;
use rotor_http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Scope, Server, ServerConfig,
};
use rotor_inspect::{Failures, InspectError, Inspecting, Inspector};
use rotor_test_kit::Directory;

/// Answers every request, but `/wait` never, and `/block` blocks the loop until it is released.
struct App;

type BlockGate = std::sync::Arc<std::sync::Mutex<Option<Receiver<()>>>>;

impl Server for App {
    type Context = ();
    type Seed = BlockGate;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        blocks: BlockGate,
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match head.path() {
            "/wait" => return Next::go_on(App).no_deadline(),
            "/block" => {
                let until = blocks.lock().expect("nobody panics").take();
                let _unblocked = until.map(|until| until.recv());
            }
            _ => {}
        }
        response.reply(Status::OK, "text/plain", b"hello").into()
    }

    fn describe(&self, to: &mut rotor_core::Description) {
        to.set_state("waits forever");
    }
}

type Machine = HttpAccept<App, TcpListener>;

/// A running server, and its inspector.
struct TestBed {
    address: SocketAddr,
    handle: LoopHandle,
    inspecting: Inspecting,
    unblock: std::sync::mpsc::Sender<()>,
}

impl TestBed {
    fn new(
        inspector: impl FnOnce(&LoopInstance<Machine>) -> Inspecting + Send + 'static,
    ) -> TestBed {
        let (unblock, until) = channel();
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let config = Config::new().keep_ages(true);
            let mut creator = Loop::<Machine>::new(&config).expect("a descriptor is left");
            let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
            let seed = HttpSeed::<App>::new(
                std::sync::Arc::new(std::sync::Mutex::new(Some(until))),
                ServerConfig::new(),
            );
            let made = creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
                    address = listener.local_address().expect("it is bound");
                    Ok(server::listen(listener, seed, scope))
                })
            });
            made.expect("there is room");
            let mut instance = creator.instantiate(());
            let inspecting = inspector(&instance);
            sender.send((address, instance.handle(), inspecting)).expect("somebody waits");
            instance.run().expect("it runs");
        });
        let (address, handle, inspecting) = receiver.recv().expect("it starts");
        TestBed { address, handle, inspecting, unblock }
    }

    /// A connection that has sent a request.
    fn send_request(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// A connection whose request was answered.
    fn idle_connection(&self) -> TcpStream {
        let mut stream = self.send_request("/");
        let mut answer = [0; 1_000];
        let mut len = 0;
        while !answer[..len].ends_with(b"hello") {
            len += stream.read(&mut answer[len..]).expect("it answers");
        }
        stream
    }

    fn query_inspector(&self, request: &str) -> String {
        let address = self.inspecting.address().expect("a socket address");
        exchange(TcpStream::connect(address).expect("it listens"), request)
    }

    fn get_once(&self, target: &str) -> String {
        self.query_inspector(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n"))
    }

    /// The answer of the page. Asks again if the loop gets no CPU time while the page waits for it.
    fn get(&self, target: &str) -> String {
        loop {
            let answer = self.get_once(target);
            if !answer.starts_with("HTTP/1.1 504") {
                return answer;
            }
        }
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        let _nobody_waits = self.unblock.send(());
        self.handle.stop();
    }
}

/// Sends the request, and reads the answer up to its end.
fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    let request = format!("{request}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn start_inspector(inspector: Inspector, instance: &LoopInstance<Machine>) -> Inspecting {
    inspector.watch("main", instance).start(([127, 0, 0, 1], 0).into()).expect("it starts")
}

fn bed() -> TestBed {
    TestBed::new(|instance| start_inspector(Inspector::new().allow_changes(true), instance))
}

/// How often the page is requested until it must show the expected text.
const POLLS_MAX: usize = 100_000;

#[test]
fn machines_are_shown_as_totals_by_kind_and_as_single_rows() {
    let bed = bed();
    let (_idle, _also, _waits) =
        (bed.idle_connection(), bed.idle_connection(), bed.send_request("/wait"));
    // Once the waiting request is counted as such, it has been read.
    let mut polls = (0..POLLS_MAX).map(|_| bed.get("/api/machines?loop=main&sort=age"));
    let all = polls.find(|all| all.contains("waits forever")).expect("it is shown");
    assert!(all.contains(r#""state":"idle","count":2,"#), "{all}");
    assert!(all.contains(r#""state":"waits forever","count":1,"#), "{all}");
    assert!(all.contains(r#""state":"listening","count":1,"#), "{all}");
    assert!(all.contains(r#""matched":4,"page":0,"pages":1,"#), "{all}");
    assert!(all.contains(r#""peer":"127.0.0.1:"#) && all.contains(r#""age":"#), "{all}");
    let some = bed.get("/api/machines?loop=main&state=waits%20forever");
    assert!(some.contains(r#""matched":1,"#), "{some}");
    let none = bed.get("/api/machines?loop=main&machine=no%20such");
    assert!(none.contains(r#""matched":0,"#) && none.contains(r#""count":2,"#), "{none}");
    let loops = bed.get("/api/loops");
    assert!(loops.contains(r#""name":"main","machines":4,"#), "{loops}");
    // The keys that the script of the page reads.
    let machine_keys = "loop phase matched page pages kinds rows machine state count held messages oldest \
                       token peer age deadline_in due";
    let loop_keys = "changes refused loops servers name machines slots deadlines turns busy waited \
                    idle_for blocked_for longest_turn stuck failed panicked turn_times lag handlers";
    for (text, keys) in [(&all, machine_keys), (&loops, loop_keys)] {
        for key in keys.split_whitespace() {
            assert!(text.contains(&format!("\"{key}\":")), "{key}: {text}");
        }
    }
    for counts in [r#""turn_times":["#, r#""lag":["#] {
        let counts = loops.split(counts).nth(1).and_then(|rest| rest.split(']').next());
        let counts: Vec<u64> =
            counts.expect("a list").split(',').map(|count| count.parse().expect("it")).collect();
        assert!(counts.len() > 10, "{loops}");
    }
    assert!(bed.get("/api/machines?loop=other").starts_with("HTTP/1.1 404"));
    assert!(bed.get("/").contains("<script src=\"/inspect.js\">"));
}

#[test]
fn head_is_answered_like_get_without_the_body() {
    let bed = bed();
    for target in ["/", "/api/loops", "/api/failures", "/api/machines?loop=main"] {
        let answer = bed.query_inspector(&format!("HEAD {target} HTTP/1.1\r\nHost: localhost\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{target} {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{target} {answer}");
    }
    let answer = bed.query_inspector("HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn an_unsupported_method_is_refused_with_the_allowed_ones() {
    let bed = bed();
    for (start, status, allow) in [
        ("PUT /", "405", "GET, HEAD"),
        ("DELETE /inspect.js", "405", "GET, HEAD"),
        ("POST /api/loops", "405", "GET, HEAD"),
        ("OPTIONS /api/failures", "405", "GET, HEAD"),
        ("PUT /api/machines?loop=main", "405", "GET, HEAD"),
        ("GET /api/decide?loop=main&do=end&token=1", "405", "POST"),
        ("HEAD /api/drain?loop=main", "405", "POST"),
        ("PATCH /api/drain?loop=main", "405", "POST"),
        ("PUT /nothing", "404", ""),
        ("POST /nothing", "404", ""),
    ] {
        let fields = "Host: localhost\r\nContent-Length: 0\r\nX-Rotor-Inspect: 1\r\n";
        let answer = bed.query_inspector(&format!("{start} HTTP/1.1\r\n{fields}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {answer}");
        let said = answer.lines().find_map(|line| line.strip_prefix("Allow: "));
        assert_eq!(said.unwrap_or_default(), allow, "{start}: {answer}");
        assert!(answer.contains("X-Content-Type-Options: nosniff"), "{start}: {answer}");
    }
    let _still_serving = bed.idle_connection();
}

#[test]
fn a_connection_is_ended_only_by_a_request_that_passes_all_checks() {
    let bed = bed();
    let mut waits = bed.send_request("/wait");
    let target = format!("/api/decide?loop=main&do=end&token={}", waiting_token(&bed));
    let post = format!("POST {target} HTTP/1.1\r\nContent-Length: 0\r\n");
    for (fields, status) in [
        ("Host: localhost\r\n", "403"),
        ("Host: example.com\r\nX-Rotor-Inspect: 1\r\n", "403"),
        ("Host: localhost\r\nX-Rotor-Inspect: 1\r\nOrigin: http://example.com\r\n", "403"),
        ("Host: localhost\r\nX-Rotor-Inspect: 1\r\n", "200"),
    ] {
        let answer = bed.query_inspector(&format!("{post}{fields}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields} {answer}");
        assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{answer}");
    }
    let mut rest = Vec::new();
    let _reset = waits.read_to_end(&mut rest);
    assert!(rest.is_empty(), "it was ended");
    let again = bed.query_inspector(&format!("{post}Host: localhost\r\nX-Rotor-Inspect: 1\r\n"));
    assert!(again.starts_with("HTTP/1.1 404"), "it is gone: {again}");
    assert_eq!(bed.inspecting.refused(), 3, "each of them is counted, and nobody else");
}

/// The token of the request that waits forever, once it is shown.
fn waiting_token(bed: &TestBed) -> String {
    let mut polls =
        (0..POLLS_MAX).map(|_| bed.get("/api/machines?loop=main&state=waits%20forever"));
    let all = polls.find(|all| all.contains(r#""matched":1,"#)).expect("it is shown");
    let token = all.split(r#""token":""#).nth(1).and_then(|rest| rest.split('"').next());
    token.expect("a row").to_owned()
}

#[test]
fn a_change_that_a_blocked_loop_has_not_confirmed_is_not_made_later() {
    let bed = bed();
    let _waits = bed.send_request("/wait");
    let target = format!("/api/decide?loop=main&do=end&token={}", waiting_token(&bed));
    let _blocks = bed.send_request("/block");
    while bed.get("/api/loops").contains(r#""blocked_for":null"#) {}
    let fields = "Host: localhost\r\nX-Rotor-Inspect: 1\r\nContent-Length: 0\r\n";
    let answer = bed.query_inspector(&format!("POST {target} HTTP/1.1\r\n{fields}"));
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    bed.unblock.send(()).expect("it waits");
    // What was posted first is done first, and verdicts are applied at the end of a turn.
    bed.get("/api/machines?loop=main");
    let all = bed.get("/api/machines?loop=main&state=waits%20forever");
    assert!(all.contains(r#""matched":1,"#), "{all}");
}

#[test]
fn changes_and_foreign_hosts_are_refused_by_default() {
    let bed = TestBed::new(|instance| start_inspector(Inspector::new(), instance));
    let head = "POST /api/drain?loop=main HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n";
    let answer = bed.query_inspector(&format!("{head}X-Rotor-Inspect: 1\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("changes are off"), "{answer}");
    let answer = bed.query_inspector("GET / HTTP/1.1\r\nHost: rebound.example.com\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let _still_serving = bed.idle_connection();
    assert_eq!(bed.inspecting.refused(), 2);
    let loops = bed.get("/api/loops");
    assert!(loops.contains(r#""changes":false,"refused":2,"#), "{loops}");
}

#[test]
fn a_blocked_loop_is_shown_as_blocked() {
    let bed = bed();
    let _blocks = bed.send_request("/block");
    let blocked = loop {
        let answer = bed.get_once("/api/machines?loop=main");
        if answer.starts_with("HTTP/1.1 504") {
            break answer;
        }
    };
    assert!(blocked.contains(r#""blocked":{"name":"main""#), "{blocked}");
    assert!(!blocked.contains(r#""blocked_for":null"#), "{blocked}");
    bed.unblock.send(()).expect("it waits");
    let _serving_again = bed.idle_connection();
    // It may take a moment: the turn that has answered may not have ended.
    while !bed.get("/api/loops").contains(r#""blocked_for":null"#) {}
}

#[test]
fn only_one_walk_runs_at_a_time() {
    let bed = bed();
    let _blocks = bed.send_request("/block");
    while bed.get("/api/loops").contains(r#""blocked_for":null"#) {}
    let address = bed.inspecting.address().expect("a socket address");
    let request =
        b"GET /api/machines?loop=main HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // Unless this process gets no CPU time in the second that the first request waits.
    let is_refused = (0..5).any(|_| {
        let mut both = [(); 2].map(|()| TcpStream::connect(address).expect("it listens"));
        both.iter_mut().for_each(|it| it.write_all(request).expect("it reads"));
        let answers = both.map(|mut stream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        });
        assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 504")), "{answers:?}");
        answers.iter().any(|answer| answer.contains("another one asks"))
    });
    assert!(is_refused);
    bed.unblock.send(()).expect("it waits");
    assert!(bed.get("/api/machines?loop=main").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_unix_socket_is_private_to_its_user_and_removed_at_the_end() {
    let directory = Directory::create();
    let path = directory.join("socket");
    let at = path.clone();
    let bed = TestBed::new(move |instance| {
        Inspector::new().watch("main", instance).start_unix(at).expect("it starts")
    });
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(&path).expect("it listens");
    let answer = exchange(stream, "GET /api/failures HTTP/1.1\r\nHost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("[]"), "{answer}");
    let again = Inspector::new().start_unix(&path);
    assert!(matches!(again, Err(InspectError::Start(_))), "it is not replaced: {again:?}");
    assert!(UnixStream::connect(&path).is_ok(), "nor removed");
    drop(bed);
    assert!(!path.exists(), "it goes with what listens there");
}

#[test]
fn a_foreign_file_at_the_socket_path_is_not_followed_or_removed() {
    let directory = Directory::create();
    let (link, target) = (directory.join("link"), directory.join("target"));
    std::os::unix::fs::symlink(&target, &link).expect("it is made");
    let refused = Inspector::new().start_unix(&link);
    assert!(matches!(refused, Err(InspectError::Start(_))), "{refused:?}");
    assert!(!target.exists() && fs::symlink_metadata(&link).is_ok());
    // A file that another program has put in the place of the socket is not removed.
    let (path, moved) = (directory.join("socket"), directory.join("moved"));
    let inspecting = Inspector::new().start_unix(&path).expect("it starts");
    fs::rename(&path, &moved).expect("it is there");
    fs::write(&path, "another's").expect("there is room");
    inspecting.stop();
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "another's");
}

#[test]
fn another_origin_may_link_to_the_page_but_not_query_the_api() {
    let bed = bed();
    for (target, site, status) in [
        ("/api/machines?loop=main", "cross-site", "403"),
        ("/api/loops", "same-site", "403"),
        ("/api/loops", "same-origin", "200"),
        ("/", "cross-site", "200"),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n");
        let answer = bed.query_inspector(&format!("{head}Sec-Fetch-Site: {site}\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{target} {site} {answer}");
        assert!(answer.contains("Cross-Origin-Resource-Policy: same-origin"), "{answer}");
    }
    assert_eq!(bed.inspecting.refused(), 2);
    let head = bed.query_inspector("HEAD / HTTP/1.1\r\nHost: localhost\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && !head.contains("<script"), "{head}");
}

#[test]
fn an_address_beyond_the_loopback_requires_a_token() {
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Inspector::new().start(anywhere);
    assert!(matches!(refused, Err(InspectError::Remote(_))), "{refused:?}");
    let refused = Inspector::new().token("short").start(anywhere);
    assert!(matches!(refused, Err(InspectError::Token)), "{refused:?}");
    let inspecting = Inspector::new().token("0123456789abcdef").start(anywhere);
    let port = inspecting.as_ref().expect("it starts").address().expect("an address").port();
    let ask = |fields: &str| {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        exchange(stream, &format!("GET /api/loops HTTP/1.1\r\nHost: any\r\n{fields}"))
    };
    assert!(ask("").contains("WWW-Authenticate: Basic"));
    let credentials = "Authorization: Basic cm90b3I6MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    assert!(ask(credentials).starts_with("HTTP/1.1 200"));
    assert_eq!(inspecting.expect("it runs").refused(), 1);
}

#[test]
fn two_loops_with_the_same_name_are_refused_by_an_error_naming_it() {
    let idle =
        || Loop::<rotor_core::BoxMachine<()>>::new(&Config::new()).expect("a loop").instantiate(());
    let (one, other) = (idle(), idle());
    let start = |names: [&str; 3]| {
        let watched = Inspector::new().watch(names[0], &one).watch(names[1], &other);
        watched.watch(names[2], &one).start(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    for names in [["a", "b", "a"], ["a", "a", "b"], ["b", "a", "a"]] {
        let refused = start(names);
        assert!(
            matches!(&refused, Err(InspectError::SameName(name)) if name == "a"),
            "{refused:?}"
        );
    }
    // One loop may be watched under two names.
    assert!(start(["a", "b", "A"]).is_ok());
}

#[test]
fn failures_are_shown_as_text_in_which_markup_is_escaped() {
    use rotor_core::{Infallible, Machine, Scope};

    struct Fails;

    impl Machine for Fails {
        type Context = ();
        type Seed = Infallible;

        fn wakeup(self, _: &mut Scope<'_, ()>) -> Response<Self> {
            Response::error("</script><script>alert(1)</script>")
        }
    }

    let failures = Failures::new();
    let config = Config::new().observer(failures.observer());
    let mut creator = Loop::<Fails>::new(&config).expect("a descriptor is left");
    let made = creator.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(Fails)
    });
    made.expect("there is room");
    creator.instantiate(()).run().expect("it runs");
    let inspecting = Inspector::new().failures(&failures).start(([127, 0, 0, 1], 0).into());
    let address = inspecting.as_ref().expect("it starts").address().expect("an address");
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let answer = exchange(stream, "GET /api/failures HTTP/1.1\r\nHost: localhost\r\n");
    assert!(answer.contains("\\u003c/script\\u003e") && !answer.contains("<script"), "{answer}");
}
