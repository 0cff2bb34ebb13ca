//! The loss of the connection: what is still delivered, and how the protocol is told.

use std::io::ErrorKind;

use rotor_core::Scope;
use rotor_core::net::StreamSocket;

use super::{Action, OpenProtocol};
use crate::error::{Exception, Fatal};
use crate::least_rate::RateWatch;
use crate::matched::FindResult;
use crate::protocol::Protocol;
use crate::status::ReadSide;
use crate::stream::buffered_io::BufferedIo;
use crate::stream::buffered_io::reading::ReadResult;
use crate::stream::flow::Flow;
use crate::stream::pass::Pass;
use crate::wait_condition::InputCondition;

impl<P: Protocol> OpenProtocol<P> {
    /// Returns what is due on a connection that cannot be written to any more: input, as long as
    /// there is some that the protocol waits for; then the end.
    #[cold]
    pub(super) fn action_after_write_error<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
    ) -> Action {
        // The output will never be taken, and a full one would keep input from being delivered.
        io.output.clear();
        let has_been_told = io.status.read_side == ReadSide::Lost;
        if self.wait.input == InputCondition::Held {
            // Input may have arrived before the failure. Nobody has to take output any more.
            io.write_rate = RateWatch::NONE;
            if self.wait.flush.is_none() {
                return Action::Wait;
            }
            if pass.is_spent(&io.status) {
                return Action::Again;
            }
            // It may want its input only then, and nothing is left to be written. Once in an event:
            // what it writes now counts against no other budget.
            if let Some(failure) = &mut io.write_failure
                && failure.flushes_left > 0
            {
                failure.flushes_left -= 1;
                pass.calls_left = 1;
                return Action::Flushed;
            }
        }
        while self.wait.input.is_wanted() {
            if pass.is_spent(&io.status) {
                return Action::Again;
            }
            match self.wait.input.find(&io.input, &mut self.scanned, io.status.config.input_max) {
                FindResult::Match(matched) => return Action::Read(matched),
                FindResult::Incomplete | FindResult::NeedsPoll => match io.read(pass) {
                    ReadResult::Data => {}
                    // The peer has told a wrapping socket why it left (an alert of TLS). That is
                    // more than the write found.
                    ReadResult::Lost(error) if error.get_ref().is_some() => {
                        io.record_write_failure(Fatal::Reset(error));
                        break;
                    }
                    // The end of the stream or another error adds nothing: the protocol is told
                    // that writing has failed.
                    _ => break,
                },
                _ => break,
            }
        }
        let error = io.take_write_failure();
        let error = error.unwrap_or_else(|| Fatal::Write(ErrorKind::BrokenPipe.into()));
        let action = if has_been_told { Action::Fail(error) } else { self.loss(error, io) };
        if let Action::Fail(_) = action {
            // The connection may still exist, for example if a file has become shorter: the peer
            // must not see an ordinary end.
            io.reset();
        }
        action
    }

    /// Returns how the protocol is told of the loss of its connection.
    #[cold]
    pub(super) fn loss<S: StreamSocket>(&self, error: Fatal, io: &mut BufferedIo<S>) -> Action {
        if !self.protocol.as_ref().is_some_and(P::outlives_connection) {
            return Action::Fail(error);
        }
        // Neither is tried again.
        io.record_write_failure(match &error {
            Fatal::Reset(error) => Fatal::Reset(error.kind().into()),
            Fatal::Write(error) => Fatal::Write(error.kind().into()),
            _ => Fatal::FlushTimeout,
        });
        io.end_reading(ReadSide::Lost);
        Action::Exception(Exception::Lost(error))
    }

    /// Handles that the peer does not take the output: the protocol ends, unless it outlives its
    /// connection. To one that holds its input, it is the same as a failed write.
    #[cold]
    pub(in crate::stream) fn output_not_taken<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Flow<()> {
        if self.wait.input == InputCondition::Held {
            io.record_write_failure(Fatal::FlushTimeout);
            return self.pass(io, scope);
        }
        match self.loss(Fatal::FlushTimeout, io) {
            Action::Exception(exception) => self.call(
                |protocol, io, scope| protocol.exception(exception, &mut io.transport(), scope),
                io,
                scope,
            ),
            Action::Fail(error) => {
                self.fatal(error, scope);
                Flow::Fail(None)
            }
            _ => Flow::Wait(()),
        }
    }
}
