//! `WebSocket`: a handler on a connection, as the protocol to which HTTP is upgraded.
//!
//! ```text
//!             a message, a wake-up, ..          close frame sent           peer's close frame
//!  Listens ──▶ Listens        Listens, Pinged ──────────────▶ Closing ───────────────────▶ (end)
//!     │ ▲                              │ peer's close frame, answered                        ▲
//!     │ │ any input                    └───────────▶ Ended, at a client ─── end of stream ───┤
//!     ▼ │                                            (a server ends at once)                 │
//!  Pinged ── no pong in time ────────────────────────────────────────────────────────────────┘
//! ```

use std::fmt;
use std::sync::Arc;

use rotor_core::{Description, Scope, Time, with_causes};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};

use crate::closed::{Cause, Closed};
use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::deflate::params::Agreed;
use crate::frame::code::Code;
use crate::frame::header::Opcode;
use crate::handler::Handler;
use crate::incoming::{Decompression, Given, Incoming, Step, Terms};
use crate::link::{Link, Watch};
use crate::next::{Mode, Next};
use crate::outgoing::{Compression, Outgoing};
use crate::partial::Limits;
use crate::sender::Sender;

/// How many frames are handled in one turn at most; the rest waits for the next turn.
const FRAMES_MAX: u32 = 1024;

/// A WebSocket with its handler: the protocol to which the HTTP connection of a server
/// ([`accept`](crate::accept)) or of a client ([`Dial`](crate::Dial)) is upgraded.
pub struct WebSocket<H: Handler> {
    /// `None` while the handler is being called, and after its end.
    handler: Option<H>,
    incoming: Incoming,
    link: Link,
}

/// The seed of a WebSocket: the result of the handshake, and the seed of the handler. Made by
/// [`Accepted::seed`](crate::Accepted::seed).
pub struct WebSocketSeed<H: Handler> {
    pub(crate) seed: H::Seed,
    pub(crate) config: Arc<WebSocketConfig>,
    pub(crate) agreed: Option<Agreed>,
    pub(crate) is_client: bool,
}

/// The code and the reason of the peer's close frame.
type PeersClose = Option<(Code, String)>;

/// How a look at the input ended.
enum Looked {
    /// This many bytes are needed.
    Needs(usize),
    /// No more input is taken for now.
    Rests,
    /// The connection ends.
    Ends(Cause, PeersClose),
}

impl<H: Handler> WebSocket<H> {
    /// Handles the input, as much as may be handled in one turn.
    fn look(&mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, H::Context>) -> Looked {
        self.incoming.inflated = 0;
        let (limits, now) = (Limits::of(&self.link.config), scope.now());
        for _ in 0..FRAMES_MAX {
            if self.link.is_dropped {
                return Looked::Ends(Cause::Dropped, None);
            }
            if !self.link.takes_input(transport.output) {
                return Looked::Rests;
            }
            if self.incoming.inflated >= self.link.config.inflated_max.max(1) {
                self.link.count(Count::inflated_in_turns);
                break;
            }
            let (mode, discards) = (self.link.mode, self.link.is_closing());
            let owes_pong = self.link.outgoing.pings > 0;
            let terms = Terms { limits, now, mode, discards, owes_pong };
            let (handler, link) = (&mut self.handler, &mut self.link);
            let mut close = None;
            let (input, output) = (&mut *transport.input, &mut *transport.output);
            let step = self.incoming.step(input, &terms, |given| {
                match given {
                    Given::Standing(message) => {
                        link.messages += 1;
                        let bytes = message.as_bytes();
                        return link.call_giving(bytes, handler, output, scope, |h, out, scope| {
                            h.message(message, out, scope)
                        });
                    }
                    Given::Message(message) => {
                        link.messages += 1;
                        link.call(handler, output, scope, |h, out, scope| {
                            h.message(message, out, scope)
                        });
                    }
                    Given::Piece(piece) => {
                        link.messages += u64::from(piece.is_last);
                        link.call(handler, output, scope, |h, out, scope| {
                            h.piece(piece, out, scope)
                        });
                    }
                    Given::Ping(payload) if !link.is_closing() => {
                        link.outgoing.frame(Opcode::Pong, true, false, payload, output);
                    }
                    Given::Ping(_) => {}
                    Given::Pong => link.outgoing.pings = link.outgoing.pings.saturating_sub(1),
                    Given::Close(code, reason) => close = Some((code, reason.to_string())),
                }
                None
            });
            match step {
                Ok(Step::Needs(count)) => return Looked::Needs(count),
                Ok(Step::Did) if close.is_some() => return Looked::Ends(Cause::Peer, close),
                Ok(Step::Did) => {}
                Ok(Step::PassOn(kind, count)) => {
                    let (input, output) = (&mut *transport.input, &mut *transport.output);
                    self.link.outgoing.pass_on(kind, input, count, output);
                }
                Ok(Step::NoRoom) => return Looked::Ends(Cause::NoRoom, None),
                Err(fault) => return Looked::Ends(Cause::Fault(fault), None),
            }
        }
        if self.link.is_dropped {
            return Looked::Ends(Cause::Dropped, None);
        }
        // A handler cannot be woken before it has returned, so it continues in the next turn.
        scope.notifier().wakeup();
        self.link.yields = true;
        Looked::Rests
    }

    /// Handles the input, and waits for more.
    fn go_on(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        if self.handler.is_none() {
            return self.wait_for_end(transport);
        }
        match self.look(transport, scope) {
            Looked::Needs(count) => self.wait(Some(count), transport),
            Looked::Rests => self.wait(None, transport),
            Looked::Ends(cause, close) => self.end(cause, close, transport, scope),
        }
    }

