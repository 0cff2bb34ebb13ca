//! One stream: a request, its body as it comes, its response as it waits.

use std::time::Duration;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Buf, Output, Transport};

use crate::flow::Wait;
use crate::h1::response::{Ending, ResponseState};
use crate::h2::request::Asks;
use crate::h2::{ErrorCode, Intake, Priority, ReceiveWindow, SendWindow, StreamState, WindowWatch};
use crate::limits::Limits;
use crate::semantics::status::Status;
use crate::server::config::ServerConfig;
use crate::server::exchange::Exchange;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::Tunnel;

/// A stream. What goes on in it is an exchange as on HTTP/1.1, on an input and an output of its
/// own.
pub(super) struct Child<S: Server> {
    pub(super) id: u32,
    pub(super) state: StreamState,
    /// Absent once the handler is done: what is left is to be sent. In place: a stream that waits
    /// is one allocation.
    pub(super) exchange: Option<Exchange<S>>,
    /// What the stream goes on in, once it has switched.
    pub(super) tunnel: Option<Box<Tunnel<S::Upgrade>>>,
    /// What the request asked for.
    pub(super) asks: Asks,
    /// Why the stream is reset where nobody goes on with it.
    pub(super) code: ErrorCode,
    /// How the response is left, once the handler is done.
    pub(super) ending: Ending,
    /// Octets of its trailers, the last of what waits.
    pub(super) trailers_len: u32,
    /// Octets of the body that have come and were not taken.
    pub(super) input: Buf,
    /// The response, as text as far as it is fields: they are encoded when they are sent, so that
    /// it can be taken back until then.
    pub(super) output: Output,
    pub(super) has_sent_head: bool,
    pub(super) priority: Priority,
    /// It is in the schedule.
    pub(super) is_scheduled: bool,
    pub(super) intake: Intake,
    pub(super) outbound: SendWindow,
    /// Memory of the output, as it was last counted.
    pub(super) held_output: usize,
    /// Octets of a body that is collected for its handler, as they were last counted.
    pub(super) collected: usize,
    /// Its window is not opened, for the bodies of others.
    pub(super) is_held_back: bool,
    /// How long it was excused for while others of its connection came, since so much had come. Few
    /// bodies are late.
    pub(super) excused: Option<Box<(Duration, u64)>>,
    /// How few unsent octets the exchange waits for, if it does.
    pub(super) flush_left: Option<u32>,
    /// Until when it waits; `NEVER` for none.
    pub(super) until: Time,
    /// How fast the peer takes the response, while its windows hold that up.
    pub(super) taking: WindowWatch,
}

impl<S: Server> Child<S> {
    /// Calls the exchange, if it is there, in the scope's part of this stream.
    pub(super) fn step<R>(
        &mut self,
        scope: &mut Scope<'_, S::Context>,
        config: &ServerConfig,
        step: impl FnOnce(&mut Exchange<S>, &mut Io<'_, '_, '_, S::Context>) -> R,
    ) -> Option<R> {
        let exchange = self.exchange.as_mut()?;
        let mut transport = Transport::detached(&mut self.input, &mut self.output);
        let mut part = scope.part(self.id);
        let mut io = Io { transport: &mut transport, scope: &mut part, config };
        Some(step(exchange, &mut io))
    }

    /// The response as far as it was written, while there is somebody who writes.
    fn response(&self) -> Option<&ResponseState> {
        self.exchange.as_ref().map(|exchange| &exchange.outgoing.state)
    }

    /// How the response would be left if nothing more were written.
    pub(super) fn ending(&self) -> Ending {
        self.response().map_or(self.ending, ResponseState::ending)
    }

    /// Whether the fields of the response are written.
    pub(super) fn is_head_done(&self) -> bool {
        let is_left_whole =
            || matches!(self.ending, Ending::KeepAlive | Ending::Close | Ending::Switch);
        self.response().map_or_else(is_left_whole, ResponseState::is_head_done)
    }

    /// Octets of the trailers, which are written last.
    pub(super) fn trailers_len(&self) -> usize {
        self.response().map_or(self.trailers_len as usize, ResponseState::trailers_len)
    }

    /// Whether what is sent is written to its end.
    pub(super) fn is_complete(&mut self) -> bool {
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.has_ended_output();
        }
        matches!(self.ending(), Ending::KeepAlive | Ending::Close)
    }

