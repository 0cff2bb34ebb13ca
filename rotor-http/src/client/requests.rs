//! The requests that an HTTP/1.1 connection makes, one after the other: where the next one comes
//! from, and what happens to the connection after each.

use std::fmt;
use std::time::Duration;

use rotor_core::{Deadline, Description, Scope, Time, with_causes};
use rotor_stream::{Exception, Fatal};

use super::config::ClientConfig;
use super::counters::Counters;
use super::exchange::{Exchange, ExchangeEnd, ExchangeFlow, UpgradeSeed};
use super::handler::Client;
use super::io::Io;
use super::request_source::{Offer, RequestSource};
use crate::flow::{Flow, Wait};

/// The HTTP/1.1 part of a connection.
pub(super) struct Requests<K: Client, F> {
    source: F,
    served: u64,
    /// Whether it has waited for a request. A server may give up such a connection, too, whether it
    /// has served one or not.
    has_been_idle: bool,
    is_draining: bool,
    /// For how many seconds the server keeps the unused connection, according to its last response;
    /// `u32::MAX` if it has not said. A connection should stay small.
    kept_seconds: u32,
    state: State<K>,
}

enum State<K: Client> {
    /// No request has been under way since this time; `NEVER` until it is known that there is no
    /// request to make.
    Idle(Time),
    /// There is a request to make, unless the server has sent something unasked.
    Polling(Box<Exchange<K>>),
    Exchange(Box<Exchange<K>>),
}

impl<K: Client> State<K> {
    const IDLE: State<K> = State::Idle(Time::NEVER);
}

/// How a step of the requests ends. `Done` means that the connection ends, or goes on in another
/// protocol.
pub(super) type ConnectionFlow<K> = Flow<Option<UpgradeSeed<K>>>;

impl<K: Client, F: RequestSource<K>> Requests<K, F> {
    pub(super) fn new(source: F) -> Requests<K, F> {
        Requests {
            source,
            served: 0,
            has_been_idle: false,
            is_draining: false,
            kept_seconds: u32::MAX,
            state: State::IDLE,
        }
    }

    /// Returns whether the connection ends after the request that is under way.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Reports whether a request is under way.
    pub(super) fn describe(&self, to: &mut Description) {
        to.add_messages(self.served);
        to.set_state(if let State::Idle(_) = self.state { "idle" } else { "asking" });
    }

    /// Begins with the first request of a new connection.
    pub(super) fn begin_first(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        // A new server has not had time to send anything.
        let has_polled = true;
        self.take(has_polled, io)
    }

    /// Takes the next request, if there is one, on a connection that has made requests before.
    fn take_next(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        let has_polled = false;
        self.take(has_polled, io)
    }

    /// Takes requests from the source until there is something to wait for. A job is begun at once if
    /// the server has certainly sent nothing unasked; otherwise the socket is polled first.
    fn take(&mut self, has_polled: bool, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        loop {
            // Checked before the source is called, because a job that it returns has left its queue.
            if self.is_draining || self.served >= io.config.limits.requests_max {
                return Flow::Done(None);
            }
            let job = match self.source.next(self.served == 0, io.scope) {
                Offer::Job(job) => job,
                Offer::Idle => {
                    self.has_been_idle = true;
                    return self.wait(io);
                }
                Offer::Close => return Flow::Done(None),
            };
            // The caller may cancel the request while nothing else would call this machine.
            job.port.on_cancel(io.scope.notifier());
            let exchange = Exchange::new(job, self.served > 0 || self.has_been_idle);
            // Bytes that no event has reported yet would be taken for the response to this request.
            if !has_polled {
                self.state = State::Polling(exchange);
                return self.wait(io);
            }
            // If the job was cancelled or too late, the connection is unchanged and takes the next
            // one.
            if let Some(flow) = self.begin(exchange, io) {
                return flow;
            }
        }
    }

