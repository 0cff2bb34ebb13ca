//! `Io`: what a step of a connection works with.

use rotor_core::Scope;
use rotor_stream::Transport;

use super::config::ClientConfig;

/// What a step of the connection works with.
pub(super) struct Io<'a, 't, 's, C> {
    pub(super) transport: &'a mut Transport<'t>,
    pub(super) scope: &'a mut Scope<'s, C>,
    pub(super) config: &'a ClientConfig,
}
