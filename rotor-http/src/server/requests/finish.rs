//! The end of an exchange: was its response complete, and can another request follow?

use std::any::type_name;

use super::{CutOff, Requests, Served, State};
use crate::body_receiver::BodyReceiver;
use crate::flow::Flow;
use crate::h1::response::Ending;
use crate::semantics::status::Status;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::handler::UpgradeSeed;
use crate::server::io::Io;
use crate::server::outgoing::Outgoing;
use crate::server::unwanted::{Announced, Rest};

impl<S: Server> Requests<S> {
    /// The handler is done: was its response complete, and can another request follow?
    #[inline(never)]
    pub(super) fn finish(
        &mut self,
        outgoing: &mut Outgoing,
        announced: Announced,
        body: &mut BodyReceiver,
        upgrade: Option<UpgradeSeed<S>>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Served<S> {
        let ending = outgoing.state.ending();
        match (ending, upgrade) {
            // The rule; all others cost the connection.
            (Ending::KeepAlive, None) => {}
            // Nothing of the body is left: before its end no switch was allowed.
            (Ending::Switch, Some(seed)) => {
                outgoing.end(io.scope, io.config);
                return Flow::Done(Some(seed));
            }
            (ending, upgrade) => {
                let limits = io.config.limits_ref();
                // The response has `close` because of such a body, so it is counted here.
                let is_left = body.is_unasked() && announced.is_too_long(limits);
                return self.finish_oddly(outgoing, is_left, ending, upgrade.is_some(), io);
            }
        }
        outgoing.end(io.scope, io.config);
        match announced.rest(body, io.scope.now(), io.config) {
            Rest::Nothing => Flow::Again,
            Rest::Unwanted(unwanted) => {
                // The body may have been collected until now.
                io.transport.set_collecting(false);
                self.state = State::Unwanted(unwanted);
                Flow::Again
            }
            Rest::TooMuch => {
                Counters::add(&io.config.count().undrained);
                Flow::Done(None)
            }
        }
    }

    /// The handler is done, and so is the connection; `is_left` says of a body that is not read
    /// because it is too long.
    #[cold]
    fn finish_oddly(
        &mut self,
        outgoing: &mut Outgoing,
        is_left: bool,
        ending: Ending,
        wants_upgrade: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Served<S> {
        if matches!(ending, Ending::Unstarted | Ending::Unfinished) {
            Counters::add(&io.config.count().unfinished);
            log::error!("{} finished without a complete response", type_name::<S>());
            return self.fail(outgoing, Status::INTERNAL_SERVER_ERROR, io);
        }
        // One side expects another protocol and the other does not: what either sends next would
        // mean nothing to the other.
        if wants_upgrade != (ending == Ending::Switch) {
            log::error!(
                "{}: `Next::upgrade` and a status that switches belong together",
                type_name::<S>()
            );
        }
        if is_left {
            Counters::add(&io.config.count().undrained);
        }
        outgoing.end(io.scope, io.config);
        Flow::Done(None)
    }

    /// The handler is gone, or has not answered: an error page if that is still possible, then the
    /// end.
    ///
    /// RFC 9112 §8: a response without chunks and without a length "is considered complete
    /// regardless of the number of message body octets received". So one that broke off ends by a
    /// reset; a peer that can count hears the end, behind all that there is.
    #[cold]
    pub(super) fn fail(
        &mut self,
        outgoing: &mut Outgoing,
        status: Status,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Served<S> {
        outgoing.error_page::<S>(status, None, io);
        outgoing.end(io.scope, io.config);
        if outgoing.state.would_seem_complete() { Flow::Fail(CutOff) } else { Flow::Done(None) }
    }
}
