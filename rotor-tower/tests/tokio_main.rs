//! A service whose loop runs on the thread of `#[tokio::main]`, within a single poll by tokio.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its sockets")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rotor_async::Tokio;
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop};
use rotor_http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor_tower::{Tower, TowerServer};

/// The number of the peer's requests: more tokio operations than the budget of a task (128).
const REQUESTS: usize = 300;

async fn answer() -> String {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move { sender.send("ready") });
    let said = receiver.await.unwrap_or("lost");
    let _sent = task.await;
    said.to_owned()
}

fn main_thread() {
    let routes = Router::new().route("/", get(answer));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let tower = Tower::new(routes).tokio(Tokio::current_or_new().expect("this one"));
        let mut creator =
            Loop::<HttpAccept<TowerServer<Router, axum::body::Body>, TcpListener>>::new(
                &Config::new(),
            )
            .expect("a loop");
        let mut bound = None;
        let added = creator.add_machine_with(|scope| {
            let address = "127.0.0.1:0".parse().expect("an address");
            let listener =
                TcpListener::bind(&address, &ListenOptions::new(), scope).expect("a port");
            bound = listener.local_address();
            let seed = HttpSeed::new(tower, ServerConfig::new());
            rotor_http::server::listen(listener, seed, scope)
        });
        added.expect("there is room");
        let mut instance = creator.instantiate(());
        let (address, handle) = (bound.expect("it was bound"), instance.handle());
        let peer = thread::spawn(move || {
            let mut socket = TcpStream::connect(address).expect("it listens");
            socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
            let answered = (0..REQUESTS).take_while(|_| ask(&mut socket)).count();
            handle.stop();
            answered
        });
        instance.run().expect("it runs");
        assert_eq!(peer.join().expect("no panic"), REQUESTS);
    });
}

fn ask(socket: &mut TcpStream) -> bool {
    if write!(socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err() {
        return false;
    }
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while !answer.ends_with(b"ready") {
        match socket.read(&mut piece) {
            Ok(count @ 1..) => answer.extend_from_slice(&piece[..count]),
            // The process was stopped and continued meanwhile (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
    true
}

#[test]
fn the_tokio_budget_of_the_main_task_does_not_run_out() {
    main_thread();
}

/// Where tokio keeps the wakers of tasks that yield until the poll under way returns.
#[test]
fn a_handler_may_yield_in_every_place_where_its_service_is_served() {
    use tokio::runtime::Builder;

    for (mut builder, is_spawned) in
        [(Builder::new_current_thread(), false), (Builder::new_multi_thread(), true)]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let runtime = builder.enable_all().build().expect("a runtime");
        // It serves until the process ends.
        thread::spawn(move || {
            let yields = get(async || {
                tokio::task::yield_now().await;
                "ready"
            });
            let routes = Router::new().route("/", yields);
            let serves = async move { rotor_tower::serve_on(listener, routes).is_ok() };
            match is_spawned {
                true => runtime.block_on(async { tokio::spawn(serves).await.is_ok() }),
                false => runtime.block_on(serves),
            }
        });
        let mut socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        assert!(ask(&mut socket), "spawned: {is_spawned}");
    }
}

#[test]
fn a_single_worker_goes_on_if_the_service_is_served_in_block_in_place() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
    // It serves until the process ends.
    thread::spawn(move || {
        let serves = async {
            let serve = || rotor_tower::serve_on(listener, Router::new().route("/", get(answer)));
            tokio::task::block_in_place(serve).is_ok()
        };
        runtime.block_on(async { tokio::spawn(serves).await.is_ok() })
    });
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    assert!(ask(&mut socket));
}
