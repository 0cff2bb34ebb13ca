//! `Open`: a protocol on a connection, what it waits for, and the pass that an event makes over it.

use std::any::type_name;
use std::io;

use rotor_core::net::StreamSocket;
use rotor_core::{Deadline, Description, Scope, Time};

use super::buffered_io::BufferedIo;
use super::buffered_io::reading::ReadResult;
use super::buffered_io::writing::WriteResult;
use super::flow::Flow;
use super::pass::Pass;
use crate::error::{Exception, Fatal, StreamError};
use crate::intent::{Expected, Input, Intent, Left, Next};
use crate::matched::{Found, Matched};
use crate::protocol::Protocol;

/// How many times in a row a protocol may be called in one event without changing its input or its
/// output. A protocol may pass through a few states on the same bytes; if it passes through more,
/// it is in an endless loop.
const IDLE_CALLS_MAX: u32 = 64;

pub(super) struct Open<P> {
    /// Absent during its calls, and after its end. Everything else stays in place meanwhile,
    /// because a machine is large and not moving it saves time.
    protocol: Option<P>,
    wait: Expected,
    /// How many of the unread bytes are known not to begin the delimiter; or the length of the
    /// frame, once it is known. 0 after each call of the protocol, which may have consumed bytes,
    /// changed them in place, or begun to wait for something else.
    scanned: usize,
    /// The protocol's deadline; `NEVER` if there is none.
    pub(super) deadline: Time,
}

/// The next thing to do; the first three are calls of the protocol.
enum Due {
    Read(Matched),
    Flushed,
    Exception(Exception),
    /// Nothing before an event or a deadline.
    Wait,
    /// Perhaps something, after the other machines have had their turn: the budget of the event is
    /// used up.
    Again,
    Fail(Fatal),
}

/// The lengths of the buffers when the protocol was called.
#[derive(Clone, Copy)]
struct Called {
    unread: usize,
    unwritten: usize,
    /// Whether the call was for a flush.
    is_flushed: bool,
}

impl Called {
    #[inline(always)]
    fn with<S>(io: &BufferedIo<S>, is_flushed: bool) -> Called {
        Called { unread: io.input.len(), unwritten: io.output.len(), is_flushed }
    }
}

impl<P: Protocol> Open<P> {
    /// Makes the state of a protocol before its first intent, which [`begin`](Open::begin) takes.
    pub(super) fn new() -> Open<P> {
        Open { protocol: None, wait: Expected::NOTHING, scanned: 0, deadline: Time::NEVER }
    }

