//! `Child`: one stream, with its request, its body, and its response.

use std::time::Duration;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Buf, Output, Transport};

use crate::flow::Wait;
use crate::h1::response::{Ending, ResponseState};
use crate::h2::request::StreamPurpose;
use crate::h2::{
    ErrorCode, Intake, Priority, ReceiveWindow, SendWindow, StreamState, Turn, WindowWatch,
};
use crate::limits::Limits;
use crate::semantics::status::Status;
use crate::server::config::ServerConfig;
use crate::server::exchange::Exchange;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::Tunnel;

/// A stream. It has an exchange as on HTTP/1.1, with an input and an output of its own.
pub(super) struct Child<S: Server> {
    pub(super) id: u32,
    pub(super) state: StreamState,
    /// Absent once the handler is done and only the rest of the response is to be sent. Not boxed,
    /// so that a waiting stream is one allocation.
    pub(super) exchange: Option<Exchange<S>>,
    /// The protocol of the stream, once it has switched.
    pub(super) tunnel: Option<Box<Tunnel<S::Upgrade>>>,
    /// Whether the request asks for a response, a tunnel or a protocol.
    pub(super) purpose: StreamPurpose,
    /// The code with which the stream is reset if its response is incomplete.
    pub(super) code: ErrorCode,
    /// The state of the response, once the handler is done.
    pub(super) ending: Ending,
    /// Bytes of the trailers, which are the last in the output.
    pub(super) trailers_len: u32,
    /// Bytes of the body that have arrived and were not passed on.
    pub(super) input: Buf,
    /// The response. Its fields are text, and are encoded only when they are sent, so that the
    /// response can be taken back until then.
    pub(super) output: Output,
    pub(super) has_sent_head: bool,
    pub(super) priority: Priority,
    /// Whether the child is in the schedule.
    pub(super) is_scheduled: bool,
    pub(super) turn: Turn,
    pub(super) intake: Intake,
    pub(super) outbound: SendWindow,
    /// Memory of the output, as it was last counted.
    pub(super) held_output: usize,
    /// Bytes of a body that is collected for its handler, as they were last counted.
    pub(super) collected: usize,
    /// Whether its window is not opened, because of other bodies.
    pub(super) is_held_back: bool,
    /// For how long the body was exempted because others of its connection were arriving, and how
    /// much of it had arrived when that began. Boxed, because few bodies are late.
    pub(super) exemption: Option<Box<(Duration, u64)>>,
    /// The number of unsent bytes that the exchange waits for, if it waits for that.
    pub(super) flush_left: Option<u32>,
    /// The time until which it waits; `NEVER` for none.
    pub(super) until: Time,
    /// How fast the peer takes the response, while its windows hold it up.
    pub(super) send_watch: WindowWatch,
}

impl<S: Server> Child<S> {
    /// Calls the exchange, if there is one, in the scope of this stream's part.
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

    /// Returns the state of the response, while a handler writes it.
    fn response_state(&self) -> Option<&ResponseState> {
        self.exchange.as_ref().map(|exchange| &exchange.outgoing.state)
    }

    /// Returns how the response would end if nothing more were written.
    pub(super) fn ending(&self) -> Ending {
        self.response_state().map_or(self.ending, ResponseState::ending)
    }

    /// Returns whether the fields of the response are written.
    pub(super) fn is_head_done(&self) -> bool {
        let was_complete =
            || matches!(self.ending, Ending::KeepAlive | Ending::Close | Ending::Switch);
        self.response_state().map_or_else(was_complete, ResponseState::is_head_done)
    }

    /// Returns the length of the trailers, which are written last.
    pub(super) fn trailers_len(&self) -> usize {
        self.response_state().map_or(self.trailers_len as usize, ResponseState::trailers_len)
    }

