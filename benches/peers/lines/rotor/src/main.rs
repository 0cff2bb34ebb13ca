//! A line protocol that stores and fetches values, on rotor. `tests/long/lines-and-builds`
//! describes what it has in common with the one on tokio.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::env;
use std::io::Write;
use std::time::Duration;

use rotor::net::{ListenOptions, Listener, TcpListener, TcpStream};
use rotor::signals::drain_on_termination;
use rotor::stream::{
    Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport,
};
use rotor::{BoxError, Config, Loop, Response, Scope, Time};

const LINE_BYTES_MAX: usize = 1024;
const LINE_TIME_MAX: Duration = Duration::from_secs(10);
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
const CONNECTIONS_MAX: usize = 1000;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

type Store = HashMap<Vec<u8>, Vec<u8>>;

/// One connection. Whether a line has begun is known from what the connection waits for.
struct Lines;

impl Lines {
    /// Waits for the next line; during a drain, only if it has begun.
    fn next_line(self, transport: &Transport<'_>, scope: &Scope<'_, Store>) -> Intent<Self> {
        if !transport.input.is_empty() {
            return Intent::of(self)
                .delimiter(b"\n", LINE_BYTES_MAX)
                .deadline(scope.now() + LINE_TIME_MAX);
        }
        if scope.draining_until().is_some() {
            return Intent::done();
        }
        Intent::of(self).bytes(1).deadline(scope.now() + IDLE_TIME_MAX)
    }
}

impl Protocol for Lines {
    type Context = Store;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, Store>) -> Intent<Self> {
        Lines.next_line(transport, scope)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Store>,
    ) -> Intent<Self> {
        let line = &transport.input[..matched.len()];
        if !line.ends_with(b"\n") {
            return self.next_line(transport, scope);
        }
        let mut words = line.trim_ascii_end().splitn(3, |byte| *byte == b' ');
        let answered = match (words.next(), words.next(), words.next()) {
            (Some(b"SET"), Some(key), Some(value)) => {
                scope.insert(key.to_vec(), value.to_vec());
                transport.output.write_all(b"OK\n")
            }
            (Some(b"GET"), Some(key), None) => match scope.get(key) {
                Some(value) => transport.output.write_pieces(&[b"VALUE ", value, b"\n"]),
                None => transport.output.write_all(b"NONE\n"),
            },
            (Some(b"QUIT"), None, None) => return Intent::done(),
            _ => transport.output.write_all(b"ERROR\n"),
        };
        if let Err(error) = answered {
            return Intent::error(error);
        }
        matched.consume(transport.input);
        self.next_line(transport, scope)
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Store>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, Store>) -> Intent<Self> {
        Intent::done()
    }

    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Store>,
    ) -> Intent<Self> {
        if transport.input.is_empty() {
            return Intent::done();
        }
        Intent::of(self).keep().keep_deadline()
    }
}

fn main() -> Result<(), BoxError> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".into()).parse()?;
    let mut creator = Loop::<Accept<Stream<Lines, TcpStream>, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            println!("listening on {}", listener.local_address().unwrap_or(address));
            let config = AcceptConfig::new().connections_max(CONNECTIONS_MAX);
            Ok(Accept::listen(listener, (), config, scope))
        })
    })?;
    let mut instance = creator.instantiate(Store::new());
    drain_on_termination(instance.handle(), DRAIN_TIME_MAX)?;
    instance.run()?;
    Ok(())
}
