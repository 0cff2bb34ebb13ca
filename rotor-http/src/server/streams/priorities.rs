//! Priorities that the peer has sent, for streams that exist and for those to come.

use super::{FrameResult, Streams};
use crate::h2::request::StreamPurpose;
use crate::h2::{Priority, Violation};
use crate::server::config::ServerConfig;
use crate::server::handler::Server;

impl<S: Server> Streams<S> {
    pub(super) fn prioritize(
        &mut self,
        stream: u32,
        priority: Priority,
        config: &ServerConfig,
    ) -> FrameResult {
        if stream.is_multiple_of(2) {
            return Err(Violation::protocol("PRIORITY_UPDATE of a stream that no client begins"));
        }
        self.uses_priorities = true;
        if let Some(at) = self.find(stream) {
            let child = &mut self.children[at];
            let mut priority = priority;
            // Even if its protocol has not begun yet, as in `priority_of`.
            priority.is_incremental |= child.purpose != StreamPurpose::Response;
            if child.is_scheduled {
                self.schedule.remove(stream, child.priority);
                self.schedule.insert(stream, priority);
            }
            child.priority = priority;
        } else if stream > self.last_stream {
            self.pending_priorities.retain(|(own, _)| *own != stream);
            // RFC 9218 §7.1: priorities need not be kept for more streams than there may be.
            if self.pending_priorities.len() < config.http2_ref().streams_max as usize {
                self.pending_priorities.push((stream, priority));
            }
        }
        Ok(())
    }

    /// Returns the priority of a response, given the one that the peer has sent, if any.
    pub(super) fn priority_of(
        &mut self,
        requested: Option<Priority>,
        purpose: StreamPurpose,
    ) -> Priority {
        self.uses_priorities |= requested.is_some();
        let mut priority = requested.unwrap_or(Priority::DEFAULT);
        // A response that is not incremental waits for the ends of all those that were requested
        // before it, and forever if one of them has no end. That is the peer's choice. What
        // another protocol sends is of use at once, whatever it sends later, so it is incremental.
        // And a peer that sends no priority for any request, such as a proxy or a client of gRPC,
        // does not mean the defaults of RFC 9218, but does not implement it.
        priority.is_incremental |= purpose != StreamPurpose::Response || !self.uses_priorities;
        priority
    }

    /// Takes the priority that the peer has sent for a stream that begins.
    pub(super) fn take_pending_priority(&mut self, stream: u32) -> Option<Priority> {
        if self.pending_priorities.is_empty() {
            return None;
        }
        let priority = self
            .pending_priorities
            .iter()
            .find(|(own, _)| *own == stream)
            .map(|(_, priority)| *priority);
        // Streams below this one will never begin.
        self.pending_priorities.retain(|(own, _)| *own > stream);
        priority
    }
}