    fn wait(mut self, input: Option<usize>, transport: &Transport<'_>) -> Intent<Self> {
        self.link.unread = transport.input.len();
        let half = self.link.config.unsent_high_water / 2;
        // Also if the output has shrunk since: input may arrive before that is reported.
        let waits_for_room = self.link.owes_flushed || transport.output.len() > half;
        self.link.owes_flushed = waits_for_room;
        let deadline = self.link.deadline();
        let intent = Intent::of(self);
        let waiting = match input {
            Some(count) => intent.bytes(count),
            None => intent.sleep(),
        };
        let waiting = if waits_for_room { waiting.or_flush(half) } else { waiting };
        waiting.deadline(deadline)
    }

    /// Waits for the end of the connection, after both close frames. A client leaves it to the
    /// server to end the connection (RFC 6455 §7.1.1), so that its own port is free at once.
    fn wait_for_end(self, transport: &mut Transport<'_>) -> Intent<Self> {
        transport.input.clear();
        let deadline = self.link.deadline();
        Intent::of(self).bytes(1).deadline(deadline)
    }

    /// Ends the connection: tells the peer, if it does not know, and the handler.
    fn end(
        mut self,
        cause: Cause,
        close: PeersClose,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        let output = &mut *transport.output;
        let ours = match self.link.watch {
            Watch::Closing { code, .. } => Some(code),
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
        let told = match cause {
            Cause::Fault(fault) => Some(fault.code()),
            Cause::NoRoom => Some(Code::TRY_AGAIN_LATER),
            _ => None,
        };
        let code = ours.or(theirs).or(told).unwrap_or(Code::ABNORMAL);
        if let Some(handler) = self.handler.take() {
            let reason = reason.as_deref().unwrap_or_default();
            handler.closed(Closed { code, reason, cause }, scope);
        }
        let is_clean = matches!(cause, Cause::Peer | Cause::Handler);
        if is_clean && self.link.outgoing.is_client() {
            self.link.handler_deadline = Time::NEVER;
            self.link.watch = Watch::Ended { until: scope.now() + self.link.config.close_within };
            return self.wait_for_end(transport);
        }
        Intent::done()
    }

    /// Tells the handler that the connection is lost.
    fn lost(&mut self, scope: &mut Scope<'_, H::Context>) {
        let Some(handler) = self.handler.take() else { return };
        self.link.count(Count::lost);
        let code = match self.link.watch {
            Watch::Closing { code, .. } => code,
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
            watch: Watch::Listens { heard: scope.now() },
            mode: Mode::Messages,
            is_held: false,
            is_dropped: false,
            owes_flushed: false,
            yields: false,
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
        WebSocket { handler, incoming, link }.go_on(transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        if let Watch::Listens { .. } | Watch::Pinged { .. } = self.link.watch {
            self.link.watch = Watch::Listens { heard: scope.now() };
        }
        self.go_on(transport, scope)
    }

    fn bytes_flushed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        self.link.owes_flushed = false;
        if !self.link.is_closing() {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::flushed);
        }
        self.go_on(transport, scope)
    }

    fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        let now = scope.now();
        if self.link.handler_deadline <= now {
            self.link.handler_deadline = Time::NEVER;
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::timeout);
        }
        // Each byte of a frame that is not complete shows that the peer is alive.
        let unread = transport.input.len();
        if unread > self.link.unread
            && matches!(self.link.watch, Watch::Listens { .. } | Watch::Pinged { .. })
        {
            self.link.watch = Watch::Listens { heard: now };
        }
        // While no input is taken, the peer cannot be heard.
        let listens = self.link.takes_input(transport.output) && !transport.is_input_held();
        let config = &self.link.config;
        match self.link.watch {
            Watch::Listens { heard } if heard + config.ping_after <= now => {
                self.link.watch = if listens {
                    self.link.outgoing.ping(&[], transport.output);
                    Watch::Pinged { at: now }
                } else {
                    Watch::Listens { heard: now }
                };
            }
            Watch::Pinged { at } if at + config.pong_within <= now => {
                if listens {
                    return self.end(Cause::PongTimeout, None, transport, scope);
                }
                self.link.watch = Watch::Pinged { at: now };
            }
            Watch::Closing { until, .. } if until <= now => {
                return self.end(Cause::CloseTimeout, None, transport, scope);
            }
            Watch::Ended { until } if until <= now => return Intent::done(),
            _ => {}
        }
        self.go_on(transport, scope)
    }

    fn wakeup(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Intent<Self> {
        self.link.yields = false;
        if !self.link.is_closing() {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, H::wakeup);
        }
        self.go_on(transport, scope)
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
        // Input that has arrived is handled first; a close frame ends that.
        if let Looked::Ends(cause, close) = self.look(transport, scope) {
            return self.end(cause, close, transport, scope);
        }
        if !self.link.is_closing() {
            let output = &mut *transport.output;
            self.link.call(&mut self.handler, output, scope, |handler, out, scope| {
                handler.draining(until, out, scope)
            });
        }
        self.go_on(transport, scope)
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
            return self.go_on(transport, scope);
        }
        log::debug!("machine {}: the peer of a WebSocket is gone: {exception}", scope.token());
        self.lost(scope);
        Intent::done()
    }

    fn fatal(mut self, error: Fatal, scope: &mut Scope<'_, H::Context>) {
        log::debug!("machine {} lost its WebSocket: {}", scope.token(), with_causes(&error));
        self.lost(scope);
    }
}

impl<H: Handler> fmt::Debug for WebSocket<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").field("watch", &self.link.watch).finish_non_exhaustive()
    }
}

impl<H: Handler> fmt::Debug for WebSocketSeed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketSeed").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}
