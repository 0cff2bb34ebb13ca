//! `Open`: a protocol on a connection, what it waits for, and the pass that an event makes over it.

mod loss;

use std::any::type_name;

use rotor_core::net::StreamSocket;
use rotor_core::{Deadline, Description, Scope, Time};

use super::buffered_io::BufferedIo;
use super::buffered_io::reading::ReadResult;
use super::buffered_io::writing::WriteResult;
use super::flow::Flow;
use super::pass::Pass;
use crate::error::{Exception, Fatal, StreamError};
use crate::intent::{Intent, Next};
use crate::matched::{FindResult, Matched};
use crate::protocol::Protocol;
use crate::wait_condition::{FlushThreshold, InputCondition, WaitCondition};

/// How many times in a row a protocol may be called in one event without changing its input or its
/// output. A protocol may pass through a few states on the same bytes; if it passes through more,
/// it is in an endless loop.
const IDLE_CALLS_MAX: u32 = 64;

/// The last calls in a row that neither consumed nor wrote anything, all with the same input.
#[derive(Default)]
struct IdleCalls {
    count: u32,
    unread: usize,
}

impl IdleCalls {
    /// Counts a call with this much input. More input than before is none of the same bytes: a
    /// wrapping socket may return it byte by byte, however much of it has come.
    fn add(&mut self, unread: usize) {
        self.count = if unread == self.unread { self.count + 1 } else { 1 };
        self.unread = unread;
    }
}

pub(super) struct OpenProtocol<P> {
    /// Absent during its calls, and after its end. Everything else stays in place meanwhile,
    /// because a machine is large and not moving it saves time.
    protocol: Option<P>,
    wait: WaitCondition,
    /// How many of the unread bytes are known not to begin the delimiter; or the length of the
    /// frame, once it is known. 0 after each call of the protocol, which may have consumed bytes,
    /// changed them in place, or begun to wait for something else.
    scanned: usize,
    /// The protocol's deadline; `NEVER` if there is none.
    pub(super) deadline: Time,
}

/// The next thing to do; the first three are calls of the protocol.
enum Action {
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
struct CallSnapshot {
    unread: usize,
    unwritten: usize,
    /// Whether the call was for a flush.
    is_flushed: bool,
}

impl CallSnapshot {
    #[inline(always)]
    fn take<S>(io: &BufferedIo<S>, is_flushed: bool) -> CallSnapshot {
        CallSnapshot { unread: io.input.len(), unwritten: io.output.len(), is_flushed }
    }
}

impl<P: Protocol> OpenProtocol<P> {
    /// Makes the state of a protocol before its first intent, which
    /// [`begin`](OpenProtocol::begin) takes.
    pub(super) fn new() -> OpenProtocol<P> {
        OpenProtocol {
            protocol: None,
            wait: WaitCondition::NOTHING,
            scanned: 0,
            deadline: Time::NEVER,
        }
    }

