//! `Layered`: a protocol that runs on the buffers of another one, instead of on a socket.

use std::fmt;
use std::sync::Arc;

use rotor_core::{BoxError, Description, EventSet, Scope, Time};

use super::buffered_io::BufferedIo;
use super::detached::Detached;
use super::flow::Flow;
use super::open::OpenProtocol;
use super::opening::notify_drain;
use crate::buf::Buf;
#[cfg(doc)]
use crate::error::Exception;
use crate::error::Fatal;
#[cfg(doc)]
use crate::intent::Expectation;
use crate::intent::Intent;
use crate::limits::{AbortReason, StreamConfig};
use crate::output::{EndState, Output};
use crate::protocol::Protocol;
use crate::status::{Flags, ReadSide};

/// A protocol that runs inside another one, the layer: on a stream of a multiplexed connection, or
/// in a tunnel. It is called as on a socket, by the same rules.
///
/// The layer appends received bytes to [`input`](Layered::input), takes bytes to be sent from
/// [`output`](Layered::output), and calls [`pass`](Layered::pass) after either. It passes on
/// wake-ups and drains. It calls [`timeout`](Layered::timeout) when [`deadline`](Layered::deadline)
/// has passed, and acts on the [result](LayeredResult) of each call. If the protocol needs wake-ups
/// of its own, give it a scope of its [part](Scope::part).
///
/// The protocol's [`config`](Protocol::config) sets its limits, in addition to the layer's: what it
/// may wait for, the high-water mark, and how fast its output must be taken. So if a layer holds
/// output back, because of a flow-control window, slow readers are detected
/// ([`Fatal::FlushTimeout`]).
///
/// The transport has no addresses and no session. If the protocol needs them, put them into its
/// seed.
pub struct Layered<P> {
    io: BufferedIo<Detached>,
    /// Absent once the protocol has ended.
    open: Option<OpenProtocol<P>>,
    /// How many bytes of output were left after the last call.
    last_output_len: usize,
    has_failed: bool,
}

/// The result of a call of a [`Layered`] protocol: how the protocol goes on.
#[doc(alias = "Ran")]
#[derive(Debug)]
#[must_use = "a protocol that is to go on later hears of nothing by itself"]
pub enum LayeredResult {
    /// It waits for more input, for output to be taken, for a wake-up or for its deadline.
    Waits,
    /// The budget of the event is used up: call [`pass`](Layered::pass) after the other machines
    /// have had their turn.
    Again,
    /// It has ended normally. Its output must still be taken, before
    /// [`deadline`](Layered::deadline); then our side ends.
    Done,
    /// It has ended at once and must be dropped; its output must not be sent. The error should be
    /// logged. It is `None` if the protocol, or the abort hook, was told already.
    Failed(Option<BoxError>),
}

impl<P: Protocol> Layered<P> {
    /// Makes the protocol with its first call, `create`. `input` holds what has arrived for it so
    /// far. `within` is the configuration of the layer. If the protocol's
    /// [`config`](Protocol::config) does not set the total of held memory
    /// ([`held`](StreamConfig::held)) or the abort hook, those of `within` are used; its bytes are
    /// counted by the layer. If it is [`StreamConfig::standard`], all of `within` is used.
    pub fn begin(
        seed: P::Seed,
        input: Buf,
        is_secure: bool,
        within: &Arc<StreamConfig>,
        scope: &mut Scope<'_, P::Context>,
    ) -> (Layered<P>, LayeredResult) {
        let mut io = BufferedIo::new(
            Detached { is_secure, is_reset: false },
            P::config(&seed).with_unset_from(within),
        );
        io.input = input;
        io.status.writable = true;
        let mut layered = Layered { io, open: None, last_output_len: 0, has_failed: false };
        let intent = P::create(seed, &mut layered.io.transport(), scope);
        let mut open = OpenProtocol::new();
        let flow = open.begin(intent, &mut layered.io, scope);
        let ran = layered.apply_flow(open, flow, scope);
        (layered, ran)
    }

    /// Returns the unconsumed input, to which the layer appends.
    pub fn input(&mut self) -> &mut Buf {
        &mut self.io.input
    }

    /// Returns how many bytes may be appended to the input before the protocol consumes some:
    /// [`input_max`](crate::StreamConfig::input_max) less the length of the input. A flow-control
    /// window may be opened by this amount.
    pub fn input_room(&self) -> usize {
        self.io.status.config.input_max.saturating_sub(self.io.input.len())
    }

