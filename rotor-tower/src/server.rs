//! `TowerServer`: one request that a service handles.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rotor_async::Poller;
use rotor_core::{BoxError, Scope, Time, with_causes};
use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Server};
use rotor_http::{BodyError, MessageError, Method, Status, Trailers, Version};
use rotor_stream::{Block, Protocol};
use tower_service::Service;

use crate::body::Body;
use crate::body_lost::BodyLost;
use crate::inbound::{Demand, InboundBody};
use crate::outbound::{self, PumpOutcome};
use crate::polled::{self, CallFuture, PollOutcome};
use crate::request::{to_parts, to_trailers};
use crate::tower::{Settings, Tower};

/// The greatest length in bytes of a body that is given to the service whole, if it has arrived
/// together with its head.
const COPIED_BYTES_MAX: u64 = 8 << 10;

/// One request that a service handles: a [`Server`] whose seed is a [`Tower`].
///
/// `S` is the service. `B` is the body of its responses (for an axum router, `axum::body::Body`).
/// `C` is the context of the loop, which services do not see. `U` is the protocol of
/// [`Upgrade`](crate::Upgrade).
///
/// ```text
///                     the service has responded                  the body has ended
///   Calling (polled) ─────────────────────────▶ Sending (polled) ─────────────────▶ done
///        └──────── the request's body arrives as the service reads it ──────┘
/// ```
pub struct TowerServer<S, B, C = (), U = NoUpgrade<C>> {
    poller: Poller,
    settings: Arc<Settings>,
    stage: Stage<B>,
    /// The request's body, until it has arrived.
    inbound: Option<InboundBody>,
    receiving: ReceiveState,
    /// The peer may pause within the body of its request.
    may_pause: bool,
    /// Whether the handler's deadline has been lifted.
    has_no_deadline: bool,
    /// The response's body waits for room, not for its waker.
    wants_room: bool,
    /// What is polled was waiting for a part of the request's body that has arrived.
    needs_poll: bool,
    /// The peer has ended its side, so it may be gone.
    has_peer_ended: bool,
    /// Until when the response's body may be silent in that case; `NEVER` if it is not silent.
    silence_deadline: Time,
    /// How many bytes of the request's body are still to come. `None` if unknown, or if the end may
    /// come later than the last byte.
    body_remaining: Option<u64>,
    types: PhantomData<fn(S, C, U)>,
}

enum Stage<B> {
    Calling(CallFuture<B>),
    Sending(Pin<Box<B>>),
    /// Only during a poll.
    Taken,
}

/// What the connection was last told about receiving the request's body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReceiveState {
    NotStarted,
    Active,
    Held,
}

impl<S, B, C, U> TowerServer<S, B, C, U>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
    U: Protocol<Context = C>,
    U::Seed: Send + 'static,
{
    /// Polls the service or the body, and writes the result.
    fn advance(mut self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.needs_poll = false;
        let stage = match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Taken => return self.wait(),
            stage => stage,
        };
        let (settings, before) = (&self.settings, response.unsent());
        // If the future ends, it is dropped in the runtime's context too.
        let polled = self.poller.poll(scope, |context| {
            settings.enter(|| match stage {
                Stage::Calling(future) => polled::poll_call(future, context, response),
                Stage::Sending(body) => polled::poll_body(body, context, response),
                Stage::Taken => PollOutcome::Done,
            })
        });
        match polled {
            PollOutcome::Calling(future) => {
                self.stage = Stage::Calling(future);
                self.wait()
            }
            PollOutcome::Sending(body, pumped) => {
                self.stage = Stage::Sending(body);
                self.after_pump(&pumped, response.unsent() > before, scope.now())
            }
            PollOutcome::Done => Next::finished(),
            PollOutcome::Failed(error) => fail_response(&error),
            PollOutcome::Refused(status) => reply_error(status, response),
            PollOutcome::Upgraded(seed) => Next::upgrade(seed),
        }
    }

    /// Handles the result of pumping the response's body.
    fn after_pump(mut self, pumped: &PumpOutcome, is_written: bool, now: Time) -> Next<Self> {
        self.wants_room = matches!(pumped, PumpOutcome::Full);
        if is_written {
            self.silence_deadline = Time::NEVER;
        }
        match pumped {
            PumpOutcome::Pending if self.is_silent_too_long(now) => {
                return fail_response(&"its peer is gone, or reads what is silent".into());
            }
            PumpOutcome::More => self.poller.waker().wake_by_ref(),
            _ => {}
        }
        self.wait()
    }

    /// Returns whether the response's body has been silent for too long after the peer ended its
    /// side.
    fn is_silent_too_long(&mut self, now: Time) -> bool {
        if self.has_peer_ended && self.silence_deadline == Time::NEVER {
            self.silence_deadline = now + self.settings.half_close_timeout;
        }
        self.silence_deadline <= now
    }

    /// Continues after a part of the request's body has arrived.
    fn after_input(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        match self.needs_poll {
            true => self.advance(response, scope),
            false => self.wait(),
        }
    }

    /// Waits for the poll to be repeated, and for as much of the request's body as the service
    /// wants.
    fn wait(mut self) -> Next<Self> {
        let demand = self.inbound.as_ref().map_or(Demand::NotRequested, InboundBody::demand);
        let receiving = match (demand, self.receiving) {
            (Demand::More, _) => ReceiveState::Active,
            (Demand::Nothing, ReceiveState::Active) => ReceiveState::Held,
            (_, before) => before,
        };
        let lifts_deadline = matches!(self.stage, Stage::Sending(_)) && !self.has_no_deadline;
        let is_changed = lifts_deadline || receiving != self.receiving;
        // A service that responds before it has the whole request converses with its peer.
        self.may_pause |= lifts_deadline;
        // A body that waits for room is not polled, so it is not silent. Its time may have passed,
        // and then it would be woken in each turn.
        let silent = Some(self.silence_deadline);
        let silent = silent.filter(|time| *time != Time::NEVER && !self.wants_room);
        let sleeps = self.poller.deadline().into_iter().chain(silent).min();
        if let (Some(time), false) = (sleeps, is_changed) {
            return Next::wake_at(self, time);
        }
        if sleeps.is_some() {
            // An answer cannot say both, so the time is set in the next turn.
            self.poller.waker().wake_by_ref();
        }
        let before = std::mem::replace(&mut self.receiving, receiving);
        self.has_no_deadline |= lifts_deadline;
        let next = match receiving {
            _ if before == receiving && !lifts_deadline => Next::go_on(self),
            ReceiveState::Active if self.may_pause => Next::recv_stream(self, RecvMode::Blocks),
            ReceiveState::Active => Next::recv(self, RecvMode::Blocks),
            ReceiveState::Held => Next::hold(self),
            ReceiveState::NotStarted => Next::go_on(self),
        };
        if lifts_deadline { next.no_deadline() } else { next.keep_deadline() }
    }
}

