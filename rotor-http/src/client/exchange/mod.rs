//! One request and its response: the handler, how far the request is written, how far the
//! response is read.
//!
//! ```text
//!   writing:  prepare_request ─▶ (body_wanted) ─▶ request_flushed.. ─▶ complete
//!   reading:  (interim_received..) ─▶ headers_received ─▶ response_chunk.., response_end | response_received
//! ```
//!
//! The two are independent: a response may come, and end, before the request is written. `reading`
//! is the second, `deadlines` says what is waited for and until when, `ending` what is left.

mod deadlines;
mod ending;
#[cfg(feature = "http2")]
mod framed;
mod reading;
#[cfg(feature = "body")]
mod storing;

use std::any::type_name;

use rotor_core::{Deadline, Panicked, Port, Scope, Time};
use rotor_stream::{Protocol, Transport};

use super::counters::Counters;
use super::error::{ClientError, Sent, Stage};
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
    /// Absent while it is being called, and after its last answer.
    handler: Option<K>,
    port: Option<Port<ClientResult<K>>>,
    /// Until when the response must be whole.
    deadline: Time,
    /// The handler's own deadline.
    handler_deadline: Time,
    request: RequestState,
    /// Until when the server may say that it wants the body; then it is sent anyway.
    continue_until: Option<Time>,
    /// Until when the head of the response must be there; none while the request is being sent.
    head_until: Option<Time>,
    reader: HeadReader,
    body: BodyReceiver,
    interim: u32,
    /// Whether the server lets the connection be used again, as far as its heads have said.
    keep_alive: bool,
    /// Whether the server has agreed to switch protocols.
    is_switched: bool,
    /// Whether the connection has served another request before.
    is_reused: bool,
    is_repeated: bool,
    refusals: u8,
    sent: Sent,
    /// Whether the request was complete when `prepare_request` returned.
    was_written_at_once: bool,
    /// The body of the response, while it is being stored for the handler.
    #[cfg(feature = "body")]
    storing: Option<Box<crate::storing::Storing>>,
}

/// How a step of an exchange ends: `Fail` says why there is no whole response, which the handler
/// has not been told yet.
pub(super) type Exchanged<K> = Flow<End<K>, ClientError>;

/// What an exchange leaves of its connection.
pub(super) enum End<K: Client> {
    /// It can be used again.
    Reusable,
    /// It is not to be used again.
    Close,
    /// Nor is it, and the request is to be made again on another.
    Repeat(Box<Job<K>>),
    /// It goes on in another protocol.
    Upgrade(UpgradeSeed<K>),
}

/// What the protocol is made from that a connection goes on in.
pub(super) type UpgradeSeed<K> = <<K as Client>::Upgrade as Protocol>::Seed;

impl<K: Client> Exchange<K> {
    /// A request that is to be made.
    pub(super) fn new(job: Job<K>, is_reused: bool) -> Box<Exchange<K>> {
        let Job { handler, deadline, port, is_repeated, refusals, was_sent } = job;
        Box::new(Exchange {
            handler: Some(handler),
            port: Some(port),
            deadline,
            handler_deadline: Time::NEVER,
            request: RequestState::new(),
            continue_until: None,
            head_until: None,
            reader: HeadReader::new(),
            body: BodyReceiver::expected(),
            interim: 0,
            keep_alive: true,
            is_switched: false,
            is_reused,
            is_repeated,
            refusals,
            sent: Sent { now: false, before: was_sent },
            was_written_at_once: false,
            #[cfg(feature = "body")]
            storing: None,
        })
    }

    /// The request as it was, if it was not begun.
    pub(super) fn into_job(self) -> Option<Job<K>> {
        let (handler, port) = (self.handler?, self.port?);
        let Exchange { deadline, is_repeated, refusals, sent, .. } = self;
        Some(Job { handler, deadline, port, is_repeated, refusals, was_sent: sent.before })
    }

