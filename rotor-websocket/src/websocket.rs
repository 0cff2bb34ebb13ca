//! `WebSocket`: a handler on a connection, as the protocol to which HTTP is upgraded.
//!
//! ```text
//!               a message, a wake-up, ..         close frame sent           peer's close frame
//!  Listening ──▶ Listening  Listening, Pinged ─────────────▶ Closing ──────────────────▶ (end)
//!     │ ▲                              │ peer's close frame, answered                        ▲
//!     │ │ any input                    └───────────▶ Ended, at a client ─── end of stream ───┤
//!     ▼ │                                            (a server ends at once)                 │
//!  Pinged ── no pong in time ────────────────────────────────────────────────────────────────┘
//! ```

use std::fmt;

use rotor_core::{Description, Scope, Time, with_causes};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};

use crate::close_watch::CloseWatch;
use crate::closed::{Cause, Closed};
use crate::counters::Count;
use crate::frame::code::Code;
use crate::frame::header::Opcode;
use crate::handler::Handler;
use crate::incoming::{Decompression, Incoming, InputEvent, Step, StepOptions};
use crate::link::{Link, PendingDrain, WatchState};
use crate::next::{Mode, Next};
use crate::outgoing::{Compression, Outgoing};
use crate::partial::Limits;
use crate::sender::Sender;
use crate::websocket_seed::WebSocketSeed;

/// How many frames are handled in a call at most; the rest waits for the next turn. HTTP gives a
/// server's and a client's connection as many calls in a turn, and frames count as such.
const SERVER_FRAMES_MAX: u32 = 128;
const CLIENT_FRAMES_MAX: u32 = 1024;

/// A WebSocket with its handler: the protocol to which the HTTP connection of a server
/// ([`accept`](crate::accept)) or of a client ([`Dial`](crate::Dial)) is upgraded.
pub struct WebSocket<H: Handler> {
    /// `None` while the handler is being called, and after its end.
    handler: Option<H>,
    incoming: Incoming,
    link: Link,
}

/// The code and the reason of the peer's close frame.
type PeerClose = Option<(Code, String)>;

/// How a look at the input ended.
enum InputOutcome {
    /// This many bytes are needed.
    Needs(usize),
    /// No more input is taken for now.
    Paused,
    /// The connection ends.
    Ended(Cause, PeerClose),
}