/// Writes a complete error response; the connection persists.
fn reply_error<T: Server>(status: Status, response: &mut Response<'_>) -> Next<T> {
    T::emit_error_page(status, response);
    Next::finished()
}

/// Fails a response that cannot be completed, so that the peer does not take it for complete.
fn fail_response<T: Server>(error: &BoxError) -> Next<T> {
    match error.downcast_ref::<MessageError>() {
        // The service's bug: what it answers cannot be sent.
        Some(misuse) => log::error!("a response was not written as its service has it: {misuse}"),
        // Its body fails, or its peer is gone.
        None => log::debug!("a response broke off: {}", with_causes(&**error)),
    }
    Next::fail(Status::INTERNAL_SERVER_ERROR)
}

impl<S, B, C, U> Server for TowerServer<S, B, C, U>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
    U: Protocol<Context = C>,
    U::Seed: Send + 'static,
{
    type Context = C;
    type Seed = Tower<S>;
    type Upgrade = U;

    /// All methods except CONNECT, since a service cannot be a tunnel.
    fn supports(method: Method<'_>) -> bool {
        method != Method::Connect
    }

    fn headers_received(
        seed: Tower<S>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let Tower { mut service, settings } = seed;
        // The target is too long or there are too many fields for `http`, or it refuses a byte.
        let Some(mut parts) = to_parts(head) else {
            return reply_error(Status::BAD_REQUEST, response);
        };
        settings.extend(head, &mut parts.extensions);
        let may_pause = settings.is_stream(head);
        let poller = Poller::new(scope);
        let length = head.body_length();
        // Copied, because the memory belongs to the connection; a longer body is passed on with its
        // memory.
        let is_short = length.is_some_and(|length| length <= COPIED_BYTES_MAX);
        let (inbound, body) = match is_short.then(|| head.take_body()).flatten() {
            Some(octets) => (None, Body::whole(Bytes::copy_from_slice(octets))),
            None if !head.has_body() => (None, Body::empty()),
            None => {
                let (inbound, channel) = InboundBody::new(length, poller.waker().clone());
                (Some(inbound), Body::from_channel(channel))
            }
        };
        // On HTTP/2 the end may come any time after the last byte.
        let body_remaining = length.filter(|_| head.version() != Version::Http2);
        let request = http::Request::from_parts(parts, body);
        let future = async move {
            std::future::poll_fn(|context| service.poll_ready(context))
                .await
                .map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        };
        let server = TowerServer {
            poller,
            settings,
            stage: Stage::Calling(Box::pin(future)),
            inbound,
            receiving: ReceiveState::NotStarted,
            may_pause,
            has_no_deadline: false,
            wants_room: false,
            needs_poll: false,
            silence_deadline: Time::NEVER,
            has_peer_ended: false,
            body_remaining,
            types: PhantomData,
        };
        server.advance(response, scope)
    }

    fn request_block(
        mut self,
        block: Block,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let count = block.len() as u64;
        if let Some(inbound) = &self.inbound {
            self.needs_poll |= inbound.push(outbound::to_bytes(block));
        }
        self.body_remaining = self.body_remaining.map(|rest| rest.saturating_sub(count));
        // The end is reported right after this, and one poll covers both.
        if self.body_remaining == Some(0) {
            return self.wait();
        }
        self.after_input(response, scope)
    }

    fn request_end(
        mut self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if let Some(inbound) = self.inbound.take() {
            self.needs_poll |= inbound.end(to_trailers(trailers));
        }
        self.after_input(response, scope)
    }

    const HEARS_END: bool = true;

    /// Polls the service now; it is polled again at the latest when it has been silent for too
    /// long.
    fn peer_ended(mut self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.has_peer_ended = true;
        self.advance(response, scope)
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.advance(response, scope)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.advance(response, scope)
    }

    fn bad_request(self, error: BodyError, _: &mut Scope<'_, C>) {
        if let Some(inbound) = &self.inbound {
            inbound.report_lost(BodyLost::Broken(error));
        }
    }
}

/// Drops the rest in the runtime's context.
impl<S, B, C, U> Drop for TowerServer<S, B, C, U> {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Taken);
        if !matches!(stage, Stage::Taken) {
            self.settings.enter(|| drop(stage));
        }
    }
}

impl<S, B, C, U> fmt::Debug for TowerServer<S, B, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Calling(_) => "calling",
            Stage::Sending(_) => "sending",
            Stage::Taken => "gone",
        };
        f.debug_struct("TowerServer").field("stage", &stage).finish_non_exhaustive()
    }
}
