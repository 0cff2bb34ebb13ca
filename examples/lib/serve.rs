//! What the `main` of every server example does: print its address, serve until it is asked to end,
//! and drain.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, Server};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::signals::drain_on_termination;
use rotor::{Backend, BoxError, Config, Exit, Loop, LoopInstance, Machine, Response};
use rotor_uring::OnAnyLoop;

use crate::chosen_loop::on_chosen_loop;
use crate::program::print;

/// How long the machines may take to finish after SIGINT or SIGTERM.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Prints the server's address, and runs its loop until SIGINT or SIGTERM asks it to end.
pub fn serve<M: Machine, B: Backend>(
    instance: &mut LoopInstance<M, B>,
    lines: &[String],
) -> Result<(), BoxError> {
    drain_on_termination(instance.handle(), DRAIN_TIME_MAX)?;
    print(lines)?;
    match instance.run()? {
        Exit::Drained { .. } | Exit::Stopped => Ok(()),
        other => Err(format!("the loop ended by itself: {other:?}").into()),
    }
}

/// Serves HTTP with one handler, on the loop that the variable `ROTOR_BACKEND` names: mio's, or
/// io_uring's (`uring`).
///
/// `try_this` returns, for the actual address, something that the user can try.
pub fn serve_http<S: Server + 'static>(
    address: SocketAddr,
    seed: HttpSeed<S>,
    context: S::Context,
    try_this: impl FnOnce(SocketAddr) -> String,
) -> Result<(), BoxError> {
    on_chosen_loop(Site { address, seed, context, try_this })
}

/// The program that [`serve_http`] runs.
struct Site<S: Server, F> {
    address: SocketAddr,
    seed: HttpSeed<S>,
    context: S::Context,
    try_this: F,
}

impl<S: Server + 'static, F: FnOnce(SocketAddr) -> String> OnAnyLoop for Site<S, F> {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Site { mut address, seed, context, try_this } = self;
        let mut creator =
            Loop::<HttpAccept<S, N::Listener>, B>::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        let lines = [format!("listening on http://{address}/"), try_this(address)];
        serve(&mut creator.instantiate(context), &lines)
    }
}