impl<H: Handler> WebSocket<H> {
    /// Handles the input, as much as may be handled in one turn.
    fn handle_input(
        &mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> InputOutcome {
        let (limits, now) = (Limits::of(&self.link.config), scope.now());
        if std::mem::replace(&mut self.incoming.inflated_at, now) != now {
            self.incoming.inflated = 0;
        }
        self.link.record_unread(transport.input.len(), now);
        let is_client = self.link.outgoing.is_client();
        let frames_max = if is_client { CLIENT_FRAMES_MAX } else { SERVER_FRAMES_MAX };
        for frame in 0..frames_max {
            if self.link.is_dropped {
                return InputOutcome::Ended(Cause::Dropped, None);
            }
            let comes_after_drain = self.link.drain.is_some_and(|drain| drain.unread == 0);
            if (comes_after_drain && !self.incoming.is_inflating())
                || !self.link.accepts_input(transport.output)
            {
                return InputOutcome::Paused;
            }
            let unread = transport.input.len();
            if self.incoming.inflated >= self.link.config.inflated_max.max(1) {
                self.link.count(Count::inflated_in_turns);
                break;
            }
            let (mode, discards) = (self.link.mode, self.link.is_closing());
            let awaits_pong = self.link.outgoing.pings > 0;
            let terms = StepOptions { limits, now, mode, discards, awaits_pong };
            let (handler, link) = (&mut self.handler, &mut self.link);
            let mut close = None;
            let (input, output) = (&mut *transport.input, &mut *transport.output);
            let step = self.incoming.step(input, &terms, |given| {
                match given {
                    InputEvent::MessageInPlace(message) => {
                        link.messages += 1;
                        let bytes = message.as_bytes();
                        return link.call_with_input(
                            bytes,
                            handler,
                            output,
                            scope,
                            |h, out, scope| h.message(message, out, scope),
                        );
                    }
                    InputEvent::Message(message) => {
                        link.messages += 1;
                        link.call(handler, output, scope, |h, out, scope| {
                            h.message(message, out, scope)
                        });
                    }
                    InputEvent::Piece(piece) => {
                        link.messages += u64::from(piece.is_last);
                        link.call(handler, output, scope, |h, out, scope| {
                            h.piece(piece, out, scope)
                        });
                    }
                    InputEvent::Ping(payload) if !link.is_closing() => {
                        link.outgoing.frame(Opcode::Pong, true, false, payload, output);
                    }
                    // RFC 6455 §5.5.2 asks for a pong until the peer's close frame. But it would
                    // come after ours, which tells the peer as much, and pongs could keep the
                    // output from becoming empty. Most implementations send none.
                    InputEvent::Ping(_) => {}
                    InputEvent::Pong(payload) => {
                        link.outgoing.pings = link.outgoing.pings.saturating_sub(1);
                        if !link.is_closing() {
                            link.call(handler, output, scope, |h, out, scope| {
                                h.pong(payload, out, scope)
                            });
                        }
                    }
                    InputEvent::Close(code, reason) => close = Some((code, reason.to_string())),
                }
                None
            });
            match step {
                Ok(Step::Needs(count)) => return InputOutcome::Needs(count),
                Ok(Step::Progress) if close.is_some() => {
                    return InputOutcome::Ended(Cause::Peer, close);
                }
                Ok(Step::Progress) => {}
                Ok(Step::Forward(kind, count)) => {
                    let (input, output) = (&mut *transport.input, &mut *transport.output);
                    self.link.outgoing.forward_from_input(kind, input, count, output);
                }
                Ok(Step::NoRoom) => return InputOutcome::Ended(Cause::NoRoom, None),
                Err(fault) => return InputOutcome::Ended(Cause::Fault(fault), None),
            }
            if let Some(drain) = &mut self.link.drain {
                let handled = unread - transport.input.len();
                drain.unread = drain.unread.saturating_sub(handled);
            }
            // A turn may deliver its input in many pieces, with a call for each.
            transport.count_calls(u32::from(frame > 0));
            if scope.now() != now {
                // The handler has blocked, and may again. What it has sent goes out before.
                break;
            }
        }
        if self.link.is_dropped {
            return InputOutcome::Ended(Cause::Dropped, None);
        }
        // A handler cannot be woken before it has returned, so it continues in the next turn.
        scope.notifier().wakeup();
        self.link.has_yielded = true;
        InputOutcome::Paused
    }

    /// Handles the input, and waits for more.
    fn proceed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        if self.handler.is_none() {
            return self.wait_for_end(transport);
        }
        let mut outcome = self.handle_input(transport, scope);
        let has_more = match outcome {
            InputOutcome::Needs(_) => false,
            InputOutcome::Paused => {
                let is_inflating = self.incoming.is_inflating();
                self.link.has_yielded || self.link.drain_waits_for_room(is_inflating)
            }
            InputOutcome::Ended(..) => true,
        };
        if !has_more && let Some(drain) = self.link.drain.take() {
            self.announce_drain(drain, transport, scope);
            outcome = self.handle_input(transport, scope);
        }
        match outcome {
            InputOutcome::Needs(count) => self.wait_for_input(Some(count), transport),
            InputOutcome::Paused => self.wait_for_input(None, transport),
            InputOutcome::Ended(cause, close) => self.end(cause, close, transport, scope),
        }
    }

