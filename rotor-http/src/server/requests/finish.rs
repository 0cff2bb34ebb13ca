//! The end of an exchange: whether its response is complete, and whether another request can
//! follow.

use std::any::type_name;

use super::{Requests, RequestsFlow, State, TruncatedResponse};
use crate::body_receiver::BodyReceiver;
use crate::flow::Flow;
use crate::h1::response::Ending;
use crate::semantics::status::Status;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::handler::UpgradeSeed;
use crate::server::io::Io;
use crate::server::outgoing::Outgoing;
use crate::server::unwanted::{AnnouncedBody, BodyRest};

impl<S: Server> Requests<S> {
    /// Called when the handler is done: checks whether its response is complete, and whether
    /// another request can follow.
    #[inline(never)]
    pub(super) fn finish(
        &mut self,
        outgoing: &mut Outgoing,
        announced: AnnouncedBody,
        body: &mut BodyReceiver,
        upgrade: Option<UpgradeSeed<S>>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        let ending = outgoing.state.ending();
        match (ending, upgrade) {
            // The usual case; all others end the connection.
            (Ending::KeepAlive, None) => {}
            // Nothing of the body is left: no switch was allowed before its end.
            (Ending::Switch, Some(seed)) => {
                outgoing.end(io.scope, io.config);
                return Flow::Done(Some(seed));
            }
            (ending, upgrade) => {
                let limits = io.config.limits_ref();
                // The response has `Connection: close` because of such a body, so the body is
                // counted here.
                let is_left = body.is_unrequested() && announced.is_too_long(limits);
                return self.finish_and_close(outgoing, is_left, ending, upgrade.is_some(), io);
            }
        }
        outgoing.end(io.scope, io.config);
        match announced.rest(body, io.config) {
            BodyRest::Nothing => Flow::Again,
            BodyRest::Unwanted(unwanted) => {
                // The body may have been collected until now.
                io.transport.set_collecting(false);
                self.state = State::Unwanted(unwanted);
                Flow::Again
            }
            BodyRest::TooMuch => {
                Counters::add(&io.config.counters_ref().undrained);
                Flow::Done(None)
            }
        }
    }

    /// Ends the connection after a handler that is done. `is_left` is set if its body is not read
    /// because it is too long.
    #[cold]
    fn finish_and_close(
        &mut self,
        outgoing: &mut Outgoing,
        is_left: bool,
        ending: Ending,
        wants_upgrade: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        if matches!(ending, Ending::Unstarted | Ending::Unfinished) {
            Counters::add(&io.config.counters_ref().unfinished);
            log::error!("{} finished without a complete response", type_name::<S>());
            return self.fail(outgoing, Status::INTERNAL_SERVER_ERROR, io);
        }
        // One side would speak another protocol and the other would not: neither would understand
        // the other.
        if wants_upgrade != (ending == Ending::Switch) {
            log::error!(
                "{}: `Next::upgrade` and a status that switches belong together",
                type_name::<S>()
            );
        }
        if is_left {
            Counters::add(&io.config.counters_ref().undrained);
        }
        outgoing.end(io.scope, io.config);
        Flow::Done(None)
    }

    /// Called when the handler has failed or has not responded: sends an error page if that is
    /// still possible, and ends the connection.
    ///
    /// RFC 9112 §8: a response without chunks and without a length "is considered complete
    /// regardless of the number of message body octets received". So a connection whose response of
    /// this kind is incomplete is reset. In all other cases the peer can tell from the framing
    /// whether the response is complete, and the connection is closed after what was written.
    #[cold]
    pub(super) fn fail(
        &mut self,
        outgoing: &mut Outgoing,
        status: Status,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        outgoing.error_page::<S>(status, io);
        outgoing.end(io.scope, io.config);
        if outgoing.state.appears_complete_at_close() {
            Flow::Fail(TruncatedResponse)
        } else {
            Flow::Done(None)
        }
    }
}
