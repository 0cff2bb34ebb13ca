//! A step of one child: its exchange is called, and what that led to is put in order.

use std::io::ErrorKind;

use rotor_core::Time;

use super::{Streams, put};
use crate::client::error::ClientError;
use crate::client::exchange::{End, Exchange, Exchanged};
use crate::client::feed::Feed;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::flow::Flow;
use crate::h2::{ErrorCode, Priority, StreamState, frame_writer};
use crate::limits::Limits;

/// Requests take turns: which is more urgent nobody says.
pub(super) const PRIORITY: Priority = Priority { urgency: 3, is_incremental: true };

impl<K: Client, F: Feed<K>> Streams<K, F> {
    /// Calls the exchange of a child, and does what else can be done with what has come for it. The
    /// child may be gone afterwards.
    pub(super) fn step(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, K::Context>,
        first: impl FnOnce(&mut Exchange<K>, &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K>,
    ) {
        let flow = self.children[at].step(io.scope, io.config, |exchange, io| {
            first(exchange, io).and_again(|| Flow::batch(|| exchange.receive(io)))
        });
        let child = &mut self.children[at];
        match flow {
            Some(Flow::Wait(wait)) => child.set_wait(wait),
            // The rest behind the others: its time has come at once.
            Some(Flow::Again) => child.until = io.scope.now(),
            Some(Flow::Done(End::Upgrade(seed))) if child.asks_protocol => {
                return self.switch(at, seed, io);
            }
            Some(Flow::Done(end)) => {
                self.done(at, end, io);
                return self.leave(at, io);
            }
            Some(Flow::Fail(error)) => {
                let code = child.code;
                return self.cut(at, error, code, io);
            }
            None => {}
        }
        self.settle(at, io);
    }

    /// The handler is done.
    fn done(&mut self, at: usize, end: End<K>, io: &mut Io<'_, '_, '_, K::Context>) {
        let child = &self.children[at];
        if let End::Repeat(job) = end {
            self.feed.give_back(*job, io.scope);
        } else if child.stream.is_some()
            && (!child.state.is_receiving() || child.lacks_only_its_end())
        {
            self.served += 1;
        }
        let asked_to_close =
            self.children[at].exchange.as_ref().is_some_and(|own| !own.request().keeps_alive());
        if asked_to_close {
            self.end_after_these();
        }
    }

    /// The exchange is over. Where nothing is missing but the end of the stream (RFC 9113 §8.1: an
    /// empty DATA may bring it), that is waited for: a reset would take nothing away, and servers
    /// count those as a flood.
    fn leave(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let child = &mut self.children[at];
        if self.is_read_closed || !child.lacks_only_its_end() {
            return self.drop_exchange(at, io);
        }
        child.exchange = None;
        child.input.clear();
        child.until = io.scope.now() + io.config.limits.shutdown_timeout;
        self.settle(at, io);
    }

    /// There is no whole response: the handler hears of it, and its stream is reset.
    pub(super) fn cut(
        &mut self,
        at: usize,
        error: ClientError,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        child.code = code;
        child.step(io.scope, io.config, |exchange, io| exchange.fail(error, io));
        self.drop_exchange(at, io);
    }

    /// The child goes, and its stream with it: reset, unless both sides have ended it.
    pub(super) fn drop_exchange(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let mut child = self.children.remove(at);
        child.lose_tunnel(ErrorKind::ConnectionReset, io.scope);
        if child.is_scheduled {
            self.schedule.remove(child.key, PRIORITY);
        }
        let left = child.intake.left();
        child.intake.end(&mut self.inbound);
        self.since = io.scope.now();
        self.looks_for_work = true;
        let Some(stream) = child.stream else { return };
        if let Ok(at) = self.streams.binary_search_by_key(&stream, |(own, _)| *own) {
            self.streams.remove(at);
        }
        if child.state != StreamState::Closed && !self.is_read_closed {
            put(io, &frame_writer::reset(stream, child.code));
            let on_its_way = if child.state.is_receiving() { left } else { 0 };
            self.forgotten.remember(stream, on_its_way);
        }
    }

    /// Looks at every child: what all of them may send has changed.
    pub(super) fn look_at_all(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        for at in 0..self.children.len() {
            self.settle(at, io);
        }
    }

    /// Puts in order what a child has led to: windows, its place in the schedule, its deadline.
    pub(super) fn settle(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let now = io.scope.now();
        let child = &mut self.children[at];
        if !child.state.is_sending() {
            // What is written yet, the server has no use for.
            child.output.truncate(0);
        }
        child.release(&mut self.inbound);
        // Also where nothing was taken now: what the server may still send has become less.
        if let Some(stream) = child.stream
            && child.state.is_receiving()
            && let Some(more) = child.intake.update()
        {
            put(io, &frame_writer::window_update(stream, more));
        }
        self.watch(at, &io.config.limits, now);
        self.schedule_child(at);
        let deadline = self.children[at].deadline();
        self.note_deadline(deadline);
    }

    /// Times the server, if its windows hold up what waits for it.
    pub(super) fn watch(&mut self, at: usize, limits: &Limits, now: Time) {
        let outbound = self.frames.window().octets();
        let child = &mut self.children[at];
        // Another protocol times its server itself.
        let left = if child.tunnel.is_none() { child.body_left() } else { 0 };
        child.taking.look(left, child.outbound.octets().min(outbound), limits, now);
    }

    /// What waits on this stream is not late where it only waits for others of its connection.
    pub(super) fn excuse_taking(&mut self, at: usize, limits: &Limits, now: Time) {
        let shared = self.frames.window().octets();
        let child = &mut self.children[at];
        let (waiting, own) = (child.body_left(), child.outbound.octets());
        if let Some(until) = self.granted.excuse(waiting, own, shared, limits, now) {
            child.taking.put_off_to(until);
            if let Some(tunnel) = &mut child.tunnel {
                tunnel.excuse(until);
                child.until = tunnel.until(now);
            }
        }
    }
}