    /// Returns whether everything that is to be sent is written.
    pub(super) fn is_complete(&mut self) -> bool {
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.has_ended_output();
        }
        matches!(self.ending(), Ending::KeepAlive | Ending::Close)
    }

    /// Returns whether further input is not wanted any more.
    pub(super) fn ignores_input(&self) -> bool {
        self.exchange.is_none() && self.tunnel.as_ref().is_none_or(|tunnel| tunnel.is_done())
    }

    /// Returns whether the handler responds with a page although another protocol was asked for.
    /// The peer would take the page for the beginning of that protocol.
    pub(super) fn is_page_for_protocol(&self) -> bool {
        let status = || self.response_state().and_then(ResponseState::final_status);
        self.purpose == StreamPurpose::Protocol && status().is_some_and(Status::is_success)
    }

    /// Returns how many bytes of the input still count against the windows.
    pub(super) fn unconsumed_len(&mut self) -> usize {
        match &mut self.tunnel {
            Some(tunnel) => tunnel.unreleased_bytes(),
            None => self.input.len(),
        }
    }

    /// Gives back to the windows what was read from the input.
    pub(super) fn release(&mut self, connection: &mut ReceiveWindow) {
        let is_wanted = self.exchange.as_ref().is_some_and(|exchange| exchange.body.is_receiving());
        let unconsumed = self.unconsumed_len();
        self.intake.release(unconsumed, is_wanted, connection);
    }

    /// Returns how many bytes of a body are kept until it is complete.
    pub(super) fn collecting_len(&self) -> usize {
        let is_collecting = self.exchange.as_ref().is_some_and(|exchange| exchange.is_collecting());
        if is_collecting {
            usize::try_from(self.intake.received()).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// Returns whether a body is being collected and not complete yet.
    pub(super) fn is_being_collected(&self) -> bool {
        self.collected > 0 && self.state.is_receiving()
    }

    /// Returns how many bytes of the body wait after the head.
    pub(super) fn unsent_body_len(&mut self) -> usize {
        if !self.has_sent_head {
            return 0;
        }
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.output().len();
        }
        self.output.len().saturating_sub(self.trailers_len())
    }

    /// Returns the output with what follows the head, and the window for it.
    pub(super) fn body_and_window(&mut self) -> (&mut Output, &mut SendWindow) {
        let body = match &mut self.tunnel {
            Some(tunnel) => tunnel.output(),
            None => &mut self.output,
        };
        (body, &mut self.outbound)
    }

    /// Called when the handler is done.
    pub(super) fn end_exchange(&mut self) {
        self.ending = self.ending();
        // The limits keep trailers far smaller than this.
        self.trailers_len = u32::try_from(self.trailers_len()).unwrap_or(u32::MAX);
        self.exchange = None;
        self.until = Time::NEVER;
    }

    /// Returns the time until which its body may be late if other bodies of its connection keep
    /// arriving until `others`. This is no longer than a handler may take, unless a part of the
    /// body has arrived in the meantime.
    pub(super) fn exempt(&mut self, others: Time, limits: &Limits, now: Time) -> Time {
        let (exempted, since) = self.exemption.as_deref().copied().unwrap_or_default();
        let received = self.intake.received();
        let has_progressed = received - since >= limits.body_step().0;
        let left = match has_progressed {
            true => limits.handler_timeout,
            false => limits.handler_timeout.saturating_sub(exempted),
        };
        let until = others.min(now + left);
        self.exemption = Some(Box::new(match has_progressed {
            true => (until - now, received),
            false => (exempted + (until - now), since),
        }));
        until
    }

    /// Sets what the exchange waits for.
    pub(super) fn set_wait(&mut self, wait: Wait) {
        // No output has so many unsent bytes.
        self.flush_left = wait.flush_left().map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        match wait.deadline() {
            Deadline::Keep => {}
            Deadline::Never => self.until = Time::NEVER,
            Deadline::At(time) => self.until = time,
        }
    }

    /// Returns whether the handler is to be told that there is room again.
    pub(super) fn is_flushed(&self) -> bool {
        self.exchange.is_some()
            && self.flush_left.is_some_and(|left| self.output.len() <= left as usize)
    }

    /// Returns its earliest deadline of any kind.
    pub(super) fn deadline(&self) -> Time {
        self.until.min(self.send_watch.until())
    }
}
