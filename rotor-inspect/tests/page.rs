//! The page, looked at over real connections, of a loop with real ones.
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

/// Answers; `/wait` never does, `/block` holds up the loop until it is let go.
struct App;

type Let = std::sync::Arc<std::sync::Mutex<Option<Receiver<()>>>>;

impl Server for App {
    type Context = ();
    type Seed = Let;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        blocks: Let,
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match head.path() {
            "/wait" => return Next::go_on(App).no_deadline(),
            "/block" => {
                let until = blocks.lock().expect("nobody panics").take();
                let _let_go = until.map(|until| until.recv());
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

/// A server that runs, and what looks at it.
struct Bed {
    address: SocketAddr,
    handle: LoopHandle,
    inspecting: Inspecting,
    let_go: std::sync::mpsc::Sender<()>,
}

impl Bed {
    fn new(inspector: impl FnOnce(&LoopInstance<Machine>) -> Inspecting + Send + 'static) -> Bed {
        let (let_go, until) = channel();
        let (tell, told) = channel();
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
            tell.send((address, instance.handle(), inspecting)).expect("somebody waits");
            instance.run().expect("it runs");
        });
        let (address, handle, inspecting) = told.recv().expect("it starts");
        Bed { address, handle, inspecting, let_go }
    }

    /// A connection that has sent a request.
    fn begin(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// A connection whose request was answered.
    fn idle(&self) -> TcpStream {
        let mut stream = self.begin("/");
        let mut answer = [0; 1_000];
        let mut len = 0;
        while !answer[..len].ends_with(b"hello") {
            len += stream.read(&mut answer[len..]).expect("it answers");
        }
        stream
    }

    fn ask(&self, request: &str) -> String {
        let address = self.inspecting.address().expect("a socket address");
        exchange(TcpStream::connect(address).expect("it listens"), request)
    }

    fn get_once(&self, target: &str) -> String {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n"))
    }

    /// What the page says, though the loop gets no CPU for as long as the page waits for it.
    fn get(&self, target: &str) -> String {
        loop {
            let answer = self.get_once(target);
            if !answer.starts_with("HTTP/1.1 504") {
                return answer;
            }
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _nobody_waits = self.let_go.send(());
        self.handle.stop();
    }
}

/// Sends the request, and reads until the end.
fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    let request = format!("{request}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn looks(inspector: Inspector, instance: &LoopInstance<Machine>) -> Inspecting {
    inspector.watch("main", instance).start(([127, 0, 0, 1], 0).into()).expect("it starts")
}

fn bed() -> Bed {
    Bed::new(|instance| looks(Inspector::new().allow_changes(true), instance))
}

/// How often the page is asked for what must appear on it.
const LOOKS_MAX: usize = 100_000;

#[test]
fn machines_are_shown_by_type_and_state_and_one_by_one() {
    let bed = bed();
    let (_idle, _also, _waits) = (bed.idle(), bed.idle(), bed.begin("/wait"));
    // The request that waits has been read once it is counted so.
    let mut looks = (0..LOOKS_MAX).map(|_| bed.get("/api/machines?loop=main&sort=age"));
    let all = looks.find(|all| all.contains("waits forever")).expect("it is shown");
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
    // What the script of the page reads.
    let of_machines = "loop phase matched page pages kinds rows machine state count held messages oldest \
                       token peer age deadline_in due";
    let of_loops = "changes refused loops servers name machines slots deadlines turns busy waited \
                    idle_for blocked_for longest_turn stuck failed panicked turn_times lag handlers";
    for (text, keys) in [(&all, of_machines), (&loops, of_loops)] {
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
fn head_is_answered_as_get_is_without_the_body() {
    let bed = bed();
    for target in ["/", "/api/loops", "/api/failures", "/api/machines?loop=main"] {
        let answer = bed.ask(&format!("HEAD {target} HTTP/1.1\r\nHost: localhost\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{target} {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{target} {answer}");
    }
    let answer = bed.ask("HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn another_method_is_refused_with_those_that_there_are() {
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
        let answer = bed.ask(&format!("{start} HTTP/1.1\r\n{fields}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {answer}");
        let said = answer.lines().find_map(|line| line.strip_prefix("Allow: "));
        assert_eq!(said.unwrap_or_default(), allow, "{start}: {answer}");
        assert!(answer.contains("X-Content-Type-Options: nosniff"), "{start}: {answer}");
    }
    let _serves_still = bed.idle();
}

#[test]
fn a_connection_is_ended_by_who_may_and_by_no_page_of_a_stranger() {
    let bed = bed();
    let mut waits = bed.begin("/wait");
    let mut looks =
        (0..LOOKS_MAX).map(|_| bed.get("/api/machines?loop=main&state=waits%20forever"));
    let all = looks.find(|all| all.contains(r#""matched":1,"#)).expect("it is shown");
    let token = all.split(r#""token":""#).nth(1).and_then(|rest| rest.split('"').next());
    let target = format!("/api/decide?loop=main&do=end&token={}", token.expect("a row"));
    let post = format!("POST {target} HTTP/1.1\r\nContent-Length: 0\r\n");
    for (fields, status) in [
        ("Host: localhost\r\n", "403"),
        ("Host: example.com\r\nX-Rotor-Inspect: 1\r\n", "403"),
        ("Host: localhost\r\nX-Rotor-Inspect: 1\r\nOrigin: http://example.com\r\n", "403"),
        ("Host: localhost\r\nX-Rotor-Inspect: 1\r\n", "200"),
    ] {
        let answer = bed.ask(&format!("{post}{fields}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields} {answer}");
        assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{answer}");
    }
    let mut rest = Vec::new();
    let _reset = waits.read_to_end(&mut rest);
    assert!(rest.is_empty(), "it was ended");
    let again = bed.ask(&format!("{post}Host: localhost\r\nX-Rotor-Inspect: 1\r\n"));
    assert!(again.starts_with("HTTP/1.1 404"), "it is gone: {again}");
    assert_eq!(bed.inspecting.refused(), 3, "each of them is counted, and nobody else");
}

#[test]
fn what_is_not_allowed_is_not_done() {
    let bed = Bed::new(|instance| looks(Inspector::new(), instance));
    let head = "POST /api/drain?loop=main HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n";
    let answer = bed.ask(&format!("{head}X-Rotor-Inspect: 1\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("changes are off"), "{answer}");
    let answer = bed.ask("GET / HTTP/1.1\r\nHost: rebound.example.com\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let _serves_still = bed.idle();
    assert_eq!(bed.inspecting.refused(), 2);
    let loops = bed.get("/api/loops");
    assert!(loops.contains(r#""changes":false,"refused":2,"#), "{loops}");
}

#[test]
fn a_loop_that_is_held_up_is_shown_as_blocked() {
    let bed = bed();
    let _blocks = bed.begin("/block");
    let blocked = loop {
        let answer = bed.get_once("/api/machines?loop=main");
        if answer.starts_with("HTTP/1.1 504") {
            break answer;
        }
    };
    assert!(blocked.contains(r#""blocked":{"name":"main""#), "{blocked}");
    assert!(!blocked.contains(r#""blocked_for":null"#), "{blocked}");
    bed.let_go.send(()).expect("it waits");
    let _serves_again = bed.idle();
    // Or soon: the turn that has answered may not have ended.
    while !bed.get("/api/loops").contains(r#""blocked_for":null"#) {}
}

#[test]
fn one_at_a_time_has_a_loop_walk_and_the_next_one_may_when_that_is_over() {
    let bed = bed();
    let _blocks = bed.begin("/block");
    while bed.get("/api/loops").contains(r#""blocked_for":null"#) {}
    let address = bed.inspecting.address().expect("a socket address");
    let request =
        b"GET /api/machines?loop=main HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // Unless this process had no CPU for the second that the first one waits.
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
    bed.let_go.send(()).expect("it waits");
    assert!(bed.get("/api/machines?loop=main").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_unix_socket_is_for_its_user_alone() {
    let directory = Directory::create();
    let path = directory.join("socket");
    let at = path.clone();
    let bed = Bed::new(move |instance| {
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
fn a_link_at_the_path_is_neither_followed_nor_removed() {
    let directory = Directory::create();
    let (link, target) = (directory.join("link"), directory.join("target"));
    std::os::unix::fs::symlink(&target, &link).expect("it is made");
    let refused = Inspector::new().start_unix(&link);
    assert!(matches!(refused, Err(InspectError::Start(_))), "{refused:?}");
    assert!(!target.exists() && fs::symlink_metadata(&link).is_ok());
    // What somebody else has put in the place of the socket is not removed with it.
    let (path, moved) = (directory.join("socket"), directory.join("moved"));
    let inspecting = Inspector::new().start_unix(&path).expect("it starts");
    fs::rename(&path, &moved).expect("it is there");
    fs::write(&path, "another's").expect("there is room");
    inspecting.stop();
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "another's");
}

#[test]
fn a_page_of_another_origin_may_link_to_the_page_and_not_ask_for_what_it_shows() {
    let bed = bed();
    for (target, site, status) in [
        ("/api/machines?loop=main", "cross-site", "403"),
        ("/api/loops", "same-site", "403"),
        ("/api/loops", "same-origin", "200"),
        ("/", "cross-site", "200"),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n");
        let answer = bed.ask(&format!("{head}Sec-Fetch-Site: {site}\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{target} {site} {answer}");
        assert!(answer.contains("Cross-Origin-Resource-Policy: same-origin"), "{answer}");
    }
    assert_eq!(bed.inspecting.refused(), 2);
    let head = bed.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && !head.contains("<script"), "{head}");
}

#[test]
fn others_than_the_loopback_need_a_token_and_it_is_asked_for() {
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
fn two_loops_of_one_name_are_refused_and_named() {
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
    // One loop may be watched as two.
    assert!(start(["a", "b", "A"]).is_ok());
}

#[test]
fn the_last_failures_are_shown_as_text_that_no_script_takes_for_its_own() {
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
