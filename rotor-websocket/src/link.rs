//! `Link`: the output of a connection, its timeouts, and the requests of its handler.

use std::sync::Arc;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Output, Transport};

use crate::close_watch::CloseWatch;
use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::frame::code::Code;
use crate::frame::fault::Fault;
use crate::handler::Handler;
use crate::message::Kind;
use crate::next::{self, Mode, Next};
use crate::outgoing::Outgoing;
use crate::ping_watch::PingWatch;
use crate::sender::Sender;

/// Everything of a connection except its input and its handler.
pub(crate) struct Link {
    pub(crate) outgoing: Outgoing,
    pub(crate) config: Arc<WebSocketConfig>,
    pub(crate) handler_deadline: Time,
    pub(crate) watch: WatchState,
    /// How messages that begin now are handed over.
    pub(crate) mode: Mode,
    /// The handler wants no messages for now.
    pub(crate) is_held: bool,
    /// The handler has dropped the connection.
    pub(crate) is_dropped: bool,
    /// So much output is unsent that the handler is to be told when there is room.
    pub(crate) is_flushed_pending: bool,
    /// There is more to do, but it has to wait for the next turn.
    pub(crate) has_yielded: bool,
    /// A drain that the handler has not been told of yet.
    pub(crate) drain: Option<PendingDrain>,
    /// How many bytes were in the input when it was last checked.
    pub(crate) unread: usize,
    /// How many messages the handler was given.
    pub(crate) messages: u64,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchState {
    /// Waits for input; the peer may be silent for a while, since then.
    Listening { last_heard: Time },
    /// Waits for input after a ping was written.
    Pinged { watch: PingWatch },
    /// A close frame with this code was written; waits for the peer's.
    Closing { code: Code, watch: CloseWatch },
    /// Both sides have written a close frame; waits for the server to end the connection.
    Ended { watch: CloseWatch },
}

/// A drain of which the handler is told after the input that had arrived before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingDrain {
    pub(crate) until: Time,
    /// How many bytes of that input have not been handled yet.
    pub(crate) unread: usize,
}

impl Link {
    /// Calls the handler, and applies its answer.
    pub(crate) fn call<H: Handler>(
        &mut self,
        handler: &mut Option<H>,
        output: &mut Output,
        scope: &mut Scope<'_, H::Context>,
        call: impl FnOnce(H, &mut Sender<'_>, &mut Scope<'_, H::Context>) -> Next<H>,
    ) {
        let forwarded = self.call_with_input(&[], handler, output, scope, call);
        debug_assert!(forwarded.is_none(), "nothing was given");
    }

    /// Calls a handler that is given these bytes of the input. Returns the kind as which they are
    /// to be passed on, if they are.
    #[must_use]
    pub(crate) fn call_with_input<H: Handler>(
        &mut self,
        given: &[u8],
        handler: &mut Option<H>,
        output: &mut Output,
        scope: &mut Scope<'_, H::Context>,
        call: impl FnOnce(H, &mut Sender<'_>, &mut Scope<'_, H::Context>) -> Next<H>,
    ) -> Option<Kind> {
        let called = handler.take()?;
        let mut sender = Sender::new(&mut self.outgoing, output, &self.config).with_input(given);
        let next = call(called, &mut sender, scope);
        if let next::Step::Close(..) = next.step {
            // The close frame has to follow the message.
            sender.copy_forwarded();
        }
        let forwarded = sender.forwarded();
        *handler = Some(next.handler);
        match next.deadline {
            Deadline::Keep => {}
            Deadline::Never => self.handler_deadline = Time::NEVER,
            Deadline::At(time) => self.handler_deadline = time,
        }
        match next.step {
            next::Step::Continue => {}
            next::Step::Receive(mode) => (self.mode, self.is_held) = (mode, false),
            next::Step::Hold => self.is_held = true,
            next::Step::Close(code, reason) => self.close(code, &reason, output, scope.now()),
            next::Step::Drop => self.is_dropped = true,
        }
        forwarded
    }

    /// Sends a close frame and waits for the peer's, unless one was sent already.
    pub(crate) fn close(&mut self, code: Code, reason: &str, output: &mut Output, now: Time) {
        if self.is_closing() {
            return;
        }
        let sent = Code::new(code.number()).unwrap_or(Code::NO_STATUS);
        self.outgoing.close(sent, reason, output);
        // Even if the handler holds: only the peer's close frame is waited for.
        self.is_held = false;
        self.handler_deadline = Time::NEVER;
        let watch = CloseWatch::new(self.config.close_within, now);
        self.watch = WatchState::Closing { code: sent, watch };
    }

