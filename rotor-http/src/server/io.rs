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
    /// Returns how many bytes have been received and not been handled yet.
    pub(super) fn unread(&self) -> usize {
        self.transport.input.len()
    }

    /// Returns whether the stream reads nothing more until the peer has read what waits for it.
    #[inline]
    pub(super) fn is_gated(&self) -> bool {
        self.is_still_gated(false)
    }

    /// Returns whether the stream reads nothing more, given whether that `was` so before: it stops
    /// above the mark, and begins again at half of it.
    pub(super) fn is_still_gated(&self, was: bool) -> bool {
        let mark = self.config.limits_ref().output_high_water;
        self.transport.output.len() > if was { mark / 2 } else { mark }
    }
}

/// Logs and counts a panic of a handler. The connection goes on without the handler.
#[cold]
pub(super) fn record_panic<S>(panicked: &Panicked, config: &ServerConfig) {
    Counters::add(&config.counters_ref().panics);
    log::error!("the handler {} {panicked}", std::any::type_name::<S>());
}
