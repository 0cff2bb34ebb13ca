//! A store of keys and values for many clients, with a second port for its operators.
//!
//! ```text
//! cargo run --release -p rotor-examples --example key_value [ADDRESS:PORT [STATS_ADDRESS:PORT]]
//! listening on 127.0.0.1:7004
//! statistics on 127.0.0.1:7005
//! try: printf 'SET greeting hello\nGET greeting\nQUIT\n' | nc 127.0.0.1 7004
//! try: printf 'STATS\nQUIT\n' | nc 127.0.0.1 7005
//! ```
//!
//! | a client sends | and gets |
//! |--|--|
//! | `SET key value` | `OK`; the value is everything up to the end of the line |
//! | `GET key` | `VALUE value`, or `NONE` |
//! | `DEL key` | `1`, or `0` if there was none |
//! | `INCR key` | the number, one more than before |
//! | `TTL key seconds` | `1`, or `0` if there is none; the pair is removed after that time |
//! | `KEYS [prefix]` | `KEY key` for each, then `END number` |
//! | `QUIT` | `BYE`, and the end |
//! | anything else | `ERR` and why |
//!
//! Keys have at most 250 bytes, values at most 8 KiB. There are at most 100,000 pairs in 64 MiB;
//! further ones are refused. There are at most a thousand clients; further ones are refused as
//! well. A line may take ten seconds from its first byte to its end, and a client may be silent for
//! sixty.
//!
//! On Ctrl-C, lines that have arrived are still answered, for at most ten seconds; then the program
//! prints how many there were.
#![forbid(unsafe_code)]

mod command;
mod machine;
mod operator;
mod shared;
mod store;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::Client;
use operator::Operator;
use rotor::net::{IpNet, ListenOptions, Listener, Net};
use rotor::stream::{Accept, AcceptConfig, Protocol, Stream};
use rotor::{Backend, BoxError, Config, EarlyScope, Loop, Response, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;
use shared::Shared;
use store::Store;

const PAIRS_MAX: usize = 100_000;
const STORE_BYTES_MAX: usize = 64 * 1_024 * 1_024;
const CLIENTS_MAX: usize = 1_000;
const OPERATORS_MAX: usize = 8;

/// How many clients above the limit are told so at the same time. Others wait in the system's
/// queue.
const REFUSED_MAX: usize = 64;

/// How many expired pairs are removed each second. Until then they are invisible, but take memory.
const REAPED_PER_SECOND: usize = 10_000;

rotor_compose! {
    /// The machines of the loop: two ports with their connections.
    enum App <N: IpNet> <Shared> {
        Clients(Server<N, Client>),
        Operators(Server<N, Operator>),
    }
}

type Server<N, P> = Accept<Stream<P, <N as Net>::Stream>, <N as Net>::Listener>;

fn main() -> ExitCode {
    program::run(key_value)
}

fn key_value() -> Result<(), BoxError> {
    let clients = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7004)))?;
    // If only one address is given, the system chooses the other port.
    let port = if std::env::args_os().nth(1).is_none() { 7005 } else { 0 };
    let operators = program::argument(2, SocketAddr::from(([127, 0, 0, 1], port)))?;
    if !operators.ip().is_loopback() {
        return Err(format!("statistics are for this machine only, not on {operators}").into());
    }
    on_chosen_loop(Ports { clients, operators })
}

/// The addresses at which it listens.
struct Ports {
    clients: SocketAddr,
    operators: SocketAddr,
}

impl OnAnyLoop for Ports {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Ports { clients, operators } = self;
        let mut creator = Loop::<App<N>, B>::with_backend(backend, &Config::new())?;
        let config = AcceptConfig::new().connections_max(CLIENTS_MAX + REFUSED_MAX);
        let clients =
            creator.add_part(App::Clients, |scope| listen::<N, _>(clients, config, scope))?;
        let config = AcceptConfig::new().connections_max(OPERATORS_MAX);
        let operators =
            creator.add_part(App::Operators, |scope| listen::<N, _>(operators, config, scope))?;
        let mut shared = Shared::new(Store::new(PAIRS_MAX, STORE_BYTES_MAX), CLIENTS_MAX);
        shared.stats = Some(creator.stats());
        let mut instance = creator.instantiate(shared);
        instance.every(Duration::from_secs(1), |_, scope| {
            let now = scope.now();
            scope.store.reap(now, REAPED_PER_SECOND);
        });
        let lines = [
            format!("listening on {clients}"),
            format!("statistics on {operators}"),
            format!(
                r"try: printf 'SET greeting hello\nGET greeting\nQUIT\n' | nc {} {}",
                clients.ip(),
                clients.port()
            ),
            format!(r"try: printf 'STATS\nQUIT\n' | nc {} {}", operators.ip(), operators.port()),
        ];
        serve(&mut instance, &lines)?;
        let Shared { counts, store, .. } = instance.context();
        let total = format!(
            "{} commands, {} errors, {} keys are left",
            counts.commands,
            counts.errors,
            store.len()
        );
        program::print(&[total])?;
        Ok(())
    }
}

/// Makes a listener for a protocol, and returns its address.
fn listen<N: IpNet, P: Protocol<Context = Shared, Seed = ()>>(
    address: SocketAddr,
    config: AcceptConfig,
    scope: &mut EarlyScope<'_>,
) -> Result<(SocketAddr, Response<Server<N, P>>), BoxError> {
    let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
    let bound = listener.local_address().unwrap_or(address);
    Ok((bound, Accept::listen(listener, (), config, scope)))
}
