//! gRPC without a framework: a service with the four kinds of call, and a client that makes them.
//!
//! ```text
//! cargo run --release -p rotor-examples --example grpc_greeter [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/
//! # in another terminal:
//! cargo run --release -p rotor-examples --example grpc_greeter h2c://127.0.0.1:3000/ Chat Ann Bob
//! Hello, Ann!
//! Hello, Bob!
//! ```
//!
//! The definition of the service, from which clients can be generated:
//!
//! ```text
//! syntax = "proto3";
//! package greeter;
//! service Greeter {
//!   rpc SayHello (Name) returns (Greeting);                // one message, one answer
//!   rpc SayMany (Name) returns (stream Greeting);          // three answers
//!   rpc Collect (stream Name) returns (Greeting);          // one answer to all
//!   rpc Chat (stream Name) returns (stream Greeting);      // an answer to each as it comes
//! }
//! message Name { string name = 1; }
//! message Greeting { string message = 1; }
//! ```
//!
//! A call is an HTTP/2 request. The bodies of request and response consist of messages, and the
//! status of the call is in the trailers. All that is needed is a handler that reads and writes at
//! the same time (`greeter.rs`, and `call.rs` on the client's side).
#![forbid(unsafe_code)]

mod call;
mod greeter;
mod wire;

use std::process::ExitCode;
use std::thread;

use call::{Answered, Call};
use greeter::Greeter;
use rotor::http::client::{ByAddress, ClientError, Pool, PoolConfig, PoolMachine, PoolRequest};
use rotor::http::server::{Http2Config, Serve, ServerConfig};
use rotor::net::TcpStream;
use rotor::{BoxError, Config, ExitPolicy, Loop};
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;
use rotor_examples::url::Url;

fn main() -> ExitCode {
    program::run(grpc_greeter)
}

fn grpc_greeter() -> Result<(), BoxError> {
    let first = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    if first.contains("://") {
        return ask(&first.parse()?);
    }
    let serve = Serve::new(first)
        .config(|| ServerConfig::new().http2(Http2Config::new().prior_knowledge(true)));
    match chosen_kind()? {
        Some(uring) => serve.loop_kind(uring).run::<Greeter>(|| ((), ()))?,
        None => serve.run::<Greeter>(|| ((), ()))?,
    }
    Ok(())
}

/// Makes one call, and prints the answers.
#[expect(clippy::disallowed_methods, reason = "a plain thread asks, outside of the loop")]
fn ask(url: &Url) -> Result<(), BoxError> {
    let method = program::argument(2, "SayHello".to_owned())?;
    let names = std::env::args().skip(3).collect();
    let authority = url.authority().to_owned();
    let call = Call { authority, method, names, unread: Vec::new(), answers: Vec::new() };
    let server = url.resolve()?;
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<PoolMachine<Call, ByAddress<TcpStream>>>::new(&config)?;
    let client = url.client_config();
    let pool: Pool<Call> = creator.add_part(
        |machine| machine,
        |scope| Ok(PoolMachine::new(PoolConfig::new(), client, scope)),
    )?;
    let mut instance = creator.instantiate(());
    let handle = instance.handle();
    let asking = thread::spawn(move || {
        let asked = pool.service().ask_from_thread(PoolRequest::new(server, call));
        let outcome = asked.ok().and_then(|answer| answer.wait().ok());
        handle.stop();
        outcome
    });
    instance.run()?;
    let outcome: Option<Result<Answered, ClientError>> =
        asking.join().map_err(|_| "the thread that asks has panicked")?;
    let (answers, status) = outcome.ok_or("the pool is gone")??;
    program::print(&answers)?;
    if status == "0" { Ok(()) } else { Err(format!("the call ended with status {status}").into()) }
}