    /// Begins: the handler writes its request; unless nobody waits for it any more, or it has no
    /// time left.
    pub(super) fn begin(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            // Nothing was sent: the connection is as good as before.
            Counters::add(&io.config.count().cancelled);
            return Flow::Done(End::Reusable);
        }
        if self.deadline <= io.scope.now() {
            // Here and not by `Flow::Fail`, because the connection is not to blame.
            self.fail(ClientError::Deadline(Stage::Waiting), io);
            return Flow::Done(End::Reusable);
        }
        Counters::add(&io.config.count().requests);
        let flow = self.call(io, K::prepare_request);
        // What is written later is gone once it was sent, so such a request cannot be made again.
        self.was_written_at_once = self.request.is_done();
        // Not every server answers an expectation, so the wait for it has a limit. If the body is
        // written already, nothing waits.
        if self.request.expects_continue() && !self.request.is_done() {
            self.continue_until = Some(io.scope.now() + io.config.limits.continue_timeout);
        }
        flow
    }

    /// Does what can be done with what has come.
    pub(super) fn receive(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K> {
        // While the handler holds the body off, the body stays with the server: this is the
        // backpressure.
        if self.request.is_unstarted() {
            self.watch_unstarted(io)
        } else if self.body.is_held() {
            Flow::Wait(self.wait(None, io))
        } else if self.body.is_expected() && self.request.is_framed() {
            // Its head comes in a frame of its own.
            Flow::Wait(self.wait(None, io))
        } else if self.body.is_expected() {
            self.read_head(io)
        } else {
            self.read_body(io)
        }
    }

    /// The handler has a connection and has written nothing yet: what comes now is no response, nor
    /// could it be told from one once the request has begun.
    fn watch_unstarted(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K> {
        // Nothing comes on a stream that has not begun.
        if self.request.is_framed() {
            return Flow::Wait(self.wait(None, io));
        }
        if io.transport.input.is_empty() {
            return Flow::Wait(self.wait(Some(1), io));
        }
        Counters::add(&io.config.count().stray);
        Flow::Fail(ClientError::Closed)
    }

    /// Calls the handler, if it is there, and applies what it returns.
    pub(super) fn call(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> Exchanged<K> {
        self.give(Part::Nothing, io, |handler, _, request, scope| method(handler, request, scope))
    }

    /// Calls the handler with a part of the body.
    fn give(
        &mut self,
        part: Part,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &[u8], &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> Exchanged<K> {
        let Some(handler) = self.handler.take() else { return Flow::Wait(self.wait(None, io)) };
        let Transport { input, output, .. } = &mut *io.transport;
        let octets = self.body.octets(&part, input);
        let mut request =
            Request::new(&mut self.request, output, io.config.limits.output_high_water);
        let next = io.scope.guard(|scope| method(handler, octets, &mut request, scope));
        self.body.handed_over(part, input);
        self.apply(next, io)
    }

    /// Applies what a handler has returned.
    fn apply(
        &mut self,
        next: Result<Next<K>, Panicked>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Exchanged<K> {
        let Next { step, deadline } = match next {
            Ok(next) => next,
            Err(panicked) => {
                Counters::add(&io.config.count().panics);
                log::error!("the handler {} {panicked}", type_name::<K>());
                // Not `Flow::Fail`, which would tell the handler: it is gone.
                return self.end(Err(ClientError::Panicked), io);
            }
        };
        match deadline {
            Deadline::Keep => {}
            Deadline::Never => self.handler_deadline = Time::NEVER,
            Deadline::At(time) => self.handler_deadline = time,
        }
        // What was written in a call that ends the exchange is not sent. Of a stream, the head is
        // sent when its turn has come.
        self.sent.now |=
            step.goes_on() && !self.request.is_framed() && !self.request.is_unstarted();
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
                if let Err(error) = self.begin_storing(mode, io) {
                    return Flow::Fail(ClientError::of_body(error));
                }
                match self.body.ask(mode, io.scope.now(), &io.config.limits) {
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
                let error = self.of_handler(error, io);
                self.end(Err(error), io)
            }
            // What is left of input and output is not checked: both belong to the new protocol.
            Step::Upgrade(seed, output) if self.is_switched => {
                self.answer(Ok(output), io.config.count());
                Flow::Done(End::Upgrade(seed))
            }
            // The handler's mistake. The connection still speaks HTTP, and may be used again.
            Step::Upgrade(_, output) => {
                log::error!("{}: `Next::upgrade` without a server that switches", type_name::<K>());
                self.end(Ok(output), io)
            }
        }
    }

    /// Whether what comes of the body is kept in memory until all of it is there: such a body is
    /// read in few steps.
    fn is_collecting(&self) -> bool {
        #[cfg(feature = "body")]
        if let Some(storing) = &self.storing {
            return storing.is_collecting();
        }
        self.body.is_collecting()
    }

    /// The output has gone down as far as was waited for.
    pub(super) fn flushed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K> {
        // The handler has nothing to write, or waits until the server wants the body.
        if self.request.is_done() || self.continue_until.is_some() {
            return Flow::Again;
        }
        self.call(io, K::request_flushed)
    }

    /// Something woke the connection.
    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Exchanged<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            Counters::add(&io.config.count().cancelled);
            // Without `bad_response`, because nobody waits for its result.
            self.handler = None;
            return Flow::Done(End::Close);
        }
        #[cfg(feature = "body")]
        if self.storing.is_some() {
            // Two wake-ups may have come as one: the handler hears of it in any case.
            return self.poll_storing(io).and_again(|| self.call(io, K::wakeup));
        }
        self.call(io, K::wakeup)
    }
}
