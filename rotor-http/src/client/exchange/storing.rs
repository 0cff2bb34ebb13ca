//! The storing of a response's body. Received data goes to the [`BodyStorer`], and the handler gets
//! the complete body.

use rotor_body::Progress;
use rotor_stream::Block;

use super::{Exchange, ExchangeFlow};
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::flow::Flow;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::storing::{BodyStorer, StoreLimits};

impl<K: Client> Exchange<K> {
    /// Begins to store the body, if that is the mode for which the handler asks, and the body has
    /// been announced.
    ///
    /// # Errors
    ///
    /// If the body cannot be stored. None of it was taken then.
    pub(super) fn start_storing(
        &mut self,
        mode: RecvMode,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> Result<(), BodyError> {
        let is_new = !self.body.is_requested() && !self.body.awaits_head();
        let Some(wanted) = StoreLimits::of(mode).filter(|_| is_new) else { return Ok(()) };
        let Io { scope, config, .. } = io;
        let announced = self.body.body();
        let (limits, memory) = (&config.limits, config.bodies());
        let storing =
            BodyStorer::begin(wanted, announced, config.spool_ref(), limits, memory, scope)?;
        self.storing = Some(Box::new(storing));
        Ok(())
    }

    /// Holds the body off if the disk must be waited for first.
    pub(super) fn wait_for_disk(&mut self) {
        if let Some(storing) = &mut self.storing {
            storing.is_held_by_handler = false;
            if storing.must_hold() {
                self.body.hold();
            }
        }
    }

    /// Records that the handler wants no more for now.
    pub(super) fn hold_storing(&mut self) {
        if let Some(storing) = &mut self.storing {
            storing.is_held_by_handler = true;
        }
    }

    /// Stores further data, or the end of the body.
    pub(super) fn store(
        &mut self,
        blocks: Vec<Block>,
        is_end: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.add_blocks(blocks, is_end, io.scope);
        self.apply_storing_progress(progress, io)
    }

    /// Looks for progress after a wake-up.
    pub(super) fn poll_storing(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        let Some(storing) = &mut self.storing else { return Flow::Again };
        let progress = storing.poll(io.scope);
        self.apply_storing_progress(progress, io)
    }

    fn apply_storing_progress(
        &mut self,
        progress: Result<Progress, BodyError>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        match progress {
            Ok(Progress::More) => {
                if self.storing.as_ref().is_some_and(|storing| !storing.is_held_by_handler) {
                    self.body.release();
                }
                Flow::Again
            }
            Ok(Progress::Hold) => {
                self.body.hold();
                Flow::Again
            }
            Ok(Progress::Done(body)) => {
                self.storing = None;
                io.transport.set_collecting(false);
                self.call(io, |handler, request, scope| {
                    handler.response_stored(body, request, scope)
                })
            }
            Err(error) => Flow::Fail(ClientError::from_body_error(error)),
        }
    }
}