    /// Returns whether new input would be delivered: the protocol waits for some, and its output is
    /// not above the high-water mark. Otherwise leave the input where it is; opening a window for
    /// it would only move the queue here. After [`LayeredResult::Again`], the input may already
    /// hold many times what the protocol waits for: open a window only after its next turn.
    pub fn wants_input(&self) -> bool {
        self.open.as_ref().is_some_and(OpenProtocol::waits_for_input) && !self.io.is_gated()
    }

    /// Returns the output, which is to be taken from the front ([`Output::move_to`]). Nothing more
    /// is added once it [is ended](Output::is_ended) or the protocol is done.
    pub fn output(&mut self) -> &mut Output {
        &mut self.io.output
    }

    /// Returns when to call [`timeout`](Layered::timeout) at the latest: at the protocol's own
    /// deadline, or when too little of its output was taken. [`Time::NEVER`] if there is neither.
    pub fn deadline(&self) -> Time {
        let own = self.open.as_ref().map_or(Time::NEVER, |open| open.deadline);
        own.min(self.io.write_rate.until())
    }

    /// Gives the peer until `until` to take output, because the layer holds it back for other
    /// streams that go first. The protocol's own deadline stays.
    ///
    /// It changes nothing if no output waits, or if the peer has more time anyway.
    pub fn excuse(&mut self, until: Time) {
        let before = self.io.write_rate.until();
        if before < until {
            self.io.write_rate.put_off(until - before);
        }
    }

    /// Sets whether the layer takes no input from its own connection now, because too much output
    /// waits there. Call this before other calls if it has changed. Then the protocol learns that
    /// its peer cannot be heard ([`Transport::is_input_held`](crate::Transport::is_input_held)).
    /// Default: no.
    pub fn set_input_held(&mut self, yes: bool) {
        self.io.status.flags.set(Flags::HELD_BY_LAYER, yes);
    }

    /// Returns since when the protocol has been [idle](Protocol::idle); `None` if it is not.
    pub fn idle(&self) -> Option<Time> {
        if self.io.has_output() { None } else { self.open.as_ref()?.idle(&self.io) }
    }

    /// Adds the protocol's own [description](Protocol::describe), and the memory of its buffers.
    pub fn describe(&self, to: &mut Description) {
        to.add_held(self.io.input.capacity() + self.io.output.held_bytes());
        if let Some(open) = &self.open {
            open.describe(to);
        }
    }

    /// Does what new input, or taken output, makes possible.
    pub fn pass(&mut self, scope: &mut Scope<'_, P::Context>) -> LayeredResult {
        self.run(scope, |open, io, scope| open.pass(io, scope))
    }

    /// Reports that the peer sends no more; the existing input is delivered first. `is_truncated`
    /// says that the peer did not end the stream in an orderly way ([`Exception::Truncated`]).
    pub fn input_ended(
        &mut self,
        is_truncated: bool,
        scope: &mut Scope<'_, P::Context>,
    ) -> LayeredResult {
        self.io.status.read_side = if is_truncated { ReadSide::Truncated } else { ReadSide::Ended };
        self.pass(scope)
    }

    /// Reports a wake-up of the protocol.
    pub fn wakeup(&mut self, scope: &mut Scope<'_, P::Context>) -> LayeredResult {
        self.call(scope, |protocol, io, scope| protocol.wakeup(&mut io.transport(), scope))
    }

    /// Reports that the loop drains, until the given time.
    pub fn draining(&mut self, until: Time, scope: &mut Scope<'_, P::Context>) -> LayeredResult {
        self.call(scope, |protocol, io, scope| notify_drain(protocol, until, io, scope))
    }

    /// Handles a [deadline](Layered::deadline) that has passed; does nothing if none has.
    pub fn timeout(&mut self, scope: &mut Scope<'_, P::Context>) -> LayeredResult {
        let now = scope.now();
        self.record_taken(scope);
        if self.io.write_rate.until() <= now && !self.has_failed {
            let Some(mut open) = self.open.take() else {
                self.io.status.config.on_abort.call(AbortReason::NotTaken);
                return self.fail(None);
            };
            let flow = open.output_not_taken(&mut self.io, scope);
            return self.apply_flow(open, flow, scope);
        }
        match &mut self.open {
            Some(open) if open.deadline <= now => open.deadline = Time::NEVER,
            Some(_) => return LayeredResult::Waits,
            None => return self.end_result(),
        }
        self.call(scope, |protocol, io, scope| protocol.timeout(&mut io.transport(), scope))
    }

