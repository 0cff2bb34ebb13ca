//! Streams that are cancelled or refused, and the counting of frames that could be a flood.

use super::{FrameResult, GRACEFUL, Streams};
use crate::h2::{ErrorCode, Nuisance, Violation};
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;

impl<S: Server> Streams<S> {
    /// Counts something that a well-behaved peer does not do too often.
    pub(super) fn count_nuisance(
        &mut self,
        nuisance: Nuisance,
        io: &Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        self.floods.count(nuisance, &io.config.http2_ref().floods, io.scope.now()).inspect_err(
            |_| {
                let counters = io.config.counters_ref();
                Counters::add(match nuisance.is_stream_reset() {
                    true => &counters.reset_floods,
                    false => &counters.frame_floods,
                });
            },
        )
    }

    pub(super) fn reset_by_peer(
        &mut self,
        stream: u32,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        if self.is_idle(stream) {
            return Err(Violation::protocol("RST_STREAM of a stream that was never begun"));
        }
        let Some(at) = self.find(stream) else {
            return self.count_nuisance(Nuisance::ControlFrame, io);
        };
        // After a complete response, this only means that the rest of the request will not be sent.
        let nuisance = match self.children[at].state.is_sending() {
            true => {
                Counters::add(&io.config.counters_ref().streams_reset);
                Nuisance::Reset
            }
            false => Nuisance::ControlFrame,
        };
        self.abort_child(at, io);
        self.count_nuisance(nuisance, io)
    }

    /// Resets a stream because of a violation, of which the peer may commit only a limited number.
    pub(super) fn reset_for_violation(
        &mut self,
        stream: u32,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        log::debug!("machine {} resets stream {stream}: {code:?}", io.scope.token());
        Counters::add(&io.config.counters_ref().streams_refused);
        self.reset_stream(stream, code, io);
        if code == GRACEFUL { Ok(()) } else { self.count_nuisance(Nuisance::ProvokedReset, io) }
    }
}