    /// Starts with the protocol's first intent.
    pub(super) fn begin<S: StreamSocket>(
        &mut self,
        intent: Intent<P>,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Flow<()> {
        match self.apply_intent(intent) {
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
        match self.apply_intent(intent) {
            None => self.pass(io, scope),
            Some(flow) => flow,
        }
    }

    /// Applies an intent; returns how the protocol ends if it ends.
    #[inline(always)]
    fn apply_intent(&mut self, intent: Intent<P>) -> Option<Flow<()>> {
        let OpenProtocol { protocol: place, .. } = self;
        let intent = intent.map(|protocol| *place = Some(protocol));
        self.apply_intent_in_place(intent)
    }

    /// Does the same when the protocol is in its place already.
    #[inline(always)]
    fn apply_intent_in_place(&mut self, intent: Intent<()>) -> Option<Flow<()>> {
        match intent.next {
            Next::Wait((), wait, deadline) => {
                if let Some(wait) = wait {
                    self.wait = wait.after(self.wait);
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
        let mut idle_calls = IdleCalls::default();
        loop {
            let (intent, snapshot) = match self.next_action(io, &mut pass, scope) {
                Action::Read(matched) => {
                    let snapshot = CallSnapshot::take(io, false);
                    // If the protocol panics, the machine is dropped with it.
                    let Some(protocol) = &mut self.protocol else { return Flow::Fail(None) };
                    let transport = &mut io.transport_in_pass(&mut pass);
                    if let Some(intent) = protocol.bytes_read_in_place(matched, transport, scope) {
                        // Handled here, since an intent that is merged with those of other calls is
                        // copied.
                        match self.finish_call(intent, snapshot, io, &mut pass, &mut idle_calls) {
                            None => continue,
                            Some(flow) => return flow,
                        }
                    }
                    let read = |p: P| p.bytes_read(matched, transport, scope);
                    (self.call_by_value(read), snapshot)
                }
                Action::Flushed => {
                    let snapshot = CallSnapshot::take(io, true);
                    (self.call_flushed(io, &mut pass, scope), snapshot)
                }
                Action::Exception(exception) => {
                    let snapshot = CallSnapshot::take(io, false);
                    (self.call_exception(exception, io, &mut pass, scope), snapshot)
                }
                Action::Wait => {
                    pass.count_bytes(&io.status.config);
                    return Flow::Wait(());
                }
                Action::Again => {
                    pass.count_bytes_cold(&io.status.config);
                    return Flow::Again(());
                }
                Action::Fail(error) => {
                    pass.count_bytes_cold(&io.status.config);
                    self.fatal(error, scope);
                    return Flow::Fail(None);
                }
            };
            let Some(intent) = intent else { return Flow::Fail(None) };
            if let Some(flow) = self.finish_call(intent, snapshot, io, &mut pass, &mut idle_calls) {
                return flow;
            }
        }
    }

    /// Applies the intent of a call; returns how the protocol ends if it ends.
    #[inline(always)]
    fn finish_call<S: StreamSocket>(
        &mut self,
        intent: Intent<()>,
        snapshot: CallSnapshot,
        io: &BufferedIo<S>,
        pass: &mut Pass,
        idle_calls: &mut IdleCalls,
    ) -> Option<Flow<()>> {
        pass.count_call();
        self.scanned = 0;
        let has_read = io.input.len() != snapshot.unread;
        // What it waited for matters only if it may be waiting for that again.
        let before = if has_read { None } else { Some(self.wait) };
        if let Some(flow) = self.apply_intent_in_place(intent) {
            self.protocol = None;
            pass.count_bytes_cold(&io.status.config);
            return Some(flow);
        }
        // The usual case: it consumed what it was called for.
        let Some(before) = before else {
            idle_calls.count = 0;
            return None;
        };
        let has_written = io.output.len() != snapshot.unwritten;
        // A protocol may pass through a few states on the same bytes, but without a limit it could
        // block the loop forever.
        match has_written {
            true => idle_calls.count = 0,
            false => idle_calls.add(snapshot.unread),
        }
        let has_written_after_flush = snapshot.is_flushed && has_written;
        let repeats_its_wait =
            !has_written_after_flush && self.repeats_its_wait(&before, snapshot.is_flushed);
        (repeats_its_wait || idle_calls.count > IDLE_CALLS_MAX)
            .then(|| Flow::Fail(Some(self.no_progress(snapshot.is_flushed).into())))
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
        self.call_by_value(|p| p.bytes_flushed(&mut io.transport_in_pass(pass), scope))
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
        self.call_by_value(|p| p.exception(exception, &mut io.transport_in_pass(pass), scope))
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
    fn repeats_its_wait(&self, before: &WaitCondition, is_flushed: bool) -> bool {
        if is_flushed {
            self.wait.flush.is_some() && self.wait.flush == before.flush
        } else {
            self.wait.input.is_wanted() && self.wait.input == before.input
        }
    }

    #[cold]
    fn no_progress(&self, is_flushed: bool) -> StreamError {
        let waits_for = match (is_flushed, self.wait.input) {
            (true, _) => "room to write again, and has neither written nor consumed anything",
            (false, InputCondition::Delimiter { .. }) => {
                "a delimiter again, and has consumed nothing"
            }
            (false, InputCondition::Frame { .. }) => "a frame again, and has consumed nothing",
            (false, _) => "bytes again, and has consumed nothing",
        };
        StreamError::NoProgress(type_name::<P>(), waits_for)
    }

    /// Reads and writes until the protocol must be called, or nothing more can be done.
    fn next_action<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &Scope<'_, P::Context>,
    ) -> Action {
        loop {
            // No more output can be written, but input that the peer sent before is still
            // delivered.
            if io.write_failure.is_some() {
                return self.action_after_write_error(io, pass);
            }
            // When a budget is used up, the protocol is not called again, but its output is written
            // now, so that the peer need not wait for the next turn.
            let may_call = !pass.is_spent(&io.status);
            if may_call {
                if let Some(action) = self.input_action(io, pass, scope) {
                    return action;
                }
                // It is not known how many bytes a wrapping socket holds, so only a flush down to 0
                // takes them into account.
                if let Some(left) = self.wait.flush.map(FlushThreshold::bytes)
                    && io.output.len() <= left
                    && (left > 0 || !io.has_output())
                {
                    return Action::Flushed;
                }
            }
            match io.write(pass, || scope.now()) {
                // The usual case: the input was checked before, and no more can be read.
                WriteResult::Emptied
                    if may_call && self.wait.flush.is_none() && io.is_input_idle() =>
                {
                    return self.wait_or_fail(io);
                }
                // Less output may have allowed input again, or completed a flush.
                WriteResult::Emptied | WriteResult::Progress => {}
                WriteResult::Nothing if pass.is_spent(&io.status) => return Action::Again,
                WriteResult::Nothing if io.read_to_write(pass) => {}
                WriteResult::Nothing => return self.wait_or_fail(io),
                // A reset first appears as an error of writing: input from before it is not lost.
                WriteResult::Failed(error) => io.record_write_failure(Fatal::Write(error)),
            }
        }
    }

    /// Returns what the input, or what can be read, makes due.
    #[inline]
    fn input_action<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        pass: &mut Pass,
        scope: &Scope<'_, P::Context>,
    ) -> Option<Action> {
        // Above the high-water mark the peer gets no further answers until it takes those it has.
        if !self.wait.input.is_wanted() || !io.can_deliver_input() {
            return None;
        }
        loop {
            let input_max = io.status.config.input_max;
            let exception = match self.wait.input.find(&io.input, &mut self.scanned, input_max) {
                FindResult::Match(matched) => {
                    // A protocol that ends with its input must get all of it.
                    if io.may_be_readable() && scope.draining_until().is_some() {
                        io.read_ahead(pass);
                    }
                    return Some(Action::Read(matched));
                }
                FindResult::LimitExceeded(limit) => Exception::Limit(limit),
                FindResult::Malformed => Exception::Malformed,
                // The expected input may be far more than the budget of one event.
                FindResult::Incomplete | FindResult::NeedsPoll
                    if pass.is_read_budget_spent(&io.status) =>
                {
                    return None;
                }
                FindResult::Incomplete => match io.read(pass) {
                    ReadResult::Data => continue,
                    ReadResult::Nothing => return None,
                    ReadResult::Ended => io.end_exception(),
                    ReadResult::Failed(error) => Exception::Read(error),
                    ReadResult::Lost(error) => return Some(self.loss(Fatal::Reset(error), io)),
                },
                FindResult::NeedsPoll => match io.poll_read(pass) {
                    ReadResult::Data | ReadResult::Nothing => {
                        return Some(Action::Read(Matched::NOTHING));
                    }
                    ReadResult::Ended => io.end_exception(),
                    ReadResult::Failed(error) => Exception::Read(error),
                    ReadResult::Lost(error) => return Some(self.loss(Fatal::Reset(error), io)),
                },
            };
            return Some(Action::Exception(exception));
        }
    }

    /// Waits, unless an event has reported that the connection is gone. A protocol that neither
    /// reads nor writes would not notice that itself; one that holds its input reads later.
    #[inline]
    fn wait_or_fail<S: StreamSocket>(&self, io: &mut BufferedIo<S>) -> Action {
        if io.has_reported_error()
            && self.wait.input == InputCondition::Nothing
            && let Some(error) = io.take_reported_error()
        {
            return self.loss(Fatal::Reset(error), io);
        }
        Action::Wait
    }

    /// Returns until when the stream waits, if the pass left it waiting and there is room for its
    /// buffers. Memory that it does not need is given back.
    #[inline]
    pub(super) fn wait_deadline<S: StreamSocket>(
        &self,
        flow: &Flow<()>,
        io: &mut BufferedIo<S>,
    ) -> Option<Time> {
        let Flow::Wait(()) = flow else { return None };
        io.account_memory().then(|| self.deadline.min(io.write_rate.until()))
    }

    pub(super) fn protocol(&self) -> Option<&P> {
        self.protocol.as_ref()
    }

    /// Returns whether the protocol waits for input of any kind.
    pub(super) fn waits_for_input(&self) -> bool {
        self.wait.input.is_wanted()
    }

    /// Returns since when the connection has been idle, according to its protocol.
    pub(super) fn idle<S>(&self, io: &BufferedIo<S>) -> Option<Time> {
        self.protocol.as_ref()?.idle(&io.input)
    }

    /// Ends an idle connection to make room for others.
    pub(super) fn make_room<S: StreamSocket>(
        &mut self,
        io: &mut BufferedIo<S>,
        scope: &mut Scope<'_, P::Context>,
    ) {
        if let Some(protocol) = &mut self.protocol {
            protocol.make_room(&mut io.transport(), scope);
        }
        self.fatal(Fatal::MadeRoom, scope);
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
