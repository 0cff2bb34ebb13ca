//! The file server, whatever the sockets are made of.

use rotor::http::files::{Files, StaticFiles};
use rotor::http::server::{HttpSeed, ServerConfig};

/// The seed of connections on which `files` are asked for.
pub(crate) fn site(files: Files) -> HttpSeed<StaticFiles<()>> {
    HttpSeed::new(files, ServerConfig::new())
}
