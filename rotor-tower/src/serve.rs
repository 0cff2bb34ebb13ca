//! `serve`: runs a whole program that serves a service.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};
use std::{fmt, io};

use rotor_async::Tokio;
use rotor_core::net::ListenerLayer;
use rotor_core::{BoxError, LoopKind};
use rotor_http::server::{NoUpgrade, Serve};
use tokio::runtime::{Handle, RuntimeFlavor};
use tower_service::Service;

use crate::body::Body;
use crate::server::TowerServer;
use crate::tower::Tower;

/// Serves a service at `address` until the process is asked to end; the calling thread is blocked.
/// Short for [`Tower::run`] with [`Serve::new`].
///
/// In a program with axum it replaces `axum::serve`; see the [crate] for the differences.
///
/// # Errors
///
/// As [`Tower::run`].
pub fn serve<S, B>(address: impl fmt::Display, service: S) -> Result<(), BoxError>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
{
    Tower::new(service).run(Serve::new(address))
}

/// Serves a service on a listener that is open already, like `axum::serve`. If you have tokio's
/// listener, pass `listener.into_std()?`.
///
/// # Errors
///
/// As [`Tower::run`].
pub fn serve_on<S, B>(listener: std::net::TcpListener, service: S) -> Result<(), BoxError>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
{
    Tower::new(service).run(Serve::on(listener))
}

impl<S> Tower<S> {
    /// Serves with the settings of `serve`, until the process is asked to end.
    ///
    /// If no runtime was set by [`tokio`](Tower::tokio), this uses the runtime in which it is
    /// called, or starts one ([`Tokio::new`]). The call blocks its thread, even in
    /// `#[tokio::main]`; the runtime still works if its flavor is `multi_thread`, which is the
    /// default of that macro. If the flavor is `current_thread`, another runtime is started. There,
    /// and in a spawned task, the loop gets a thread of its own, and the caller's waits for it.
    /// In a spawned task, the thread that waits is a worker of the runtime. If it is the only one,
    /// which is the default on a machine with one CPU, the runtime stands still. So call this in
    /// [`tokio::task::block_in_place`] there: another thread takes over.
    ///
    /// # Errors
    ///
    /// [`ServeError`](rotor_http::server::ServeError), as from [`Serve::run`]; or no runtime or
    /// thread could be started.
    pub fn run<B, K, L>(mut self, serve: Serve<K, L>) -> Result<(), BoxError>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body + 'static,
        B::Error: Into<BoxError>,
        K: LoopKind,
        L: ListenerLayer,
    {
        if self.settings.tokio.is_none() {
            self = self.tokio(Tokio::current_or_new()?);
        }
        let run = || serve.run::<TowerServer<S, B, (), NoUpgrade<()>>>(move || (self.clone(), ()));
        Ok(if is_scheduled() { on_own_thread(run)? } else { run() }?)
    }
}

/// Returns whether a scheduler of tokio's polls the caller. It keeps the wakers of
/// `tokio::task::yield_now` until that poll returns, but a poll in which a loop runs does not.
fn is_scheduled() -> bool {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    matches!(flavor, Ok(RuntimeFlavor::CurrentThread)) || tokio::task::try_id().is_some()
}

fn on_own_thread<T: Send>(run: impl FnOnce() -> T + Send) -> io::Result<T> {
    scope(|scope| {
        let thread = Builder::new().name("rotor-tower".into()).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
