//! The file server, on sockets of any kind.

use rotor::http::files::{Files, StaticFiles};
use rotor::http::server::{HttpSeed, ServerConfig};

/// Returns the seed of connections that serve `files`.
pub(crate) fn site(files: Files) -> HttpSeed<StaticFiles<()>> {
    HttpSeed::new(files, ServerConfig::new())
}
