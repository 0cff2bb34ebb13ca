//! Receiving a body, and passing it to the handler.

use super::{Exchange, ExchangeFlow, Handler};
use crate::body_receiver::{Part, ReceiveOutcome};
use crate::flow::Flow;
use crate::semantics::trailers::Trailers;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::server::request_event::RequestEvent;

impl<S: Server> Exchange<S> {
    /// Decodes what has arrived of the body, and passes it to the handler.
    pub(in crate::server) fn receive(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        let config = io.config;
        let received = self.body.next(io.transport.input, config.limits_ref(), config.bodies());
        match received {
            Err(error) => self.fail(error, io),
            Ok(ReceiveOutcome::Again) => Flow::Again,
            Ok(ReceiveOutcome::Wait(input)) => Flow::Wait(self.wait(input, io)),
            Ok(ReceiveOutcome::Whole(part)) => {
                // Before the call, because the handler may switch protocols in it (RFC 9110 §7.8).
                self.outgoing.request_ended();
                io.transport.set_collecting(false);
                self.renew_deadline(io);
                self.call_with_part(part, io, |handler, bytes, response, scope| {
                    handler.handle(RequestEvent::Received(bytes), response, scope)
                })
            }
            #[cfg(feature = "body")]
            Ok(ReceiveOutcome::Piece(_, trailers)) if self.storing.is_some() => {
                self.store(Vec::new(), trailers.as_ref(), io)
            }
            #[cfg(feature = "body")]
            Ok(ReceiveOutcome::Block(block, trailers)) if self.storing.is_some() => {
                self.store(vec![block], trailers.as_ref(), io)
            }
            #[cfg(feature = "body")]
            Ok(ReceiveOutcome::Blocks(blocks, trailers)) => {
                self.store(blocks, trailers.as_ref(), io)
            }
            Ok(ReceiveOutcome::Piece(part, trailers)) => {
                self.renew_deadline(io);
                // Before the last piece is handed over, because a handler may switch protocols in
                // that call.
                self.record_request_end(trailers.as_ref());
                let flow = match part {
                    // Only the end has arrived, and it has a call of its own.
                    Part::Nothing => Flow::Again,
                    part => self.call_with_part(part, io, |handler, bytes, response, scope| {
                        handler.handle(RequestEvent::Chunk(bytes), response, scope)
                    }),
                };
                // If the handler finished on the last piece, it is gone, and the end is not
                // reported.
                flow.on_again(|| self.notify_body_end(trailers, io))
            }
            Ok(ReceiveOutcome::Block(block, trailers)) => {
                self.renew_deadline(io);
                self.record_request_end(trailers.as_ref());
                let flow = self.notify(RequestEvent::Block(block), io);
                flow.on_again(|| self.notify_body_end(trailers, io))
            }
        }
    }

    /// Allows a switch of protocols, if the request asked for one, once the whole request has
    /// arrived.
    pub(super) fn record_request_end(&mut self, trailers: Option<&Trailers>) {
        if trailers.is_some() {
            self.outgoing.request_ended();
        }
    }

    /// Reports the end of the body, if it has arrived: now, or once nothing waits in the handler's
    /// place any more.
    pub(super) fn notify_body_end(
        &mut self,
        trailers: Option<Trailers>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        let Some(trailers) = trailers else { return Flow::Again };
        if let Some(Handler::Pending(_)) = self.handler {
            self.body.set_pending_end(trailers);
            return Flow::Again;
        }
        self.notify(RequestEvent::End(&trailers), io)
    }

    /// Returns whether the body is kept in memory until it is complete. Such a body is read in few,
    /// large steps.
    pub(in crate::server) fn is_collecting(&self) -> bool {
        #[cfg(feature = "body")]
        if let Some(storing) = &self.storing {
            return storing.is_collecting();
        }
        self.body.is_collecting()
    }
}
