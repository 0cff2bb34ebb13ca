//! How much the peer accepts: its settings, and the updates of its windows.

use super::{FrameResult, Streams, write_frame};
use crate::h2::{Nuisance, Violation, frame_writer};
use crate::server::handler::Server;
use crate::server::io::Io;

impl<S: Server> Streams<S> {
    pub(super) fn settings_changed(
        &mut self,
        change: i64,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        self.count_nuisance(Nuisance::ControlFrame, io)?;
        write_frame(io, &frame_writer::settings_ack());
        if change == 0 {
            return Ok(());
        }
        for child in &mut self.children {
            child.outbound.change_or_fail_connection(change)?;
        }
        self.update_all_children(io);
        Ok(())
    }

    pub(super) fn window_grew(
        &mut self,
        stream: u32,
        more: u32,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        let nuisance = Nuisance::from_window_update(more);
        if let Some(nuisance) = nuisance {
            self.count_nuisance(nuisance, io)?;
        }
        if stream == 0 {
            self.granted.count_granted(more, io.config.limits_ref(), io.scope.now());
            if self.frames.grow_window(more)? {
                self.update_all_children(io);
            }
            return Ok(());
        }
        if self.is_idle(stream) {
            return Err(Violation::protocol("WINDOW_UPDATE of a stream that was never begun"));
        }
        let Some(at) = self.find(stream) else {
            // The update may have been sent before the peer knew that the stream is over. It has no
            // effect.
            let is_counted = nuisance.is_some();
            return if is_counted {
                Ok(())
            } else {
                self.count_nuisance(Nuisance::ControlFrame, io)
            };
        };
        let changed = self.children[at].outbound.change(i64::from(more));
        changed.map_err(|code| Violation::Stream(stream, code))?;
        self.update_child(at, io);
        Ok(())
    }
}
