//! `Io`: what a step of a connection works with.

use rotor_core::Scope;
use rotor_stream::Transport;

use super::config::ClientConfig;

/// What a step of a connection works with: its transport, its scope and its configuration.
pub(super) struct Io<'a, 't, 's, C> {
    pub(super) transport: &'a mut Transport<'t>,
    pub(super) scope: &'a mut Scope<'s, C>,
    pub(super) config: &'a ClientConfig,
}
