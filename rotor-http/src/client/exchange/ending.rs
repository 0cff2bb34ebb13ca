//! The end of an exchange: its request is answered, fails, or is to be made again; and whether its
//! connection can be used again.

use rotor_core::{Scope, with_causes};
use rotor_stream::Fatal;

use super::{End, Exchange, Exchanged};
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::job::{self, ClientResult, Job};
use crate::flow::Flow;

impl<K: Client> Exchange<K> {
    /// The connection is gone: fails the request, or returns it to be made again.
    pub(in crate::client) fn lost(
        mut self,
        error: Fatal,
        config: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) -> Option<Box<Job<K>>> {
        // A server that takes nothing would not take it the second time either. And if there was no
        // room, there is none for another connection.
        let is_taken = !matches!(error, Fatal::FlushTimeout | Fatal::NoRoom);
        if is_taken
            && self.may_repeat()
            && let Some(job) = self.repeat(config.count())
        {
            return Some(job);
        }
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        let error = ClientError::Lost(error).with_sent(self.sent);
        job::fail(handler, port, error, config.count(), scope);
        None
    }

    /// Returns whether the request may be made again on another connection: see [`Client`].
    pub(super) fn may_repeat(&self) -> bool {
        // A new connection that ends says something about the server; a used one may just have met
        // its idle timeout.
        self.is_reused
            && !self.is_repeated
            && self.was_written_at_once
            // RFC 9110 §9.2.2: a client makes nothing else again by itself.
            && self.request.is_idempotent()
            // Once the server has begun to answer, it has the request.
            && self.body.is_expected()
            && self.reader.is_idle()
            && self.interim == 0
    }

    /// Returns the request as it is to be made again.
    pub(super) fn repeat(&mut self, counters: &Counters) -> Option<Box<Job<K>>> {
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        Counters::add(&counters.repeated);
        let (deadline, refusals) = (self.deadline, self.refusals);
        let was_sent = self.sent.now || self.sent.before;
        Some(Box::new(Job { handler, deadline, port, is_repeated: true, refusals, was_sent }))
    }

    /// Leaves the connection for another one, on which the request is made again.
    pub(super) fn end_by_repeating(&mut self, counters: &Counters) -> Exchanged<K> {
        Flow::Done(self.repeat(counters).map_or(End::Close, End::Repeat))
    }

    /// There is no whole response: the handler hears of it and is gone.
    pub(in crate::client) fn fail(
        &mut self,
        error: ClientError,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let error = error.with_sent(self.sent);
        log::debug!("machine {} fails a request: {}", io.scope.token(), with_causes(&error));
        if let (Some(handler), Some(port)) = (self.handler.take(), self.port.take()) {
            job::fail(handler, port, error, io.config.count(), io.scope);
        }
    }

    /// Makes what a handler has returned exact, which knows nothing of the connection.
    pub(super) fn of_handler(
        &self,
        error: ClientError,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> ClientError {
        match error {
            ClientError::Deadline(_) => ClientError::Deadline(self.stage(io)),
            ClientError::Request(error) if self.sent.now && self.request.is_head_done() => {
                ClientError::Unfinished(error)
            }
            error => error,
        }
    }

    /// The handler is done.
    pub(super) fn end(
        &mut self,
        outcome: ClientResult<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Exchanged<K> {
        // Nothing was written: the server knows nothing of it.
        let is_unused = self.request.is_unstarted() && io.transport.output.is_empty();
        self.answer(outcome.map_err(|error| error.with_sent(self.sent)), io.config.count());
        // The order matters: `is_reusable` returns false if the response is still to come. A stream
        // does not count: its connection goes on anyway.
        if is_unused || (!self.request.is_framed() && self.is_reusable(io)) {
            Flow::Done(End::Reusable)
        } else {
            Flow::Done(End::Close)
        }
    }

    /// Returns whether the next response on the connection can only be that of the next request:
    /// this one's was read to its end, nothing came behind it, and both sides keep the connection.
    fn is_reusable(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> bool {
        // Only what has come is dropped: waiting for the rest would cost more than a new
        // connection.
        if !self.body.skip_rest(io.transport.input, &io.config.limits) {
            return false;
        }
        // If the server has not read the whole request, it would take the next one for the rest of
        // it.
        let is_whole = self.request.is_done() && io.transport.output.is_empty();
        let is_clean = io.transport.input.is_empty();
        // Nobody has asked for what comes after a response.
        if is_whole && !is_clean {
            Counters::add(&io.config.count().stray);
        }
        is_whole && is_clean && self.keep_alive && self.request.keeps_alive()
    }

    /// Whoever made the request is given what has come of it.
    pub(super) fn answer(&mut self, outcome: ClientResult<K>, counters: &Counters) {
        Counters::add(if outcome.is_ok() { &counters.answered } else { &counters.failed });
        if let Some(port) = self.port.take() {
            let _nobody_waits_any_more = port.set(outcome);
        }
    }
}
