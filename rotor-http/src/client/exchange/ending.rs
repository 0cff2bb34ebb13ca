//! The end of an exchange: its request succeeds, fails, or is to be made again; and whether its
//! connection can be reused.

use rotor_core::{Scope, with_causes};
use rotor_stream::Fatal;

use super::{Exchange, ExchangeEnd, ExchangeFlow};
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::job::{self, ClientResult, Job};
use crate::flow::Flow;

impl<K: Client> Exchange<K> {
    /// Handles the loss of the connection: fails the request, or returns it to be made again.
    pub(in crate::client) fn lost(
        mut self,
        error: Fatal,
        config: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) -> Option<Box<Job<K>>> {
        // A server that takes no data would not take it the second time either. And if there was no
        // room, there is none for another connection.
        let is_taken = !matches!(error, Fatal::FlushTimeout | Fatal::NoRoom);
        if is_taken
            && self.may_repeat()
            && let Some(job) = self.take_for_repeat(config.counters_ref())
        {
            return Some(job);
        }
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        let error = ClientError::Lost(error).with_send_history(self.sent);
        job::fail(handler, port, error, config.counters_ref(), scope);
        None
    }

    /// Returns whether the request may be made again on another connection; see [`Client`].
    pub(super) fn may_repeat(&self) -> bool {
        // If a new connection ends, this says something about the server; one that has been used or
        // idle may just have reached the server's idle timeout.
        self.is_reused
            && !self.is_repeated
            && self.was_written_in_one_call
            // RFC 9110 §9.2.2: a client does not automatically repeat other methods.
            && self.request.is_idempotent()
            // Once the server has begun to respond, it has the request.
            && self.body.awaits_head()
            && self.reader.is_idle()
            && self.interim == 0
    }

    /// Returns the request to be made again.
    pub(super) fn take_for_repeat(&mut self, counters: &Counters) -> Option<Box<Job<K>>> {
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        Counters::add(&counters.repeated);
        let (deadline, refusals) = (self.deadline, self.refusals);
        let was_sent = self.sent.on_this_connection || self.sent.on_earlier_connection;
        Some(Box::new(Job { handler, deadline, port, is_repeated: true, refusals, was_sent }))
    }

    /// Ends the exchange so that the request is made again on another connection.
    pub(super) fn end_by_repeating(&mut self, counters: &Counters) -> ExchangeFlow<K> {
        Flow::Done(self.take_for_repeat(counters).map_or(ExchangeEnd::Close, ExchangeEnd::Repeat))
    }

    /// Fails the request, because there is no complete response: calls the handler for the last
    /// time.
    pub(in crate::client) fn fail(
        &mut self,
        error: ClientError,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let error = error.with_send_history(self.sent);
        log::debug!("machine {} fails a request: {}", io.scope.token(), with_causes(&error));
        if let (Some(handler), Some(port)) = (self.handler.take(), self.port.take()) {
            job::fail(handler, port, error, io.config.counters_ref(), io.scope);
        }
    }

    /// Adapts an error that a handler has returned, because the handler does not know the
    /// connection.
    pub(super) fn adapt_handler_error(
        &self,
        error: ClientError,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> ClientError {
        match error {
            ClientError::Deadline(_) => ClientError::Deadline(self.stage(io)),
            ClientError::Request(error)
                if self.sent.on_this_connection && self.request.is_head_done() =>
            {
                ClientError::Unfinished(error)
            }
            error => error,
        }
    }

    /// Ends the exchange with the handler's outcome.
    pub(super) fn end(
        &mut self,
        outcome: ClientResult<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        // Nothing was written, so the server does not know of the request.
        let is_unused = self.request.is_unstarted() && io.transport.output.is_empty();
        self.send_outcome(
            outcome.map_err(|error| error.with_send_history(self.sent)),
            io.config.counters_ref(),
        );
        // The order matters: `is_reusable` returns false if the response is still to come. For a
        // stream the result is not used: its connection goes on anyway.
        if is_unused {
            Flow::Done(ExchangeEnd::Unused)
        } else if !self.request.is_framed() && self.is_reusable(io) {
            // The handler may have given up a body that was being collected.
            io.transport.set_collecting(false);
            Flow::Done(ExchangeEnd::Reusable)
        } else {
            Flow::Done(ExchangeEnd::Close)
        }
    }

    /// Returns whether the next response on the connection can only belong to the next request:
    /// this response was read to its end, nothing came after it, and both sides keep the
    /// connection.
    fn is_reusable(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> bool {
        // Only received data is dropped: waiting for the rest would cost more than a new
        // connection.
        if !self.body.skip_rest(io.transport.input, &io.config.limits) {
            return false;
        }
        // If the server has not read the whole request, it would take the next request for the rest
        // of it.
        let is_whole = self.request.is_done() && io.transport.output.is_empty();
        let is_clean = io.transport.input.is_empty();
        // Data after a response is unexpected.
        if is_whole && !is_clean {
            Counters::add(&io.config.counters_ref().stray);
        }
        is_whole && is_clean && self.keep_alive && self.request.keeps_alive()
    }

    /// Returns for how many seconds the server keeps the connection after this; `u32::MAX` if it has
    /// not said, or for longer.
    pub(in crate::client) fn kept_seconds(&self) -> u32 {
        let seconds = self.keep_alive_timeout.map_or(u64::MAX, |timeout| timeout.as_secs());
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// Sends the outcome to the caller.
    pub(super) fn send_outcome(&mut self, outcome: ClientResult<K>, counters: &Counters) {
        Counters::add(if outcome.is_ok() { &counters.answered } else { &counters.failed });
        if let Err(error) = &outcome
            && let ClientError::Deadline(_) = error.innermost()
        {
            Counters::add(&counters.deadlines);
        }
        if let Some(port) = self.port.take() {
            let _cancelled = port.set(outcome);
        }
    }
}
