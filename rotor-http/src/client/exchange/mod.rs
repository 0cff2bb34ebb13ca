//! `Exchange`: one request and its response: the handler, and how far the request is written and
//! the response is read.
//!
//! ```text
//!   writing:  prepare_request ─▶ (body_wanted) ─▶ request_flushed.. ─▶ complete
//!   reading:  (interim_received..) ─▶ headers_received ─▶ response_chunk.., response_end | response_received
//! ```
//!
//! The two are independent: a response may begin, and end, before the request is written. `reading`
//! contains the reading, `deadlines` what is waited for and until when, and `ending` the end of the
//! exchange.

mod deadlines;
mod ending;
#[cfg(feature = "http2")]
mod framed;
mod reading;
#[cfg(feature = "body")]
mod storing;

use std::any::type_name;
use std::time::Duration;

use rotor_core::{Deadline, Panicked, Port, Scope, Time};
use rotor_stream::{Protocol, Transport};

use super::counters::Counters;
use super::error::{ClientError, SendHistory, Stage};
use super::handler::{Client, Next, Step};
use super::io::Io;
use super::job::{ClientResult, Job};
use super::request::Request;
use crate::body_receiver::{BodyReceiver, Part};
use crate::flow::Flow;
use crate::h1::head::HeadReader;
use crate::h1::request::RequestState;

/// A request under way.
pub(super) struct Exchange<K: Client> {
    /// Absent while it is being called, and after its last call.
    handler: Option<K>,
    port: Option<Port<ClientResult<K>>>,
    /// The deadline for the whole response.
    deadline: Time,
    /// The handler's own deadline.
    handler_deadline: Time,
    request: RequestState,
    /// Until when to wait for the server to say that it wants the body; then the body is sent
    /// anyway.
    continue_until: Option<Time>,
    /// Whether that wait has begun. It begins only once.
    has_begun_continue_wait: bool,
    /// The deadline for the head of the response; none while the request is being sent.
    head_until: Option<Time>,
    /// Since when the handler holds off the head that follows an interim one.
    head_held: Option<Time>,
    reader: HeadReader,
    body: BodyReceiver,
    interim: u32,
    /// Whether the server allows the connection to be reused, according to its heads so far.
    keep_alive: bool,
    /// How long the server keeps the connection open after this, if it has said so.
    keep_alive_timeout: Option<Duration>,
    /// Whether the server has agreed to switch protocols.
    is_switched: bool,
    /// Whether the connection has made another request before, or has waited for one.
    is_reused: bool,
    is_repeated: bool,
    refusals: u8,
    sent: SendHistory,
    /// Whether the request was complete when `prepare_request` returned.
    was_written_in_one_call: bool,
    /// How much was unsent after the handler's last call.
    unsent: usize,
    /// Whether the handler is to be told when that is sent: it has not been told since a call after
    /// which something was unsent. Other calls may come first.
    is_flush_due: bool,
    /// The response's body, while it is being stored for the handler.
    #[cfg(feature = "body")]
    storing: Option<Box<crate::storing::BodyStorer>>,
}

/// How a step of an exchange ends. `Fail` contains the reason why there is no complete response,
/// which the handler has not been told yet.
pub(super) type ExchangeFlow<K> = Flow<ExchangeEnd<K>, ClientError>;

/// What happens to the connection after an exchange.
pub(super) enum ExchangeEnd<K: Client> {
    /// It is unchanged, because nothing of the request was written.
    Unused,
    /// It can be reused.
    Reusable,
    /// It cannot be reused.
    Close,
    /// It cannot be reused, and the request is to be made again on another connection.
    Repeat(Box<Job<K>>),
    /// It goes on in another protocol.
    Upgrade(UpgradeSeed<K>),
}

/// The seed of the protocol to which the connection is upgraded.
pub(super) type UpgradeSeed<K> = <<K as Client>::Upgrade as Protocol>::Seed;

impl<K: Client> Exchange<K> {
    /// Makes the exchange for a request.
    pub(super) fn new(job: Job<K>, is_reused: bool) -> Box<Exchange<K>> {
        let Job { handler, deadline, port, is_repeated, refusals, was_sent } = job;
        Box::new(Exchange {
            handler: Some(handler),
            port: Some(port),
            deadline,
            handler_deadline: Time::NEVER,
            request: RequestState::new(),
            continue_until: None,
            has_begun_continue_wait: false,
            head_until: None,
            head_held: None,
            reader: HeadReader::new(),
            body: BodyReceiver::expected(),
            interim: 0,
            keep_alive: true,
            keep_alive_timeout: None,
            is_switched: false,
            is_reused,
            is_repeated,
            refusals,
            sent: SendHistory { on_this_connection: false, on_earlier_connection: was_sent },
            was_written_in_one_call: false,
            unsent: 0,
            is_flush_due: false,
            #[cfg(feature = "body")]
            storing: None,
        })
    }

