//! A body that is stored for its handler: what comes goes to the [`Storing`], and the handler gets
//! it when all of it is there.
//!
//! ```text
//!   recv(Stored) ─▶ begin ─▶ (the file is open) ─▶ 100 ─▶ came.. ─▶ (all is written) ─▶ request_stored
//!                                                          ▲  │ hold
//!                                                          └──┘ wake-up
//! ```

use rotor_body::Progress;
use rotor_stream::Block;

use super::{Exchange, Exchanged};
use crate::flow::Flow;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::server::request_event::RequestEvent;
use crate::storing::{Storing, Wanted};

impl<S: Server> Exchange<S> {
    /// The handler asks for the body: begins to store it, if that is how it wants it.
    ///
    /// # Errors
    ///
    /// It cannot be stored; nothing of it was taken.
    pub(super) fn begin_storing(
        &mut self,
        mode: RecvMode,
        io: &Io<'_, '_, '_, S::Context>,
    ) -> Result<(), BodyError> {
        let Some(wanted) = Wanted::of(mode).filter(|_| !self.body.is_asked()) else {
            return Ok(());
        };
        let Io { scope, config, .. } = io;
        let (limits, memory) = (config.limits_ref(), config.bodies());
        let announced = self.body.body();
        let storing = Storing::begin(wanted, announced, config.spool_ref(), limits, memory, scope)?;
        self.storing = Some(Box::new(storing));
        Ok(())
    }

    /// The body was asked for. Returns whether the peer is to be told to send; `None` where the
    /// disk has to be waited for first, and it is told when that is done.
    pub(super) fn ask_disk(&mut self, owes_continue: bool) -> Option<bool> {
        let Some(storing) = &mut self.storing else { return Some(owes_continue) };
        storing.is_held_by_handler = false;
        storing.owes_continue |= owes_continue;
        if !storing.holds() {
            // The disk may have become ready while the handler wanted no more. Then `100 Continue`
            // has still to be sent.
            return Some(std::mem::take(&mut storing.owes_continue));
        }
        self.body.hold();
        None
    }

    /// The handler wants no more for now.
    pub(super) fn hold_storing(&mut self) {
        if let Some(storing) = &mut self.storing {
            storing.is_held_by_handler = true;
        }
    }

    /// More has come, or the end of it.
    pub(super) fn store(
        &mut self,
        blocks: Vec<Block>,
        trailers: Option<&Trailers>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Exchanged<S> {
        self.renew_deadline(io);
        self.note_end(trailers);
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.came(blocks, trailers.is_some(), io.scope);
        self.follow_storing(progress, io)
    }

    /// The connection was woken.
    pub(super) fn poll_storing(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Exchanged<S> {
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.poll(io.scope);
        self.follow_storing(progress, io)
    }

    fn follow_storing(
        &mut self,
        progress: Result<Progress, BodyError>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Exchanged<S> {
        match progress {
            Ok(Progress::More) => {
                self.go_on_storing(io);
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
                self.tell(RequestEvent::Stored(body), io)
            }
            Err(error) => self.fail(error, io),
        }
    }

    /// The disk is no longer in the way.
    fn go_on_storing(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        let Some(storing) = &mut self.storing else { return };
        if storing.is_held_by_handler {
            return;
        }
        let owes_continue = std::mem::take(&mut storing.owes_continue);
        if self.body.is_held() {
            // The handler has got further, so its time begins anew.
            self.renew_deadline(io);
            self.body.release();
        }
        // A peer that sends already does not wait (RFC 9110 §10.1.1).
        if owes_continue && io.transport.input.is_empty() {
            self.outgoing.send_continue(io.transport.output);
        }
    }
}