    fn announce_drain(
        &mut self,
        drain: PendingDrain,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) {
        if !self.link.is_closing() {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, |handler, out, scope| {
                handler.draining(drain.until, out, scope)
            });
        }
    }

    fn wait_for_input(mut self, input: Option<usize>, transport: &Transport<'_>) -> Intent<Self> {
        self.link.unread = transport.input.len();
        if let WatchState::Pinged { watch } = &mut self.link.watch {
            watch.record_unsent(transport.unsent_len());
        }
        let half = self.link.config.unsent_high_water / 2;
        // Also if the output has shrunk since: input may arrive before that is reported.
        let waits_for_room = self.link.is_flushed_pending || transport.output.len() > half;
        self.link.is_flushed_pending = waits_for_room;
        let flush = match self.link.close_watch() {
            None => waits_for_room.then_some(half),
            Some(watch) => watch.wants_flush(transport.unsent_len()).then_some(0),
        };
        let deadline = self.link.deadline();
        let intent = Intent::of(self);
        let waiting = match input {
            Some(count) => intent.bytes(count),
            // What has arrived is delivered even if the connection is lost meanwhile.
            None => intent.hold(),
        };
        let waiting = if let Some(left) = flush { waiting.or_flush(left) } else { waiting };
        waiting.deadline(deadline)
    }

    /// Waits for the end of the connection, after both close frames. A client leaves it to the
    /// server to end the connection (RFC 6455 §7.1.1), so that its own port is free at once.
    fn wait_for_end(mut self, transport: &mut Transport<'_>) -> Intent<Self> {
        transport.input.clear();
        let unsent = transport.unsent_len();
        let wants_flush = self.link.close_watch().is_some_and(|watch| watch.wants_flush(unsent));
        let deadline = self.link.deadline();
        let waiting = Intent::of(self).bytes(1);
        let waiting = if wants_flush { waiting.or_flush(0) } else { waiting };
        waiting.deadline(deadline)
    }

    /// Ends the connection: tells the peer, if it does not know, and the handler.
    fn end(
        mut self,
        cause: Cause,
        close: PeerClose,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        let output = &mut *transport.output;
        let ours = match self.link.watch {
            WatchState::Closing { code, .. } => Some(code),
            _ => None,
        };
        let (theirs, reason) = close.unzip();
        let mut cause = cause;
        match cause {
            Cause::Peer => {
                if ours.is_some() {
                    cause = Cause::Handler;
                }
                self.link.count(Count::closed);
                self.link.outgoing.close(theirs.unwrap_or(Code::NO_STATUS), "", output);
            }
            Cause::Fault(fault) => {
                self.link.count_fault(fault);
                self.link.outgoing.close(fault.code(), &fault.to_string(), output);
            }
            Cause::NoRoom => {
                self.link.count(Count::without_room);
                self.link.outgoing.close(Code::TRY_AGAIN_LATER, "", output);
            }
            Cause::PongTimeout => self.link.count(Count::pong_timeouts),
            Cause::CloseTimeout => self.link.count(Count::close_timeouts),
            Cause::Handler | Cause::Dropped => {}
            Cause::Lost => self.link.count(Count::lost),
        }
        if matches!(cause, Cause::PongTimeout | Cause::CloseTimeout | Cause::Dropped) {
            // The peer does not take the output, or should not get it.
            output.truncate(0);
        }
        let fault_code = match cause {
            Cause::Fault(fault) => Some(fault.code()),
            Cause::NoRoom => Some(Code::TRY_AGAIN_LATER),
            _ => None,
        };
        let code = ours.or(theirs).or(fault_code).unwrap_or(Code::ABNORMAL);
        if let Some(handler) = self.handler.take() {
            let reason = reason.as_deref().unwrap_or_default();
            handler.closed(Closed { code, reason, cause }, scope);
        }
        let is_clean = matches!(cause, Cause::Peer | Cause::Handler);
        if is_clean && self.link.outgoing.is_client() {
            self.link.handler_deadline = Time::NEVER;
            let watch = CloseWatch::new(self.link.config.close_within, scope.now());
            self.link.watch = WatchState::Ended { watch };
            return self.wait_for_end(transport);
        }
        Intent::done()
    }

    /// Tells the handler that the connection is lost.
    fn report_loss(&mut self, scope: &mut Scope<'_, H::Context>) {
        let Some(handler) = self.handler.take() else { return };
        self.link.count(Count::lost);
        let code = match self.link.watch {
            WatchState::Closing { code, .. } => code,
            _ => Code::ABNORMAL,
        };
        handler.closed(Closed { code, reason: "", cause: Cause::Lost }, scope);
    }
}

impl<H: Handler> Protocol for WebSocket<H> {
    type Context = H::Context;
    type Seed = WebSocketSeed<H>;

