//! The file server as a machine, whatever the sockets are made of.

use rotor::http::files::{Files, StaticFiles};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::Listener;
use rotor::{Response, Scope};

/// A listener, and the connections on which files are asked for.
pub(crate) type FileServer<L> = HttpAccept<StaticFiles<()>, L>;

/// Serves `files` to whoever connects to `listener`.
pub(crate) fn serve<L: Listener, C>(
    listener: L,
    files: Files,
    scope: &mut Scope<'_, C>,
) -> Response<FileServer<L>> {
    server::listen(listener, HttpSeed::new(files, ServerConfig::new()), scope)
}
