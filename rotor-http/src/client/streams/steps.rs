//! A step of one child: calls its exchange, and applies the results.

use rotor_core::Time;

use super::{Streams, write_frame};
use crate::client::error::ClientError;
use crate::client::exchange::{Exchange, ExchangeEnd, ExchangeFlow};
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::flow::Flow;
use crate::h2::{ErrorCode, Priority, StreamState, frame_writer};
use crate::limits::Limits;

/// Requests take turns, because nothing says which is more urgent.
pub(super) const PRIORITY: Priority = Priority { urgency: 3, is_incremental: true };

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Calls the exchange of a child, and processes what has arrived for it. The child may be gone
    /// afterwards.
    pub(super) fn step(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, K::Context>,
        first: impl FnOnce(&mut Exchange<K>, &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K>,
    ) {
        if !self.make_step(at, io, first) {
            return;
        }
        while let Some(mut head) = self.children[at].next_held_head() {
            let connection = io.transport.connection();
            if !self.make_step(at, io, |exchange, io| head.deliver(connection, exchange, io)) {
                return;
            }
        }
    }

    /// Makes one step. Returns whether the exchange goes on; if not, the child may be gone.
    fn make_step(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, K::Context>,
        first: impl FnOnce(&mut Exchange<K>, &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K>,
    ) -> bool {
        let flow = self.children[at].step(io.scope, io.config, |exchange, io| {
            first(exchange, io).on_again(|| Flow::batch(|| exchange.receive(io)))
        });
        let child = &mut self.children[at];
        match flow {
            Some(Flow::Wait(wait)) => child.set_wait(wait),
            // The rest is done after the other streams: its deadline is now.
            Some(Flow::Again) => child.until = io.scope.now(),
            Some(Flow::Done(ExchangeEnd::Upgrade(seed))) if child.is_extended_connect => {
                self.begin_tunnel(at, seed, io);
                return false;
            }
            Some(Flow::Done(end)) => {
                self.exchange_ended(at, end, io);
                self.finish_exchange(at, io);
                return false;
            }
            Some(Flow::Fail(error)) => {
                let code = child.code;
                self.fail_and_reset(at, error, code, io);
                return false;
            }
            None => {}
        }
        self.update_child(at, io);
        true
    }

    /// Handles the end of an exchange by its handler.
    fn exchange_ended(
        &mut self,
        at: usize,
        end: ExchangeEnd<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &self.children[at];
        if let ExchangeEnd::Repeat(job) = end {
            self.source.return_job(*job, io.scope);
        } else if child.stream.is_some()
            && (!child.state.is_receiving() || child.lacks_only_end_stream())
        {
            self.served += 1;
        }
        let asked_to_close =
            self.children[at].exchange.as_ref().is_some_and(|own| !own.request().keeps_alive());
        if asked_to_close {
            self.stop_taking_requests();
        }
    }

    /// Removes an exchange that is over. If only the end of the stream is missing (RFC 9113 §8.1:
    /// an empty DATA frame may bring it), the child waits for that: a reset would save nothing, and
    /// servers count resets as a flood.
    fn finish_exchange(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let child = &mut self.children[at];
        if self.is_read_closed || !child.lacks_only_end_stream() {
            return self.remove_child(at, io);
        }
        child.exchange = None;
        child.input.clear();
        child.until = io.scope.now() + io.config.limits.shutdown_timeout;
        self.update_child(at, io);
    }

    /// Fails a request that has no complete response, and resets its stream.
    pub(super) fn fail_and_reset(
        &mut self,
        at: usize,
        error: ClientError,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        child.code = code;
        child.step(io.scope, io.config, |exchange, io| exchange.fail(error, io));
        self.remove_child(at, io);
    }

    /// Removes a child with its stream. The stream is reset, unless both sides have ended it.
    pub(super) fn remove_child(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        self.close_stream(at, io);
        let mut child = self.children.remove(at);
        child.lose_tunnel(io.scope);
        // It was not reset, so another one may be.
        if child.is_reset_counted
            && let Some(spare) = &mut self.spare_resets
        {
            *spare += 1;
        }
        if child.is_scheduled {
            self.schedule.remove(child.key, PRIORITY);
        }
        child.intake.end(&mut self.inbound);
        self.idle_since = io.scope.now();
        self.must_call_feed = true;
    }

    /// Ends the stream of a child. It is reset, unless both sides have ended it.
    pub(super) fn close_stream(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let child = &mut self.children[at];
        let state = std::mem::replace(&mut child.state, StreamState::Closed);
        let Some(stream) = child.stream else { return };
        if let Ok(at) = self.streams.binary_search_by_key(&stream, |(own, _)| *own) {
            self.streams.remove(at);
        }
        if state != StreamState::Closed && !self.is_read_closed {
            write_frame(io, &frame_writer::reset(stream, child.code));
            let in_flight = if state.is_receiving() { child.intake.left() } else { 0 };
            self.reset_streams.record(stream, in_flight);
            if !std::mem::take(&mut child.is_reset_counted) {
                self.count_reset(io);
            }
        }
    }

    /// Updates every child, because something has changed that limits what all of them may send.
    /// The first is the one whose turn is next.
    pub(super) fn update_all_children(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        self.update_children_from(self.next_turn, io);
    }

    /// Updates every child, beginning with this one.
    pub(super) fn update_children_from(&mut self, key: u32, io: &mut Io<'_, '_, '_, K::Context>) {
        let count = self.children.len();
        let first = self.children.partition_point(|child| child.key < key);
        for at in (first..count).chain(0..first) {
            self.update_child(at, io);
        }
    }

    /// Updates a child after a step: its windows, its place in the schedule, and its deadline.
    pub(super) fn update_child(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let now = io.scope.now();
        let child = &mut self.children[at];
        if !child.state.is_sending() {
            child.discard_output(now);
        }
        child.release(&mut self.inbound);
        // Even if nothing was taken now: the rest of the window may have become small.
        if let Some(stream) = child.stream
            && child.state.is_receiving()
            && let Some(more) = child.intake.update()
        {
            write_frame(io, &frame_writer::window_update(stream, more));
        }
        self.watch_sending(at, &io.config.limits, now);
        self.schedule_child(at);
        let deadline = self.children[at].deadline();
        self.record_deadline(deadline);
    }

    /// Measures how fast the server takes data, if its windows hold up what waits for it.
    pub(super) fn watch_sending(&mut self, at: usize, limits: &Limits, now: Time) {
        let outbound = self.frames.window().credit();
        let child = &mut self.children[at];
        // Another protocol sets deadlines for its server itself.
        let left = if child.tunnel.is_none() { child.unsent_body_len() } else { 0 };
        child.send_watch.update(left, child.outbound.credit().min(outbound), limits, now);
    }

    /// Puts off the deadline of a stream that only waits for other streams of its connection.
    pub(super) fn exempt_sending(&mut self, at: usize, limits: &Limits, now: Time) {
        let shared = self.frames.window().credit();
        let child = &mut self.children[at];
        let (waiting, own) = (child.unsent_body_len(), child.outbound.credit());
        if let Some(until) = self.grant_watch.exempt_until(waiting, own, shared, limits, now) {
            child.send_watch.extend_until(until);
            if let Some(tunnel) = &mut child.tunnel {
                tunnel.exempt_until(until);
                child.until = tunnel.wake_time(now);
            }
        }
    }
}