    /// Reports that the stream, or the connection, was reset. The same follows as on a socket: input
    /// that has arrived is delivered first, even if the protocol holds it until later
    /// ([`Expectation::Hold`]), and then the protocol ends with [`Fatal::Reset`], unless it
    /// [outlives](Protocol::outlives_connection) its connection. All output is discarded.
    ///
    /// A protocol that goes on must still get its wake-ups, drains and deadlines. Nothing must be
    /// appended to its input. Its end is [`LayeredResult::Failed`], even if it ends normally,
    /// because its output cannot be sent.
    pub fn reset(&mut self, scope: &mut Scope<'_, P::Context>) -> LayeredResult {
        self.io.socket.is_reset = true;
        self.run(scope, |open, io, scope| {
            io.record_events(EventSet::ERROR);
            open.pass(io, scope)
        })
    }

    /// Ends the protocol at once, because the connection is gone and nothing more can be delivered.
    /// This is the last call. [`reset`](Layered::reset) delivers what has arrived.
    pub fn lost(mut self, error: Fatal, scope: &mut Scope<'_, P::Context>) {
        if let Some(mut open) = self.open.take() {
            open.fatal(error, scope);
        }
    }

    fn call(
        &mut self,
        scope: &mut Scope<'_, P::Context>,
        call: impl FnOnce(P, &mut BufferedIo<Detached>, &mut Scope<'_, P::Context>) -> Intent<P>,
    ) -> LayeredResult {
        self.run(scope, |open, io, scope| open.call(call, io, scope))
    }

    fn run(
        &mut self,
        scope: &mut Scope<'_, P::Context>,
        step: impl FnOnce(
            &mut OpenProtocol<P>,
            &mut BufferedIo<Detached>,
            &mut Scope<'_, P::Context>,
        ) -> Flow<()>,
    ) -> LayeredResult {
        self.record_taken(scope);
        match self.open.take() {
            Some(mut open) => {
                let flow = step(&mut open, &mut self.io, scope);
                self.apply_flow(open, flow, scope)
            }
            None => self.end_result(),
        }
    }

    /// Notes how much of the output was taken since the last call, and whether more would be.
    fn record_taken(&mut self, scope: &Scope<'_, P::Context>) {
        let last_output_len = self.last_output_len;
        // A layer that has taken output, or had none to take, takes output. If it does not, the
        // next write shows it.
        self.io.status.writable = last_output_len == 0 || self.io.output.len() < last_output_len;
        self.io
            .watch_write_rate(|io| last_output_len.saturating_sub(io.output.len()), || scope.now());
        self.last_output_len = self.io.output.len();
    }

    /// Returns how the protocol has ended.
    fn end_result(&self) -> LayeredResult {
        if self.has_failed || self.io.socket.is_reset {
            LayeredResult::Failed(None)
        } else {
            LayeredResult::Done
        }
    }

    fn fail(&mut self, error: Option<BoxError>) -> LayeredResult {
        self.has_failed = true;
        LayeredResult::Failed(error)
    }

    /// Returns what follows from a step.
    fn apply_flow(
        &mut self,
        mut open: OpenProtocol<P>,
        flow: Flow<()>,
        scope: &mut Scope<'_, P::Context>,
    ) -> LayeredResult {
        self.last_output_len = self.io.output.len();
        match flow {
            Flow::Wait(()) if self.io.account_memory() => {
                self.open = Some(open);
                LayeredResult::Waits
            }
            Flow::Wait(()) => {
                open.fatal(Fatal::NoRoom, scope);
                self.fail(None)
            }
            Flow::Again(()) => {
                self.open = Some(open);
                LayeredResult::Again
            }
            // Nobody takes the rest of its output, or it would follow a gap.
            Flow::Done if self.io.socket.is_reset || self.io.write_failure.is_some() => {
                self.fail(None)
            }
            Flow::Done => {
                // It will not be read.
                self.io.input.clear();
                if self.io.output.end_state() == EndState::Open {
                    self.io.output.set_end_state(EndState::Requested);
                }
                self.io.require_by(scope.now());
                // Output of the last call is watched from now on.
                self.io.watch_write_rate(|_| 0, || scope.now());
                if self.io.account_memory() {
                    return LayeredResult::Done;
                }
                self.io.status.config.on_abort.call(AbortReason::NoRoom);
                self.fail(None)
            }
            // The layer decides what the peer sees.
            Flow::Reset => self.fail(None),
            Flow::Fail(error) => self.fail(error),
        }
    }
}

impl<P> fmt::Debug for Layered<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered")
            .field("is_open", &self.open.is_some())
            .field("input", &self.io.input)
            .field("output", &self.io.output)
            .finish_non_exhaustive()
    }
}