    /// Whether nobody wants what comes any more.
    pub(super) fn is_answered(&self) -> bool {
        self.exchange.is_none() && self.tunnel.as_ref().is_none_or(|tunnel| tunnel.is_done())
    }

    /// Whether a handler answers as if it had been asked for a page, where another protocol was
    /// asked for: the peer would take that for the protocol's beginning.
    pub(super) fn is_mistaken(&self) -> bool {
        let status = || self.response().and_then(ResponseState::final_status);
        self.asks == Asks::Protocol && status().is_some_and(Status::is_success)
    }

    /// Octets of the input that still count against the windows.
    pub(super) fn untaken(&mut self) -> usize {
        match &mut self.tunnel {
            Some(tunnel) => tunnel.untaken(),
            None => self.input.len(),
        }
    }

    /// Gives back to the windows what was taken of the input.
    pub(super) fn release(&mut self, connection: &mut ReceiveWindow) {
        let is_wanted = self.exchange.as_ref().is_some_and(|exchange| exchange.body.is_receiving());
        let untaken = self.untaken();
        self.intake.release(untaken, is_wanted, connection);
    }

    /// Octets of a body that are kept until its handler gets all of it.
    pub(super) fn collected_now(&self) -> usize {
        let is_kept = self.exchange.as_ref().is_some_and(|exchange| exchange.is_collecting());
        if is_kept { usize::try_from(self.intake.received()).unwrap_or(usize::MAX) } else { 0 }
    }

    /// Whether more of a body has to come that is kept until then.
    pub(super) fn is_being_collected(&self) -> bool {
        self.collected > 0 && self.state.is_receiving()
    }

    /// Octets of body that wait, behind the head.
    pub(super) fn body_left(&mut self) -> usize {
        if !self.has_sent_head {
            return 0;
        }
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.output().len();
        }
        self.output.len().saturating_sub(self.trailers_len())
    }

    /// Where what follows the head waits, and the window in which it is sent.
    pub(super) fn body_and_window(&mut self) -> (&mut Output, &mut SendWindow) {
        let body = match &mut self.tunnel {
            Some(tunnel) => tunnel.output(),
            None => &mut self.output,
        };
        (body, &mut self.outbound)
    }

    /// The handler has nothing more to say.
    pub(super) fn end_exchange(&mut self) {
        self.ending = self.ending();
        // The limits keep trailers far smaller than this.
        self.trailers_len = u32::try_from(self.trailers_len()).unwrap_or(u32::MAX);
        self.exchange = None;
        self.until = Time::NEVER;
    }

    /// Until when its body may be late where others of its connection come up to `others`: no
    /// longer than a handler may take, unless a part of it has come.
    pub(super) fn excuse(&mut self, others: Time, limits: &Limits, now: Time) -> Time {
        let (excused, since) = self.excused.as_deref().copied().unwrap_or_default();
        let received = self.intake.received();
        let is_anew = received - since >= limits.body_step().0;
        let left = match is_anew {
            true => limits.handler_timeout,
            false => limits.handler_timeout.saturating_sub(excused),
        };
        let until = others.min(now + left);
        self.excused = Some(Box::new(match is_anew {
            true => (until - now, received),
            false => (excused + (until - now), since),
        }));
        until
    }

    /// The exchange waits.
    pub(super) fn set_wait(&mut self, wait: Wait) {
        // Nobody has so much unsent that it would not fit.
        self.flush_left = wait.flush_left().map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        match wait.deadline() {
            Deadline::Keep => {}
            Deadline::Never => self.until = Time::NEVER,
            Deadline::At(time) => self.until = time,
        }
    }

    /// Whether the handler is to be told that there is room again.
    pub(super) fn is_flushed(&self) -> bool {
        self.exchange.is_some()
            && self.flush_left.is_some_and(|left| self.output.len() <= left as usize)
    }

    /// The first moment at which it is late, in one way or another.
    pub(super) fn deadline(&self) -> Time {
        self.until.min(self.taking.until())
    }
}
