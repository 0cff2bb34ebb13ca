//! `Io`: what a step of a connection works with.

use rotor_core::{Panicked, Scope};
use rotor_stream::Transport;

use super::config::ServerConfig;
use super::counters::Counters;

/// What a step of the connection works with.
pub(super) struct Io<'a, 't, 's, C> {
    pub(super) transport: &'a mut Transport<'t>,
    pub(super) scope: &'a mut Scope<'s, C>,
    pub(super) config: &'a ServerConfig,
}

impl<C> Io<'_, '_, '_, C> {
    /// Returns how many octets have come and were not dealt with.
    pub(super) fn unread(&self) -> usize {
        self.transport.input.len()
    }

    /// Returns whether the stream takes nothing in before the peer has taken what waits for it.
    #[inline]
    pub(super) fn is_gated(&self) -> bool {
        self.is_still_gated(false)
    }

    /// Returns whether it takes nothing in, where it `was` so before: at half of the mark, and not
    /// at the mark, it begins again.
    pub(super) fn is_still_gated(&self, was: bool) -> bool {
        let mark = self.config.limits_ref().output_high_water;
        self.transport.output.len() > if was { mark / 2 } else { mark }
    }
}

/// A handler has panicked: logged once, counted. The connection goes on without it.
#[cold]
pub(super) fn note_panic<S>(panicked: &Panicked, config: &ServerConfig) {
    Counters::add(&config.count().panics);
    log::error!("the handler {} {panicked}", std::any::type_name::<S>());
}
