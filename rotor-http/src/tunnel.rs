//! A stream that continues in another protocol (RFC 8441), or as a tunnel (RFC 9113 §8.5): the same
//! as the upgrade of a connection in HTTP/1.1, on the two buffers of a stream. For servers and
//! clients.
//!
//! ```text
//!   agreed ─▶ Waiting ◀──▶ Again ─▶ Done ─▶ all sent, then END_STREAM ─▶ (none)
//!                │                          input that still arrives is dropped
//!                ├─ failed, panicked, late: RST_STREAM(CANCEL | INTERNAL_ERROR)
//!                └─ RST_STREAM, connection lost: gets what has arrived, then (none)
//! ```
//!
//! If a protocol that holds its input is late because its peer does not take the output, the output
//! is discarded, but the stream stays open until the protocol ends: it still gets its input. Then
//! RST_STREAM(CANCEL) follows, never END_STREAM.

use std::any::type_name;
use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;

use log::Level;
use rotor_core::{BoxError, Panicked, Scope, Time, with_causes};
use rotor_stream::{
    Buf, Fatal, Layered, LayeredResult, Output, Protocol, StreamConfig, StreamError,
};

use crate::h2::ErrorCode;

/// Another protocol on a stream.
pub(crate) struct Tunnel<P> {
    layered: Layered<P>,
    progress: Progress,
    /// Whether the protocol was told of a drain, which happens once.
    is_draining: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The protocol waits for something to happen.
    Waiting,
    /// There is more to do once others had their turn.
    Again,
    /// The protocol is done; the rest of its output must be sent.
    Done,
}

/// An event for the protocol.
pub(crate) enum Event {
    /// More input has arrived, or more output was taken.
    Pass,
    /// The peer sends no more.
    InputEnded {
        /// Whether the peer did not end its stream.
        is_truncated: bool,
    },
    Wakeup,
    /// The loop drains, until this time.
    Draining(Time),
    /// The time that [`wake_time`](Tunnel::wake_time) has returned has come.
    Due,
    /// The stream was reset, or its connection was lost. If the protocol goes on, it holds back
    /// what had arrived before. It still gets its wake-ups, drains and deadlines.
    Reset,
}

/// A drain of which the tunnels of a connection have not been told yet. Their protocols may end when
/// they are told, so they first get what had arrived before the drain.
#[derive(Clone, Copy)]
pub(crate) struct PendingDrain {
    pub(crate) until: Time,
    /// How many bytes of the connection's input had arrived before it, and were not handled yet.
    pub(crate) unread: usize,
}

impl PendingDrain {
    /// Called when this many bytes of the input were handled. Returns whether the tunnels are to be
    /// told now: nothing is left of the input before the drain, or not a whole frame
    /// (`is_rest_partial`).
    pub(crate) fn is_due(
        pending: &mut Option<PendingDrain>,
        handled: usize,
        is_rest_partial: bool,
    ) -> bool {
        let Some(drain) = pending else { return false };
        drain.unread = drain.unread.saturating_sub(handled);
        drain.unread == 0 || is_rest_partial
    }
}

impl<P: Protocol> Tunnel<P> {
    /// Starts the protocol with the input so far. Called in the scope of the stream's part.
    /// `is_draining` is set if only the connection is to end, which the loop does not know.
    ///
    /// # Errors
    ///
    /// The code with which the stream must be reset.
    pub(crate) fn start(
        seed: P::Seed,
        input: Buf,
        is_secure: bool,
        within: &Arc<StreamConfig>,
        is_draining: bool,
        scope: &mut Scope<'_, P::Context>,
    ) -> Result<Box<Tunnel<P>>, ErrorCode> {
        let started = scope.guard(|scope| Layered::begin(seed, input, is_secure, within, scope));
        let (layered, ran) = started.map_err(|panicked| log_panic::<P>(&panicked))?;
        let mut tunnel =
            Box::new(Tunnel { layered, progress: Progress::Waiting, is_draining: false });
        tunnel.record_progress(ran, scope)?;
        let now = is_draining.then(|| scope.now());
        if let Some(until) = scope.draining_until().or(now) {
            // The tunnel did not exist yet when the others were told.
            tunnel.notify(Event::Draining(until), scope)?;
        }
        Ok(tunnel)
    }

    /// Tells the protocol of an event. Called in the scope of the stream's part.
    ///
    /// # Errors
    ///
    /// The tunnel has ended and must be dropped; the stream must be reset with this code.
    pub(crate) fn notify(
        &mut self,
        event: Event,
        scope: &mut Scope<'_, P::Context>,
    ) -> Result<(), ErrorCode> {
        if let Event::Draining(_) = event
            && std::mem::replace(&mut self.is_draining, true)
        {
            return Ok(());
        }
        let (layered, is_again) = (&mut self.layered, self.progress == Progress::Again);
        let ran = scope.guard(|scope| match event {
            Event::Pass => layered.pass(scope),
            Event::InputEnded { is_truncated } => layered.input_ended(is_truncated, scope),
            Event::Wakeup => layered.wakeup(scope),
            Event::Draining(until) => layered.draining(until, scope),
            Event::Due => match layered.timeout(scope) {
                LayeredResult::Waits if is_again => layered.pass(scope),
                ran => ran,
            },
            Event::Reset => layered.reset(scope),
        });
        let ran = ran.map_err(|panicked| log_panic::<P>(&panicked))?;
        self.record_progress(ran, scope)
    }

