//! Async handlers of `rotor-async` in virtual time, with all faults: each request gets its own
//! response, futures sleep in simulated time, and no future outlives its request.

use std::cell::Cell;
use std::pin::Pin;
use std::time::Duration;

use rotor::http::Status;
use rotor::http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Accept;
use rotor::{BoxError, Response, Scope};
use rotor_async::http::{Answer, AsyncServer, Request, WithScope, with_scope};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Script, Sim};

use crate::stage::{self, Clients};

type Answering = Pin<Box<dyn Future<Output = Answer>>>;
type Handler = fn(Request, &mut Scope<'_, ()>) -> Answering;
type Server = HttpAccept<AsyncServer<WithScope<Handler>, ()>, SimTcpListener>;

thread_local! {
    /// The number of live futures in the simulation that this thread runs.
    static ALIVE: Cell<i32> = const { Cell::new(0) };
}

struct Alive;

impl Alive {
    fn new() -> Alive {
        ALIVE.set(ALIVE.get() + 1);
        Alive
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

/// Sleeps as long as the path says, has another thread reverse the body, and sleeps again.
fn slow_echo(request: Request, scope: &mut Scope<'_, ()>) -> Answering {
    let alive = Alive::new();
    let nap = request.path()[1..].parse().map_or(Duration::ZERO, Duration::from_millis);
    let body = request.body().to_vec();
    let turned = scope.offload(move || body.into_iter().rev().collect::<Vec<u8>>());
    Box::pin(async move {
        let _alive = alive;
        rotor_async::sleep(nap).await;
        let Ok(turned) = turned else { return Answer::new(Status::SERVICE_UNAVAILABLE) };
        let Ok(turned) = rotor_async::wait(turned).await else {
            return Answer::new(Status::SERVICE_UNAVAILABLE);
        };
        rotor_async::sleep(nap).await;
        Answer::new(Status::OK).body("text/plain", turned)
    })
}

fn script(number: u32) -> Script {
    // With faults, the offload queue may be full, and a head may arrive too late.
    let mut script =
        stage::persistent_script().may_refuse(b"HTTP/1.1 503").may_refuse(b"HTTP/1.1 408");
    for request in 0..3 {
        let body = format!("c{number}r{request}");
        let nap = number * 400 + request * 70;
        let length = body.len();
        let sent =
            format!("POST /{nap} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
        let turned: String = body.chars().rev().collect();
        script = script
            .send(sent.as_bytes())
            .expect(b"HTTP/1.1 200 OK\r\n")
            .receive_until(b"\r\n\r\n")
            .expect(turned.as_bytes())
            .pause(stage::think_time(number, request));
    }
    script.shutdown().expect_end()
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    ALIVE.set(0);
    let server =
        stage::serve::<Server>(sim, "server", |address, scope| {
            match SimTcpListener::bind(&address, &ListenOptions::new(), scope) {
                Ok(listener) => {
                    let seed = HttpSeed::new(with_scope(slow_echo as Handler), ServerConfig::new());
                    Accept::listen(listener, seed, stage::patient(), scope)
                }
                Err(error) => Response::error(error),
            }
        })?;
    let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
    for number in 0..5 {
        clients.add(sim, script(number));
    }
    stage::play(sim, server, &clients)?;
    match ALIVE.get() {
        0 => Ok(()),
        alive => Err(format!("{alive} futures outlive their requests").into()),
    }
}

#[test]
fn async_handlers_answer_in_virtual_time_and_leak_nothing() {
    stage::check(scenario);
}
