//! A body that is stored for its handler: its parts go to the [`BodyStorer`], and the handler gets
//! the body when it is complete.
//!
//! ```text
//!   recv(Stored) ─▶ begin ─▶ (the file is open) ─▶ 100 ─▶ store.. ─▶ (all is written) ─▶ request_stored
//!                                                          ▲  │ hold
//!                                                          └──┘ wake-up
//! ```

use rotor_body::Progress;
use rotor_stream::Block;

use super::{Exchange, ExchangeFlow};
use crate::flow::Flow;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::server::request_event::RequestEvent;
use crate::storing::{BodyStorer, StoreLimits};

impl<S: Server> Exchange<S> {
    /// Begins to store the body, if the handler asks for it in this mode.
    ///
    /// # Errors
    ///
    /// The body cannot be stored; nothing of it was read.
    pub(super) fn start_storing(
        &mut self,
        mode: RecvMode,
        io: &Io<'_, '_, '_, S::Context>,
    ) -> Result<(), BodyError> {
        let Some(wanted) = StoreLimits::of(mode).filter(|_| !self.body.is_requested()) else {
            return Ok(());
        };
        let Io { scope, config, .. } = io;
        let (limits, memory) = (config.limits_ref(), config.bodies());
        let announced = self.body.body();
        let storing =
            BodyStorer::begin(wanted, announced, config.spool_ref(), limits, memory, scope)?;
        self.storing = Some(Box::new(storing));
        Ok(())
    }

    /// Called when the body was requested. Returns whether the peer is to be sent `100 Continue`;
    /// `None` if the disk is not ready yet, in which case that is sent later.
    pub(super) fn request_storing(&mut self, is_continue_pending: bool) -> Option<bool> {
        let Some(storing) = &mut self.storing else { return Some(is_continue_pending) };
        storing.is_held_by_handler = false;
        storing.is_continue_pending |= is_continue_pending;
        if !storing.must_hold() {
            // The disk may have become ready while the handler held the body. Then `100 Continue`
            // has still to be sent.
            return Some(std::mem::take(&mut storing.is_continue_pending));
        }
        self.body.hold();
        None
    }

    /// Called when the handler holds the body.
    pub(super) fn hold_storing(&mut self) {
        if let Some(storing) = &mut self.storing {
            storing.is_held_by_handler = true;
        }
    }

    /// Called when more of the body has arrived, or its end.
    pub(super) fn store(
        &mut self,
        blocks: Vec<Block>,
        trailers: Option<&Trailers>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        self.renew_deadline(io);
        self.record_request_end(trailers);
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.add_blocks(blocks, trailers.is_some(), io.scope);
        self.apply_storing_progress(progress, io)
    }

    /// Called when the connection was woken.
    pub(super) fn poll_storing(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.poll(io.scope);
        self.apply_storing_progress(progress, io)
    }

    fn apply_storing_progress(
        &mut self,
        progress: Result<Progress, BodyError>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        match progress {
            Ok(Progress::More) => {
                self.continue_storing(io);
                Flow::Again
            }
            Ok(Progress::Hold) => {
                self.body.hold();
                Flow::Again
            }
            Ok(Progress::Done(body)) => {
                self.storing = None;
                io.transport.set_collecting(false);
                self.renew_deadline(io);
                self.notify(RequestEvent::Stored(body), io)
            }
            Err(error) => self.fail(error, io),
        }
    }

    /// Goes on once the disk is ready for more.
    fn continue_storing(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        let Some(storing) = &mut self.storing else { return };
        if storing.is_held_by_handler {
            return;
        }
        let is_continue_pending = std::mem::take(&mut storing.is_continue_pending);
        if self.body.is_held() {
            // The handler has made progress, so its time begins anew.
            self.renew_deadline(io);
            self.body.release();
        }
        if is_continue_pending {
            self.send_continue(io);
        }
    }
}