    /// Ends the protocol at once. This is the last call, in the scope of the stream's part.
    /// [`Event::Reset`] delivers what has arrived.
    pub(crate) fn lost(self, scope: &mut Scope<'_, P::Context>) {
        let error = Fatal::Reset(ErrorKind::ConnectionAborted.into());
        let lost = scope.guard(|scope| self.layered.lost(error, scope));
        if let Err(panicked) = lost {
            log_panic::<P>(&panicked);
        }
    }

    fn record_progress(
        &mut self,
        ran: LayeredResult,
        scope: &Scope<'_, P::Context>,
    ) -> Result<(), ErrorCode> {
        self.progress = match ran {
            LayeredResult::Waits => Progress::Waiting,
            LayeredResult::Again => Progress::Again,
            LayeredResult::Done => Progress::Done,
            LayeredResult::Failed(error) => {
                log_failure(error, scope);
                // RFC 8441 §5: CANCEL corresponds to the reset of a TCP connection.
                return Err(ErrorCode::Cancel);
            }
        };
        Ok(())
    }

    /// Returns when [`Event::Due`] must be passed.
    pub(crate) fn wake_time(&self, now: Time) -> Time {
        if self.progress == Progress::Again { now } else { self.layered.deadline() }
    }

    /// Gives the peer time until then, because other streams go first.
    pub(crate) fn exempt_until(&mut self, until: Time) {
        self.layered.excuse(until);
    }

    /// Returns the protocol, for its description.
    pub(crate) fn layered(&self) -> &Layered<P> {
        &self.layered
    }

    /// Returns the output that waits to be sent.
    pub(crate) fn output(&mut self) -> &mut Output {
        self.layered.output()
    }

    /// Sets whether the connection takes no input now. Call this before
    /// [`notify`](Tunnel::notify).
    pub(crate) fn set_input_held(&mut self, yes: bool) {
        self.layered.set_input_held(yes);
    }

    /// Adds input; call `notify` with [`Event::Pass`] or the end afterwards.
    pub(crate) fn extend(&mut self, data: &[u8]) {
        // Otherwise nobody would read it.
        if !self.is_done() {
            self.layered.input().extend(data);
        }
    }

    /// Returns whether the protocol is done.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// Returns whether nothing will follow the output that waits.
    pub(crate) fn has_ended_output(&mut self) -> bool {
        self.is_done() || self.layered.output().is_ended()
    }

    /// Returns how many bytes of the input still occupy the windows. If the protocol waits for more
    /// input, it is 0, however long the input is: the protocol's own limit applies then. If only
    /// the protocol's share of the event is used up, the input may contain many times what it waits
    /// for.
    pub(crate) fn unreleased_bytes(&mut self) -> usize {
        let waits_for_more = self.progress == Progress::Waiting && self.layered.wants_input();
        if waits_for_more { 0 } else { self.layered.input().len() }
    }
}

fn log_panic<P>(panicked: &Panicked) -> ErrorCode {
    log::error!("the protocol {} on a stream {panicked}", type_name::<P>());
    ErrorCode::InternalError
}

fn log_failure<C>(error: Option<BoxError>, scope: &Scope<'_, C>) {
    if let Some(error) = error {
        let (level, error) = (log_level(&*error), with_causes(&*error));
        log::log!(level, "machine {}: a protocol on a stream has failed: {error}", scope.token());
    }
}

/// A failure that a client can cause on any number of streams is not an error of ours.
fn log_level(error: &(dyn Error + 'static)) -> Level {
    match error.downcast_ref::<StreamError>() {
        Some(error) if error.is_peer_fault() => Level::Debug,
        _ => Level::Error,
    }
}

#[cfg(test)]
mod tests {
    use rotor_stream::Exception;

    use super::*;

    #[test]
    fn failures_caused_by_the_peer_are_logged_at_debug_level() {
        let socket = || std::io::Error::from(ErrorKind::Other);
        for (error, level) in [
            (BoxError::from(StreamError::Exception(Exception::EndOfStream)), Level::Debug),
            (StreamError::Exception(Exception::Limit(1)).into(), Level::Debug),
            (StreamError::Timeout("p").into(), Level::Debug),
            (StreamError::Behind("p").into(), Level::Debug),
            (StreamError::NoProgress("p", "bytes").into(), Level::Error),
            (StreamError::Socket(socket()).into(), Level::Error),
            (socket().into(), Level::Error),
            ("as it says".into(), Level::Error),
        ] {
            assert_eq!(log_level(&*error), level, "{error:?}");
        }
    }
}