    /// Starts with the protocol's first intent.
    pub(super) fn begin<S: StreamSocket>(
        &mut self,
        intent: Intent<P>,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Flow<()> {
        match self.go_on(intent) {
            None => self.pass(io, scope),
            Some(flow) => flow,
        }
    }

    /// Calls the protocol for a wake-up, a deadline or a drain, and does what its intent makes
    /// possible.
    pub(super) fn call<S: StreamSocket>(
        &mut self,
        call: impl FnOnce(P, &mut BufferedIo<S>, &mut Scope<'_, P::Context>) -> Intent<P>,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Flow<()> {
        // Absent only after its end, when nothing needs to be told.
        let Some(protocol) = self.protocol.take() else { return Flow::Fail(None) };
        let intent = call(protocol, io, scope);
        self.scanned = 0;
        match self.go_on(intent) {
            None => self.pass(io, scope),
            Some(flow) => flow,
        }
    }

    /// Applies an intent; returns how the protocol ends if it ends.
    #[inline(always)]
    fn go_on(&mut self, intent: Intent<P>) -> Option<Flow<()>> {
        let Open { protocol: place, .. } = self;
        let intent = intent.map(|protocol| *place = Some(protocol));
        self.wait_for(intent)
    }

    /// Does the same when the protocol is in its place already.
    #[inline(always)]
    fn wait_for(&mut self, intent: Intent<()>) -> Option<Flow<()>> {
        match intent.next {
            Next::Wait((), wait, deadline) => {
                if let Some(wait) = wait {
                    self.wait = wait;
                }
                match deadline {
                    Deadline::Keep => {}
                    Deadline::Never => self.deadline = Time::NEVER,
                    Deadline::At(time) => self.deadline = time,
                }
                None
            }
            Next::Done => Some(Flow::Done),
            Next::Reset => Some(Flow::Reset),
            Next::Fail(error) => Some(Flow::Fail(Some(error))),
        }
    }

    /// Does everything that can be done now: reads, calls the protocol, writes.
    pub(super) fn pass<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Flow<()> {
        let mut pass = Pass::new(&io.status.config);
        let mut idle_calls = 0;
        loop {
            let (intent, called) = match self.due(io, &mut pass, scope) {
                Due::Read(matched) => {
                    let called = Called::with(io, false);
                    // If the protocol panics, the machine is dropped with it.
                    let Some(protocol) = &mut self.protocol else { return Flow::Fail(None) };
                    let transport = &mut io.transport_in(&mut pass);
                    if let Some(intent) = protocol.bytes_read_in_place(matched, transport, scope) {
                        // Handled here, since an intent that is merged with those of other calls is
                        // copied.
                        match self.follow(intent, called, io, &mut pass, &mut idle_calls) {
                            None => continue,
                            Some(flow) => return flow,
                        }
                    }
                    let read = |p: P| p.bytes_read(matched, transport, scope);
                    (self.call_by_value(read), called)
                }
                Due::Flushed => {
                    let called = Called::with(io, true);
                    (self.call_flushed(io, &mut pass, scope), called)
                }
                Due::Exception(exception) => {
                    let called = Called::with(io, false);
                    (self.call_exception(exception, io, &mut pass, scope), called)
                }
                Due::Wait => {
                    pass.count_bytes(&io.status.config);
                    return Flow::Wait(());
                }
                Due::Again => {
                    pass.count_bytes_seldom(&io.status.config);
                    return Flow::Again(());
                }
                Due::Fail(error) => {
                    pass.count_bytes_seldom(&io.status.config);
                    self.fatal(error, scope);
                    return Flow::Fail(None);
                }
            };
            let Some(intent) = intent else { return Flow::Fail(None) };
            if let Some(flow) = self.follow(intent, called, io, &mut pass, &mut idle_calls) {
                return flow;
            }
        }
    }

    /// Applies the intent of a call; returns how the protocol ends if it ends.
    #[inline(always)]
    fn follow<S: StreamSocket>(
        &mut self,
        intent: Intent<()>,
        called: Called,
        io: &BufferedIo<S>,
        pass: &mut Pass,
        idle_calls: &mut u32,
    ) -> Option<Flow<()>> {
        pass.count_call();
        self.scanned = 0;
        let has_read = io.input.len() != called.unread;
        // What it waited for matters only if it may be waiting for that again.
        let before = if has_read && !called.is_flushed { None } else { Some(self.wait) };
        if let Some(flow) = self.wait_for(intent) {
            self.protocol = None;
            pass.count_bytes_seldom(&io.status.config);
            return Some(flow);
        }
        // The usual case: it consumed what it was called for.
        let Some(before) = before else {
            *idle_calls = 0;
            return None;
        };
        let has_written = io.output.len() != called.unwritten;
        // A protocol may pass through a few states on the same bytes, but without a limit it could
        // block the loop forever.
        *idle_calls = if has_read || has_written { 0 } else { *idle_calls + 1 };
        let did_its_part = called.is_flushed && has_written;
        let stands_still = !did_its_part && self.stands_still(&before, called.is_flushed);
        (stands_still || *idle_calls > IDLE_CALLS_MAX)
            .then(|| Flow::Fail(Some(self.no_progress(called.is_flushed).into())))
    }

    /// Calls the protocol because a flush is complete. Not inlined, like the next function, to keep
    /// the path of a request short.
    #[inline(never)]
    fn call_flushed<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &mut Scope<'_, P::Context>,
    ) -> Option<Intent<()>> {
        self.call_by_value(|p| p.bytes_flushed(&mut io.transport_in(pass), scope))
    }

    /// Calls the protocol because its input will not come.
    #[cold]
    #[inline(never)]
    fn call_exception<S: StreamSocket>(
        &mut self,
        exception: Exception,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &mut Scope<'_, P::Context>,
    ) -> Option<Intent<()>> {
        self.call_by_value(|p| p.exception(exception, &mut io.transport_in(pass), scope))
    }

    /// Calls the protocol by value; returns `None` after its end.
    #[inline(always)]
    fn call_by_value(&mut self, call: impl FnOnce(P) -> Intent<P>) -> Option<Intent<()>> {
        let intent = call(self.protocol.take()?);
        Some(intent.map(|protocol| self.protocol = Some(protocol)))
    }

    /// Returns whether the protocol waits again for what caused the call, so that the same call
    /// would be made forever.
    #[cold]
    fn stands_still(&self, before: &Expected, is_flushed: bool) -> bool {
        if is_flushed {
            self.wait.flush.is_some() && self.wait.flush == before.flush
        } else {
            self.wait.input != Input::Nothing && self.wait.input == before.input
        }
    }

    #[cold]
    fn no_progress(&self, is_flushed: bool) -> StreamError {
        let waits_for = match (is_flushed, self.wait.input) {
            (true, _) => "room to write",
            (false, Input::Delimiter { .. }) => "a delimiter",
            (false, Input::Frame { .. }) => "a frame",
            (false, _) => "bytes",
        };
        StreamError::NoProgress(type_name::<P>(), waits_for)
    }

    /// Reads and writes until the protocol must be called, or nothing more can be done.
    fn due<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &Scope<'_, P::Context>,
    ) -> Due {
        loop {
            // No more output can be written, but input that the peer sent before is still
            // delivered.
            if io.broken.is_some() {
                return self.last_due(io, pass);
            }
            // When a budget is used up, the protocol is not called again, but its output is written
            // now, so that the peer need not wait for the next turn.
            let may_call = !pass.is_spent(&io.status);
            if may_call {
                if let Some(due) = self.input_due(io, pass, scope) {
                    return due;
                }
                // It is not known how many bytes a wrapping socket holds, so only a flush down to 0
                // takes them into account.
                if let Some(left) = self.wait.flush.map(Left::bytes)
                    && io.output.len() <= left
                    && (left > 0 || !io.has_output())
                {
                    return Due::Flushed;
                }
            }
            match io.write(pass, || scope.now()) {
                // The usual case: the input was checked before, and no more can be read.
                WriteResult::Emptied
                    if may_call && self.wait.flush.is_none() && io.is_input_at_rest() =>
                {
                    return self.wait_due(io);
                }
                // Less output may have allowed input again, or completed a flush.
                WriteResult::Emptied | WriteResult::Progress => {}
                WriteResult::Nothing if pass.is_spent(&io.status) => return Due::Again,
                WriteResult::Nothing => return self.wait_due(io),
                // A reset first appears as an error of writing: input from before it is not lost.
                WriteResult::Failed(error) => io.break_off(error),
            }
        }
    }

