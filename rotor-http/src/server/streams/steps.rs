//! A step of one child: its exchange is called, and then its windows, memory and deadlines are
//! updated.

use std::any::type_name;
use std::ops::Range;

use rotor_core::Time;

use super::{GRACEFUL, Streams, write_frame};
use crate::flow::Flow;
use crate::h1::response::Ending;
use crate::h2::{ErrorCode, StreamEvent, StreamState, frame_writer};
use crate::limits::Limits;
use crate::semantics::status::Status;
use crate::server::counters::Counters;
use crate::server::exchange::{Exchange, ExchangeFlow};
use crate::server::handler::{Server, UpgradeSeed};
use crate::server::io::Io;
use crate::tunnel::Event;

impl<S: Server> Streams<S> {
    /// Calls the exchange of a child, and does what else can be done with its input.
    pub(super) fn step(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, S::Context>,
        first: impl FnOnce(&mut Exchange<S>, &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S>,
    ) {
        let room = self.room(at, io.config);
        let flow = self.children[at].step(io.scope, io.config, |exchange, io| {
            exchange.outgoing.room_max = room;
            let flow = first(exchange, io).on_again(|| Flow::batch(|| exchange.receive(io)));
            match flow {
                // Everything was sent before this step, so no frame that is sent will report it.
                Flow::Wait(wait)
                    if wait.flush_left() == Some(0) && io.transport.output.is_empty() =>
                {
                    exchange.flushed(io).on_again(|| Flow::batch(|| exchange.receive(io)))
                }
                flow => flow,
            }
        });
        let child = &mut self.children[at];
        let flow = match child.is_page_for_protocol() {
            // RFC 8441 §5: a 2xx would mean that the protocol has begun.
            true => Some(Flow::Fail(Status::NOT_IMPLEMENTED)),
            false => flow,
        };
        match flow {
            Some(Flow::Wait(wait)) => child.set_wait(wait),
            // The rest comes after the other streams, so its deadline is now.
            Some(Flow::Again) => child.until = io.scope.now(),
            Some(Flow::Done(upgrade)) => self.finish_child(at, upgrade, io),
            Some(Flow::Fail(status)) => self.fail_child(at, status, io),
            None => {}
        }
        self.update_child(at, io);
    }

    /// Called when the handler is done: checks whether its response is complete.
    fn finish_child(
        &mut self,
        at: usize,
        upgrade: Option<UpgradeSeed<S>>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let child = &mut self.children[at];
        match (child.ending(), upgrade) {
            (Ending::KeepAlive | Ending::Close, None) => {}
            (Ending::Switch, Some(seed)) => {
                child.step(io.scope, io.config, |exchange, io| {
                    exchange.outgoing.end(io.scope, io.config);
                });
                return self.start_tunnel(at, seed, io);
            }
            _ => {
                Counters::add(&io.config.counters_ref().unfinished);
                log::error!("{} finished without a complete response", type_name::<S>());
                return self.fail_child(at, Status::INTERNAL_SERVER_ERROR, io);
            }
        }
        let is_last = child.ending() == Ending::Close;
        child.step(io.scope, io.config, |exchange, io| exchange.outgoing.end(io.scope, io.config));
        child.end_exchange();
        if is_last {
            self.announce_end(io);
        }
    }

    /// Called when the handler has failed or has not responded: sends an error page if that is
    /// still possible. Otherwise [`update_child`](Streams::update_child) resets the stream.
    #[cold]
    fn fail_child(&mut self, at: usize, status: Status, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &mut self.children[at];
        child.code = reset_code(status);
        child.step(io.scope, io.config, |exchange, io| {
            exchange.outgoing.error_page::<S>(status, io);
            exchange.outgoing.end(io.scope, io.config);
        });
        child.end_exchange();
    }

    /// Handles DATA that is not wanted, for a stream whose response is written.
    pub(super) fn handle_unwanted_data(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &self.children[at];
        let (stream, most) = (child.id, io.config.limits_ref().drained_body_bytes_max);
        if !child.state.is_sending() && child.state.is_receiving() && child.intake.received() > most
        {
            Counters::add(&io.config.counters_ref().undrained);
            return self.reset_stream(stream, GRACEFUL, io);
        }
        self.update_child(at, io);
    }

    /// Updates every child, because what all of them may send has changed. The first is the one
    /// whose turn is next.
    pub(super) fn update_all_children(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        let first = self.next_turn;
        self.update_children(first..u32::MAX, io);
        self.update_children(0..first, io);
    }

    /// Updates the children of these streams.
    fn update_children(&mut self, streams: Range<u32>, io: &mut Io<'_, '_, '_, S::Context>) {
        let mut next = streams.start;
        loop {
            // Searched each time, because children may be removed.
            let at = self.children.partition_point(|child| child.id < next);
            let Some(child) = self.children.get(at) else { return };
            if child.id >= streams.end {
                return;
            }
            next = child.id + 1;
            self.update_child(at, io);
        }
    }

    /// Updates everything that depends on a child: windows, memory, its place in the schedule, its
    /// deadline. The child may be gone afterwards.
    pub(super) fn update_child(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let now = io.scope.now();
        let child = &mut self.children[at];
        let stream = child.id;
        if child.exchange.is_none() {
            child.input.clear();
            if child.tunnel.is_none() && !child.is_complete() {
                if child.state == StreamState::Closed {
                    // A protocol that has ended behind a reset (RFC 9113 §5.4.2).
                    return self.remove_child(at, now);
                }
                let code = child.code;
                return self.reset_stream(stream, code, io);
            }
        }
        child.release(&mut self.inbound);
        let collected = child.collecting_len();
        self.collected = self.collected - child.collected + collected;
        child.collected = collected;
        if self.held_output > io.config.http2_ref().unsent_bytes_max {
            // Beyond the limit, each child may keep at most a part of a block.
            child.output.shrink();
        }
        let held = child.output.held_bytes();
        self.held_output = self.held_output - child.held_output + held;
        child.held_output = held;
        self.open_window(at, io);
        let child = &mut self.children[at];
        if child.ignores_input() && !child.state.is_sending() {
            if !child.state.is_receiving() || self.is_read_closed {
                return self.remove_child(at, now);
            }
            // The peer still sends: until the deadline, that is read and dropped.
            child.until = child.until.min(now + io.config.limits_ref().shutdown_timeout);
        }
        self.watch(at, io.config.limits_ref(), now);
        self.schedule_child(at);
        let deadline = self.children[at].deadline();
        self.record_deadline(deadline);
    }

    /// Starts the time limit of the peer, if its windows hold up what waits for it.
    pub(super) fn watch(&mut self, at: usize, limits: &Limits, now: Time) {
        let outbound = self.frames.window().credit();
        let child = &mut self.children[at];
        // Another protocol sets its own deadlines for its peer.
        let left = if child.tunnel.is_none() { child.unsent_body_len() } else { 0 };
        child.send_watch.update(left, child.outbound.credit().min(outbound), limits, now);
    }

    /// Extends the deadline for taking the response if the stream only waits for others of its
    /// connection.
    pub(super) fn exempt_sending(&mut self, at: usize, limits: &Limits, now: Time) {
        let shared = self.frames.window().credit();
        let child = &mut self.children[at];
        let (waiting, own) = (child.unsent_body_len(), child.outbound.credit());
        if let Some(until) = self.granted.exempt_until(waiting, own, shared, limits, now) {
            child.send_watch.extend_until(until);
            if let Some(tunnel) = &mut child.tunnel {
                tunnel.exempt_until(until);
                child.until = tunnel.wake_time(now);
            }
        }
    }

    /// Removes a child that has nothing more to do.
    pub(super) fn remove_child(&mut self, at: usize, now: Time) {
        let child = self.children.remove(at);
        if child.is_scheduled {
            self.schedule.remove(child.id, child.priority);
        }
        self.held_output -= child.held_output;
        self.collected -= child.collected;
        child.intake.end(&mut self.inbound);
        self.idle_since = now;
    }

    /// Tells the handler of a child that its stream is over, and removes the child. One with another
    /// protocol stays while that holds back what had arrived before.
    pub(super) fn abort_child(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &mut self.children[at];
        child.step(io.scope, io.config, |exchange, io| {
            exchange.abort(io.scope, io.config);
            exchange.outgoing.end(io.scope, io.config);
        });
        child.state = child.state.after(StreamEvent::Reset).unwrap_or(child.state);
        match child.tunnel.is_some() {
            true => self.run_tunnel(at, Event::Reset, io),
            false => self.remove_child(at, io.scope.now()),
        }
    }

    /// Resets a stream, whatever is under way on it.
    pub(super) fn reset_stream(
        &mut self,
        stream: u32,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        write_frame(io, &frame_writer::reset(stream, code));
        // Otherwise the stream is over, or its request is refused.
        let Some(at) = self.find(stream) else { return };
        let child = &self.children[at];
        let left = child.state.is_receiving().then(|| child.intake.left());
        self.abort_child(at, io);
        // If the peer has closed its side, no frame can be on its way.
        if let Some(credit) = left {
            self.reset_streams.record(stream, credit);
        }
    }
}

/// Returns the code with which a stream is reset if its response cannot be replaced by the page of
/// this status. Only a status of ours (5xx) is an error of ours. The others mean that the request
/// is given up because of the peer, for which RFC 9113 §7 has no code but this.
fn reset_code(status: Status) -> ErrorCode {
    match status.code() {
        400..500 => ErrorCode::Cancel,
        _ => ErrorCode::InternalError,
    }
}
