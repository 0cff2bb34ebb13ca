//! Answers every blank line with a canned hello: the least that a protocol on a stream can do, for
//! measuring what the stream itself costs.
//!
//! ```text
//! canned [ADDRESS]        default 127.0.0.1:3000
//! ```
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::{ListenOptions, TcpListener, TcpStream};
use rotor_core::{Config, Loop, Scope};
use rotor_stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};

/// As long as the answer of the bare loop.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\
    Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nHello, World!";

/// How long a peer may take for a request.
const PATIENCE: Duration = Duration::from_secs(60);

struct Hello;

impl Hello {
    fn next_request(self, scope: &Scope<'_, ()>) -> Intent<Hello> {
        Intent::of(self).delimiter(b"\r\n\r\n", 8192).deadline(scope.now() + PATIENCE)
    }
}

impl Protocol for Hello {
    type Context = ();
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
        Hello.next_request(scope)
    }

    fn bytes_read(
        self,
        head: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        head.consume(transport.input);
        match transport.output.write_all(RESPONSE) {
            Ok(()) => self.next_request(scope),
            Err(error) => Intent::error(error),
        }
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }
}

type Server = Accept<Stream<Hello, TcpStream>, TcpListener>;

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let mut creator = Loop::<Server>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
    })?;
    let mut instance = creator.instantiate(());
    let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
    let mut stdout = std::io::stdout();
    writeln!(stdout, "listening on http://{}/", address.unwrap_or(([0, 0, 0, 0], 0).into()))?;
    stdout.flush()?;
    instance.run()?;
    Ok(())
}