    /// Returns the watch over the closing handshake, once it has begun.
    pub(crate) fn close_watch(&mut self) -> Option<&mut CloseWatch> {
        match &mut self.watch {
            WatchState::Closing { watch, .. } | WatchState::Ended { watch } => Some(watch),
            WatchState::Listening { .. } | WatchState::Pinged { .. } => None,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.outgoing.is_closing
    }

    /// Returns whether messages are taken; if not, the peer has to wait. On a closing connection
    /// they are discarded, and answers to none of them can add to the output. The stream has a limit
    /// of its own, above which it delivers no input.
    pub(crate) fn accepts_input(&self, output: &Output) -> bool {
        let has_room = output.len() < self.config.unsent_high_water || self.is_closing();
        !self.is_held && !self.has_yielded && has_room
    }

    /// Returns whether input that had arrived before a drain is not handled yet, now that no more is
    /// taken, and that is not because the handler holds it. A message that is being decompressed
    /// (`is_inflating`) is part of that input, though it is not in it any more.
    pub(crate) fn drain_waits_for_room(&self, is_inflating: bool) -> bool {
        !self.is_held && self.drain.is_some_and(|drain| drain.unread > 0 || is_inflating)
    }

    /// Records how many bytes are in the input. If there are more than before, the peer is alive:
    /// each byte of a frame that is not complete shows that.
    pub(crate) fn record_unread(&mut self, unread: usize, now: Time) {
        let has_arrived = unread > std::mem::replace(&mut self.unread, unread);
        if has_arrived
            && matches!(self.watch, WatchState::Listening { .. } | WatchState::Pinged { .. })
        {
            self.watch = WatchState::Listening { last_heard: now };
        }
    }

    /// Sends a ping to a peer that has been silent for too long. Returns whether it has not answered
    /// the last one in time. `listens` says whether it could be heard.
    pub(crate) fn check_silence(
        &mut self,
        listens: bool,
        transport: &mut Transport<'_>,
        now: Time,
    ) -> bool {
        match &mut self.watch {
            WatchState::Listening { last_heard } if *last_heard + self.config.ping_after <= now => {
                self.watch = if listens {
                    let before = transport.unsent_len();
                    self.outgoing.ping(&[], transport.output);
                    let watch = PingWatch::new(before, transport.unsent_len(), now);
                    WatchState::Pinged { watch }
                } else {
                    WatchState::Listening { last_heard: now }
                };
                false
            }
            WatchState::Pinged { watch } if watch.until(self.config.pong_within) <= now => {
                if !listens {
                    watch.restart(now);
                }
                listens
            }
            _ => false,
        }
    }

    /// Called before something is written: records how many bytes are unsent now.
    #[inline]
    pub(crate) fn record_taken(&mut self, unsent: usize, now: Time) {
        if let WatchState::Pinged { watch } = &mut self.watch {
            watch.record_taken(unsent, now);
        }
    }

    /// Returns the state of the connection in a word, for people.
    pub(crate) fn state(&self) -> &'static str {
        match self.watch {
            WatchState::Listening { .. } if self.is_held => "held (WebSocket)",
            WatchState::Listening { .. } => "open (WebSocket)",
            WatchState::Pinged { .. } => "pinged (WebSocket)",
            WatchState::Closing { .. } => "closing (WebSocket)",
            WatchState::Ended { .. } => "ended (WebSocket)",
        }
    }

    pub(crate) fn deadline(&self) -> Time {
        let own = match self.watch {
            WatchState::Listening { last_heard } => last_heard + self.config.ping_after,
            WatchState::Pinged { watch } => watch.until(self.config.pong_within),
            WatchState::Closing { watch, .. } | WatchState::Ended { watch } => watch.until(),
        };
        own.min(self.handler_deadline)
    }

    pub(crate) fn count(&self, count: Count) {
        self.config.counters.count(count);
    }

    pub(crate) fn count_fault(&self, fault: Fault) {
        self.count(match fault {
            Fault::TooLong => Count::too_long,
            Fault::Fragments => Count::too_many_fragments,
            Fault::ControlFlood => Count::control_floods,
            Fault::NotUtf8 | Fault::Deflate => Count::bad_data,
            _ => Count::bad_frames,
        });
    }
}