    /// Returns what the input, or what can be read, makes due.
    #[inline]
    fn input_due<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &Scope<'_, P::Context>,
    ) -> Option<Due> {
        // Above the high-water mark the peer gets no further answers until it takes those it has.
        if self.wait.input == Input::Nothing || !io.takes_input() {
            return None;
        }
        loop {
            let input_max = io.status.config.input_max;
            let exception = match self.wait.input.find(&io.input, &mut self.scanned, input_max) {
                Found::Match(matched) => {
                    // A protocol that ends with its input must get all of it.
                    if io.may_hold_more() && scope.draining_until().is_some() {
                        io.read_ahead(pass);
                    }
                    return Some(Due::Read(matched));
                }
                Found::Never(limit) => Exception::Limit(limit),
                Found::Malformed => Exception::Malformed,
                // The expected input may be far more than the budget of one event.
                Found::NotYet | Found::Unpolled if pass.has_read_its_share(&io.status) => {
                    return None;
                }
                Found::NotYet => match io.read(pass) {
                    ReadResult::Some => continue,
                    ReadResult::Nothing => return None,
                    ReadResult::Ended => io.end_exception(),
                    ReadResult::Failed(error) => Exception::Read(error),
                    ReadResult::Gone(error) => return Some(Due::Fail(Fatal::Reset(error))),
                },
                Found::Unpolled => match io.poll_read(pass) {
                    ReadResult::Some | ReadResult::Nothing => {
                        return Some(Due::Read(Matched::NOTHING));
                    }
                    ReadResult::Ended => io.end_exception(),
                    ReadResult::Failed(error) => Exception::Read(error),
                    ReadResult::Gone(error) => return Some(Due::Fail(Fatal::Reset(error))),
                },
            };
            return Some(Due::Exception(exception));
        }
    }

    /// Returns what is due on a connection that cannot be written to any more: input, as long as
    /// there is some that the protocol waits for; then the end.
    #[cold]
    fn last_due<S: StreamSocket>(&mut self, io: &mut BufferedIo<S>, pass: &mut Pass) -> Due {
        // The output will never be taken, and a full one would keep input from being delivered.
        io.output.clear();
        while self.wait.input != Input::Nothing {
            if pass.is_spent(&io.status) {
                return Due::Again;
            }
            match self.wait.input.find(&io.input, &mut self.scanned, io.status.config.input_max) {
                Found::Match(matched) => return Due::Read(matched),
                // The end of the stream or another error adds nothing: the protocol is told that
                // writing has failed.
                Found::NotYet if matches!(io.read(pass), ReadResult::Some) => {}
                _ => break,
            }
        }
        // The connection may still exist, for example if a file has become shorter: the peer must
        // not see an ordinary end.
        io.reset();
        let error = io.broken.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
        Due::Fail(Fatal::Write(error))
    }

    /// Waits, unless an event has reported that the connection is gone. A protocol that neither
    /// reads nor writes would not notice that itself.
    #[inline]
    fn wait_due<S: StreamSocket>(&self, io: &mut BufferedIo<S>) -> Due {
        if io.is_error_told()
            && self.wait.input == Input::Nothing
            && let Some(error) = io.take_told_error()
        {
            return Due::Fail(Fatal::Reset(error));
        }
        Due::Wait
    }

    /// Returns until when the stream waits, if the pass left it waiting and there is room for its
    /// buffers. Memory that it does not need is given back.
    #[inline]
    pub(super) fn waits_until<S: StreamSocket>(
        &self,
        flow: &Flow<()>,
        io: &mut BufferedIo<S>,
    ) -> Option<Time> {
        let Flow::Wait(()) = flow else { return None };
        io.settle().then(|| self.deadline.min(io.taking.until()))
    }

    pub(super) fn protocol(&self) -> Option<&P> {
        self.protocol.as_ref()
    }

    /// Returns whether the protocol waits for input of any kind.
    pub(super) fn waits_for_input(&self) -> bool {
        self.wait.input != Input::Nothing
    }

    /// Returns since when the connection has been idle, according to its protocol.
    pub(super) fn idle<S>(&self, io: &BufferedIo<S>) -> Option<Time> {
        self.protocol.as_ref()?.idle(&io.input)
    }

    pub(super) fn describe(&self, to: &mut Description) {
        if let Some(protocol) = &self.protocol {
            protocol.describe(to);
        }
    }

    /// Tells the protocol that the connection is gone.
    pub(super) fn fatal(&mut self, error: Fatal, scope: &mut Scope<'_, P::Context>) {
        if let Some(protocol) = self.protocol.take() {
            scope.note_in_trace(format_args!("{error:?}"));
            protocol.fatal(error, scope);
        }
    }
}
