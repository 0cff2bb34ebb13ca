//! A small JSON service: a list of things to do, in memory.
//!
//! ```text
//! cargo run --release --example todo_backend [ADDRESS]
//! ```
//!
//! `GET /todos` lists them, `POST /todos` adds one (`{"title": ".."}`), `DELETE /todos` removes all; `GET`, `PATCH`
//! (`{"completed": true}`) and `DELETE` of `/todos/ID` are about one. The list is the context of the loop: all
//! connections share it, without a lock, because a loop calls one handler at a time.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are under way finish.

mod machine;
mod todos;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::TcpListener;
use rotor::{Config, Loop, signals};

use machine::TodoBackend;
use todos::Todos;

fn main() -> Result<(), Box<dyn Error>> {
    let mut address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let mut creator = Loop::<HttpAccept<TodoBackend<Todos>, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope)
            .inspect(|server| address = server.local_address().unwrap_or(address))
    })?;
    announce(address)?;
    signals::drain_on_termination(creator.handle(), Duration::from_secs(10))?;
    creator.instantiate(Todos::new()).run()?;
    Ok(())
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/")?;
    writeln!(out, "try: curl -i http://{address}/todos -d '{{\"title\": \"water the plants\"}}'")?;
    out.flush()
}