    /// Returns the request as it was, if it was not begun.
    pub(super) fn into_job(self) -> Option<Job<K>> {
        let (handler, port) = (self.handler?, self.port?);
        let Exchange { deadline, is_repeated, refusals, sent, .. } = self;
        Some(Job {
            handler,
            deadline,
            port,
            is_repeated,
            refusals,
            was_sent: sent.on_earlier_connection,
        })
    }

    /// Begins: the handler writes its request, unless it was cancelled or its deadline has passed.
    pub(super) fn begin(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            // Nothing was sent, so the connection is unchanged.
            Counters::add(&io.config.counters_ref().cancelled);
            return Flow::Done(ExchangeEnd::Unused);
        }
        if self.deadline <= io.scope.now() {
            // Failed here and not by `Flow::Fail`, because the connection can still be used.
            self.fail(ClientError::Deadline(Stage::Waiting), io);
            return Flow::Done(ExchangeEnd::Unused);
        }
        Counters::add(&io.config.counters_ref().requests);
        let flow = self.call(io, K::prepare_request);
        // Parts that are written later are gone once they were sent, so such a request cannot be
        // made again.
        self.was_written_in_one_call = self.request.is_done();
        flow
    }

    /// Begins the wait for the server to say that it wants the body, after the call that has
    /// written the end of the head, or, on a stream, once the head is sent. Not every server
    /// responds to an expectation, so the wait has a limit. It ends when the body is written, for
    /// which the handler need not wait.
    fn update_continue_wait(&mut self, io: &Io<'_, '_, '_, K::Context>) {
        if self.request.is_done() {
            self.continue_until = None;
        } else if self.request.expects_continue()
            && self.body.awaits_head()
            && (self.sent.on_this_connection || !self.request.is_framed())
            && !std::mem::replace(&mut self.has_begun_continue_wait, true)
        {
            self.continue_until = Some(io.scope.now() + io.config.limits.continue_timeout);
        } else if self.request.expects_nothing()
            && !std::mem::replace(&mut self.has_begun_continue_wait, true)
        {
            // The handler waits, but the server was not asked for an empty body.
            self.continue_until = Some(io.scope.now());
        }
    }

    /// Processes the input that is there.
    pub(super) fn receive(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        // While the handler holds the body off, the body stays with the server. This is the
        // backpressure.
        let is_held = self.body.is_held() && !self.body.awaits_head();
        if self.request.is_unstarted() {
            self.watch_unstarted(io)
        } else if is_held || self.holds_head() {
            Flow::Wait(self.wait(None, io))
        } else if self.body.awaits_head() && self.request.is_framed() {
            // The head of the response comes in a frame of its own.
            Flow::Wait(self.wait(None, io))
        } else if self.body.awaits_head() {
            self.read_head(io)
        } else {
            self.read_body(io)
        }
    }

    /// Returns whether the handler holds off the next head. The first one is read even while the
    /// body is held off, since it is no part of the body; but a handler that passes interim heads on
    /// holds off the next one, too.
    pub(super) fn holds_head(&self) -> bool {
        self.body.is_held() && self.body.awaits_head() && self.interim > 0
    }

    /// Returns whether a loss of the connection need not concern the handler, at least not yet: a
    /// part of the response may be here that was not passed on, or its end; or nothing is missing of
    /// request and response, and the handler waits for something else. A request that is written
    /// may still be unsent.
    pub(super) fn outlives_connection(&self, has_unsent: bool) -> bool {
        self.holds_head()
            || self.body.has_rest()
            || self.is_storing()
            || (self.request.is_done()
                && !has_unsent
                && !self.body.awaits_head()
                && !self.is_switched)
    }

    /// Returns whether the body is being stored; all of it may have arrived.
    fn is_storing(&self) -> bool {
        #[cfg(feature = "body")]
        return self.storing.is_some();
        #[cfg(not(feature = "body"))]
        false
    }

    /// Watches the connection while its handler has written nothing yet. Input at this time is not
    /// a response, but could not be distinguished from one after the request has begun.
    fn watch_unstarted(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        // Nothing arrives on a stream that has not begun.
        if self.request.is_framed() {
            return Flow::Wait(self.wait(None, io));
        }
        if io.transport.input.is_empty() {
            return Flow::Wait(self.wait(Some(1), io));
        }
        Counters::add(&io.config.counters_ref().stray);
        Flow::Fail(ClientError::Closed)
    }

    /// Calls the handler, if it is there, and applies the result.
    pub(super) fn call(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> ExchangeFlow<K> {
        self.call_with_part(Part::Nothing, io, |handler, _, request, scope| {
            method(handler, request, scope)
        })
    }

    /// Calls the handler with a part of the body.
    fn call_with_part(
        &mut self,
        part: Part,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &[u8], &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> ExchangeFlow<K> {
        let Some(handler) = self.handler.take() else { return Flow::Wait(self.wait(None, io)) };
        let Transport { input, output, .. } = &mut *io.transport;
        let bytes = self.body.part_bytes(&part, input);
        let mut request =
            Request::new(&mut self.request, output, io.config.limits.output_high_water);
        let next = io.scope.guard(|scope| method(handler, bytes, &mut request, scope));
        self.record_unsent(output.len());
        self.body.discard_part(part, input);
        self.apply(next, io)
    }

    /// Applies the result of a handler.
    fn apply(
        &mut self,
        next: Result<Next<K>, Panicked>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let Next { step, deadline } = match next {
            Ok(next) => next,
            Err(panicked) => {
                Counters::add(&io.config.counters_ref().panics);
                log::error!("the handler {} {panicked}", type_name::<K>());
                // Not `Flow::Fail`, which would call the handler: it is gone.
                return self.end(Err(ClientError::Panicked), io);
            }
        };
        match deadline {
            Deadline::Keep => {}
            Deadline::Never => self.handler_deadline = Time::NEVER,
            Deadline::At(time) => self.handler_deadline = time,
        }
        // Output of a call that ends the exchange is not sent. With HTTP/2, the head is sent later,
        // when it is the stream's turn.
        self.sent.on_this_connection |=
            step.continues() && !self.request.is_framed() && !self.request.is_unstarted();
        self.update_continue_wait(io);
        match step {
            Step::GoOn(handler) => {
                self.handler = Some(handler);
                Flow::Again
            }
            Step::Hold(handler) => {
                self.handler = Some(handler);
                #[cfg(feature = "body")]
                self.hold_storing();
                self.body.hold();
                Flow::Again
            }
            Step::Receive(handler, mode) => {
                self.handler = Some(handler);
                #[cfg(feature = "body")]
                if let Err(error) = self.start_storing(mode, io) {
                    return Flow::Fail(ClientError::from_body_error(error));
                }
                match self.body.start_or_resume(mode, io.scope.now(), &io.config.limits) {
                    Ok(_) => {
                        io.transport.set_collecting(self.is_collecting());
                        #[cfg(feature = "body")]
                        self.wait_for_disk();
                        Flow::Again
                    }
                    Err(error) => Flow::Fail(error.into()),
                }
            }
            Step::Finished(output) => self.end(Ok(output), io),
            Step::Error(error) => {
                let error = self.adapt_handler_error(error, io);
                self.end(Err(error), io)
            }
            // The rest of input and output is not checked: both belong to the new protocol.
            Step::Upgrade(seed, output) if self.is_switched => {
                self.send_outcome(Ok(output), io.config.counters_ref());
                Flow::Done(ExchangeEnd::Upgrade(seed))
            }
            // The handler's mistake. The connection still speaks HTTP, and may be reused.
            Step::Upgrade(_, output) => {
                log::error!("{}: `Next::upgrade` without a server that switches", type_name::<K>());
                self.end(Ok(output), io)
            }
        }
    }

    /// Returns whether the body is kept in memory until it is complete. Such a body is read in few
    /// steps.
    fn is_collecting(&self) -> bool {
        #[cfg(feature = "body")]
        if let Some(storing) = &self.storing {
            return storing.is_collecting();
        }
        self.body.is_collecting()
    }

    /// Records how much is unsent after a call of the handler.
    fn record_unsent(&mut self, unsent: usize) {
        self.unsent = unsent;
        self.is_flush_due |= unsent > 0;
    }

    /// Continues after enough output was sent.
    pub(super) fn flushed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        self.is_flush_due = false;
        // The handler has nothing to write, or waits until the server wants the body.
        if self.request.is_done() || self.continue_until.is_some() {
            self.record_unsent(io.transport.output.len());
            return Flow::Again;
        }
        self.call(io, K::request_flushed)
    }

    /// Handles a wake-up of the connection.
    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            Counters::add(&io.config.counters_ref().cancelled);
            // Without `bad_response`, because nobody waits for its result.
            self.handler = None;
            return Flow::Done(ExchangeEnd::Close);
        }
        #[cfg(feature = "body")]
        if self.storing.is_some() {
            // Two wake-ups may have been merged, so the handler is called in any case.
            return self.poll_storing(io).on_again(|| self.call(io, K::wakeup));
        }
        self.call(io, K::wakeup)
    }
}