    /// Begins a request. Returns `None` if it ended before it was begun, so that the connection is
    /// unchanged.
    fn begin(
        &mut self,
        mut exchange: Box<Exchange<K>>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Option<ConnectionFlow<K>> {
        match exchange.begin(io) {
            Flow::Done(ExchangeEnd::Unused) => None,
            flow => {
                self.state = State::Exchange(exchange);
                Some(self.apply_flow_and_advance(flow, io))
            }
        }
    }

    /// Continues after the socket was polled.
    fn handle_poll_result(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        if !io.transport.input.is_empty() {
            return self.close_on_stray_input(io);
        }
        let State::Polling(exchange) = std::mem::replace(&mut self.state, State::IDLE) else {
            return self.wait(io);
        };
        match self.begin(exchange, io) {
            None => {
                // Still true: nothing was read since.
                let has_polled = true;
                self.take(has_polled, io)
            }
            Some(flow) => flow,
        }
    }

    /// Processes the input that is there.
    fn advance(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        Flow::batch(|| match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.receive(io);
                self.apply_flow(flow, io)
            }
            State::Idle(_) | State::Polling(_) => self.wait(io),
        })
    }

    /// Follows a step of the exchange, then processes further input.
    fn apply_flow_and_advance(
        &mut self,
        flow: ExchangeFlow<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        let flow = self.apply_flow(flow, io);
        flow.on_again(|| self.advance(io))
    }

    /// Does with the connection what a step of the exchange requires.
    fn apply_flow(
        &mut self,
        flow: ExchangeFlow<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        match flow {
            Flow::Wait(wait) => Flow::Wait(wait),
            Flow::Again => Flow::Again,
            Flow::Done(ExchangeEnd::Reusable) => {
                if let State::Exchange(exchange) = &self.state {
                    self.kept_seconds = exchange.kept_seconds();
                }
                self.state = State::IDLE;
                // Counted first, so that the source learns that the connection is not new, and the
                // limit includes this request.
                self.served += 1;
                self.take_next(io)
            }
            Flow::Done(ExchangeEnd::Unused) => {
                self.state = State::IDLE;
                self.take_next(io)
            }
            Flow::Done(ExchangeEnd::Upgrade(seed)) => Flow::Done(Some(seed)),
            Flow::Done(ExchangeEnd::Close) => self.close(io),
            Flow::Done(ExchangeEnd::Repeat(job)) => {
                self.source.return_job(*job, io.scope);
                self.close(io)
            }
            Flow::Fail(error) => {
                if let State::Exchange(exchange) = &mut self.state {
                    exchange.fail(error, io);
                }
                self.close(io)
            }
        }
    }

    /// Ends the connection together with its request.
    fn close(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        self.state = State::IDLE;
        // The unsent rest of the request is not needed any more.
        io.transport.output.truncate(0);
        Flow::Done(None)
    }

    /// Ends the connection while no request is under way. Gives back a job that was not begun.
    fn end_unused(&mut self, scope: &mut Scope<'_, K::Context>) -> ConnectionFlow<K> {
        if let State::Polling(exchange) = std::mem::replace(&mut self.state, State::IDLE) {
            self.return_unstarted(*exchange, scope);
        }
        Flow::Done(None)
    }

    /// Gives back a job that was not begun, because the connection cannot be used for it.
    fn return_unstarted(&mut self, exchange: Exchange<K>, scope: &mut Scope<'_, K::Context>) {
        if let Some(job) = exchange.into_job() {
            self.source.return_job(job, scope);
        }
    }

    /// Processes input, or the result of a poll.
    pub(super) fn input_received(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        match self.state {
            State::Exchange(_) => self.advance(io),
            State::Polling(_) => self.handle_poll_result(io),
            State::Idle(_) if io.transport.input.is_empty() => self.wait(io),
            State::Idle(_) => self.close_on_stray_input(io),
        }
    }

    /// Ends the connection because the server has sent something unasked, so further input could
    /// not be trusted either. If it were taken for the response to the next request, this would be
    /// response queue poisoning.
    fn close_on_stray_input(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        Counters::add(&io.config.counters_ref().stray);
        log::debug!("machine {} was sent something that nobody asked for", io.scope.token());
        self.end_unused(io.scope)
    }

    /// Continues after enough output was sent.
    pub(super) fn flushed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        let State::Exchange(exchange) = &mut self.state else { return self.wait(io) };
        let flow = exchange.flushed(io);
        self.apply_flow_and_advance(flow, io)
    }

    pub(super) fn timeout(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        // The connection was unused for too long: the server may close it just as the next request
        // is sent.
        let State::Exchange(exchange) = &mut self.state else {
            return self.end_unused(io.scope);
        };
        let flow = exchange.timeout(io);
        self.apply_flow_and_advance(flow, io)
    }

    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.wakeup(io);
                self.apply_flow_and_advance(flow, io)
            }
            // The request may be cancelled, which is checked after the poll, before anything is
            // sent.
            State::Polling(_) => self.wait(io),
            State::Idle(_) if io.transport.input.is_empty() => self.take_next(io),
            State::Idle(_) => self.close_on_stray_input(io),
        }
    }

    /// Ends the connection, because the loop is draining, after the request under way.
    pub(super) fn drain(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        self.is_draining = true;
        match self.state {
            // Input may have been read before this without an event to follow, and the response may
            // be in it.
            State::Exchange(_) => self.advance(io),
            State::Polling(_) => self.wait(io),
            State::Idle(_) => Flow::Done(None),
        }
    }

    /// Handles the end of the input.
    pub(super) fn input_ended(
        &mut self,
        exception: Exception,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        let State::Exchange(exchange) = &mut self.state else {
            return self.end_unused(io.scope);
        };
        let flow = exchange.input_ended(exception, io);
        self.apply_flow_and_advance(flow, io)
    }

    /// Handles the loss of the connection.
    pub(super) fn lost(
        mut self,
        error: Fatal,
        config: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) {
        // Only this error is a limit of this side; handlers get the others.
        if let Fatal::NoRoom = error {
            Counters::add(&config.counters_ref().without_room);
        }
        match std::mem::replace(&mut self.state, State::IDLE) {
            State::Idle(_) => {}
            // No part of it was sent, so another connection may make it, whatever its method.
            State::Polling(exchange) => self.return_unstarted(*exchange, scope),
            State::Exchange(exchange) => {
                log::debug!(
                    "machine {} lost its connection: {}",
                    scope.token(),
                    with_causes(&error)
                );
                if let Some(job) = exchange.lost(error, config, scope) {
                    self.source.return_job(*job, scope);
                }
            }
        }
    }

    /// Returns since when there has been no request to make.
    pub(super) fn idle_since(&self) -> Option<Time> {
        match &self.state {
            State::Idle(since) => Some(*since),
            State::Polling(_) | State::Exchange(_) => None,
        }
    }

    /// Returns what the connection waits for while no request is under way.
    fn wait(&mut self, io: &Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        let now = io.scope.now();
        let unused_timeout = io.config.limits.unused_timeout;
        Flow::Wait(match &mut self.state {
            State::Idle(since) => {
                // A later call may be spurious, and does not extend the time.
                if *since == Time::NEVER {
                    *since = now;
                }
                let unused_timeout = match self.kept_seconds {
                    u32::MAX => unused_timeout,
                    seconds => unused_timeout.min(unused_time_max(seconds)),
                };
                Wait::input(Some(1), Deadline::At(*since + unused_timeout))
            }
            State::Polling(_) => Wait::poll(Deadline::At(now + unused_timeout)),
            // The steps of the exchange set what it waits for.
            State::Exchange(_) => Wait::UNCHANGED,
        })
    }

    /// Returns a wait that ends at once, because there is more input to process: the stream then
    /// calls again, within its budgets.
    pub(super) fn wait_for_turn(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Wait {
        match &mut self.state {
            State::Exchange(exchange) => exchange.wait(Some(io.transport.input.len().min(1)), io),
            State::Idle(_) | State::Polling(_) => Wait::UNCHANGED,
        }
    }
}

/// Returns how long a connection may be unused that its server keeps for this many seconds: somewhat
/// less, so that no request meets the end of the connection on its way.
fn unused_time_max(kept_seconds: u32) -> Duration {
    /// Several round trips, and the precision of the seconds in which the server counts.
    const MARGIN_MAX: Duration = Duration::from_secs(1);
    let kept = Duration::from_secs(kept_seconds.into());
    kept - MARGIN_MAX.min(kept / 2)
}

impl<K: Client, F> fmt::Debug for Requests<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Idle(_) => "Idle",
            State::Polling(_) => "Polling",
            State::Exchange(_) => "Exchange",
        };
        f.debug_struct("Requests")
            .field("state", &state)
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}