    fn create(
        seed: WebSocketSeed<H>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        let WebSocketSeed { seed, config, agreed, is_client } = seed;
        config.counters.count(Count::opened);
        let mut compression = Compression::None;
        let mut decompression = Decompression::None;
        if let (Some(agreed), Some(deflate)) = (agreed, config.deflate) {
            compression = Compression::of(deflate, agreed.send_bits, agreed.sends_takeover);
            decompression = Decompression::of(agreed.receives_takeover);
        }
        let held = config.messages.clone();
        let mask_key = is_client.then(|| scope.secure_random());
        let mut link = Link {
            outgoing: Outgoing::new(mask_key, compression),
            config,
            handler_deadline: Time::NEVER,
            watch: WatchState::Listening { last_heard: scope.now() },
            mode: Mode::Messages,
            is_held: false,
            is_dropped: false,
            is_flushed_pending: false,
            has_yielded: false,
            drain: None,
            unread: 0,
            messages: 0,
        };
        let mut sender = Sender::new(&mut link.outgoing, transport.output, &link.config);
        let next = H::opened(seed, &mut sender, scope);
        let mut handler = None;
        let Next { handler: opened, step, deadline } = next;
        // Its answer is applied like that of any other call.
        let answer = |handler: H| Next { handler, step, deadline };
        handler.replace(opened);
        link.call(&mut handler, transport.output, scope, |handler, _, _| answer(handler));
        let incoming = Incoming::new(is_client, decompression, held);
        WebSocket { handler, incoming, link }.proceed(transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        self.link.record_taken(transport.unsent_len(), scope.now());
        self.proceed(transport, scope)
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        self.link.record_taken(transport.unsent_len(), scope.now());
        self.link.is_flushed_pending = false;
        let within = self.link.config.close_within;
        if let Some(watch) = self.link.close_watch() {
            watch.flushed(within, scope.now());
        } else {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::flushed);
        }
        self.proceed(transport, scope)
    }

    fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        let now = scope.now();
        self.link.record_taken(transport.unsent_len(), now);
        if self.link.handler_deadline <= now {
            self.link.handler_deadline = Time::NEVER;
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::timeout);
        }
        if self.link.is_dropped {
            return self.end(Cause::Dropped, None, transport, scope);
        }
        self.link.record_unread(transport.input.len(), now);
        // While no input is taken, the peer cannot be heard.
        let listens = self.link.accepts_input(transport.output) && !transport.is_input_held();
        let within = self.link.config.close_within;
        if let Some(watch) = self.link.close_watch()
            && watch.is_late(transport.unsent_len(), transport.is_input_held(), within, now)
        {
            if self.handler.is_some() {
                return self.end(Cause::CloseTimeout, None, transport, scope);
            }
            // The server does not take the output, or does not end.
            transport.output.truncate(0);
            return Intent::done();
        }
        if self.link.check_silence(listens, transport, now) {
            return self.end(Cause::PongTimeout, None, transport, scope);
        }
        self.proceed(transport, scope)
    }

    fn wakeup(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        self.link.record_taken(transport.unsent_len(), scope.now());
        if std::mem::take(&mut self.link.has_yielded) {
            self.incoming.inflated = 0;
        }
        if !self.link.is_closing() {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::wakeup);
        }
        self.proceed(transport, scope)
    }

    fn draining(
        mut self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        if self.handler.is_none() {
            return Intent::done();
        }
        self.link.record_taken(transport.unsent_len(), scope.now());
        // Input that has arrived is handled first, since the handler may close, and the rest is
        // dropped then.
        self.link.drain = Some(PendingDrain { until, unread: transport.input.len() });
        self.proceed(transport, scope)
    }

    fn describe(&self, to: &mut Description) {
        to.set_state(self.link.state());
        to.add_messages(self.link.messages);
        to.add_held(self.incoming.held_bytes() + self.link.outgoing.held_bytes());
        if let Some(handler) = &self.handler {
            handler.describe(to);
        }
    }

    fn exception(
        mut self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        if let Exception::Limit(_) = exception {
            // A frame that would be waited for is longer than the input may become.
            self.incoming.is_stepwise = true;
            return self.proceed(transport, scope);
        }
        log::debug!("machine {}: the peer of a WebSocket is gone: {exception}", scope.token());
        self.report_loss(scope);
        Intent::done()
    }

    fn fatal(mut self, error: Fatal, scope: &mut Scope<'_, H::Context>) {
        log::debug!("machine {} lost its WebSocket: {}", scope.token(), with_causes(&error));
        self.report_loss(scope);
    }
}

impl<H: Handler> fmt::Debug for WebSocket<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").field("watch", &self.link.watch).finish_non_exhaustive()
    }
}
