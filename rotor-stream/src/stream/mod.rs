//! `Stream`: the machine that runs a protocol on a socket.
//!
//! `buffered_io` is the socket with its buffers, `open` the protocol and the pass over it, `pass`
//! the budget of a pass. `phase` is the phase of a stream, `opening` and `closing` are what happens
//! before and after the protocol, `flow` is the result of each step. This file makes a machine of
//! them.

mod buffered_io;
mod closing;
mod detached;
mod flow;
mod layered;
mod open;
mod opening;
mod pass;
mod phase;

use std::any::type_name;
use std::fmt;
use std::net::SocketAddr;

use rotor_core::net::StreamSocket;
use rotor_core::{
    Answer, Deadline, Description, Event, EventSet, Idle, InPlace, Interest, Machine, Response,
    Scope, Time,
};

use self::buffered_io::BufferedIo;
use self::closing::{abort, flush_and_close, linger, make_room, next_phase};
use self::flow::Flow;
pub use self::layered::{Layered, LayeredResult};
pub(crate) use self::opening::not_connected;
use self::opening::{abandon_handshake, check_connected, handshake, notify_drain, start_handshake};
use self::phase::Phase;
use crate::accept::Accepted;
use crate::error::{Fatal, StreamError};
use crate::intent::Intent;
use crate::limits::AbortReason;
use crate::protocol::Protocol;

/// The machine that runs a protocol on a byte stream: it reads, writes, waits and closes.
///
/// It registers its socket once and is then driven by edge-triggered events. The documentation of
/// the [crate](crate) lists the rules that it keeps.
pub struct Stream<P: Protocol, S> {
    io: BufferedIo<S>,
    phase: Phase<P>,
}

/// The value from which a stream is made when another machine spawns it.
pub enum StreamSeed<P: Protocol, S: StreamSocket> {
    /// A connected socket.
    Connected(S, P::Seed),
    /// The address of the peer to connect to.
    Connect(S::Target, P::Seed),
}

impl<P: Protocol, S: StreamSocket> Stream<P, S> {
    /// Makes a stream on a connected socket. The protocol's `create` is called before this returns
    /// (or, for a wrapping socket, after its handshake).
    ///
    /// If the socket cannot be registered, the response is the system's error.
    pub fn connected<N>(
        socket: S,
        seed: P::Seed,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Stream<P, S>, N> {
        let mut io = BufferedIo::new(socket, P::config(&seed));
        if let Err(error) = scope.register(&mut io.socket, Interest::Both) {
            return Response::error(StreamError::Socket(error));
        }
        let flow = start_handshake(seed, &mut io, scope);
        first_response(io, flow)
    }

    /// Makes a stream that connects. When it has connected, the protocol's `create` is called; if
    /// that fails, its `not_connected`.
    ///
    /// If connecting could not even begin, the response is an error (no descriptor left; refused,
    /// by a local socket, or no room in its listener's queue, for which only a
    /// [`Connect`](crate::Connect) waits), and neither method is called.
    pub fn connect<C, N>(
        target: &S::Target,
        seed: P::Seed,
        scope: &mut Scope<'_, C>,
    ) -> Response<Stream<P, S>, N> {
        match S::connect(target, scope) {
            Ok(socket) => Stream::connecting(socket, seed, scope),
            Err(error) => Response::error(Fatal::Connect(error)),
        }
    }

    /// Makes a stream on a socket that has begun to connect.
    pub(crate) fn connecting<C, N>(
        mut socket: S,
        seed: P::Seed,
        scope: &mut Scope<'_, C>,
    ) -> Response<Stream<P, S>, N> {
        if let Err(error) = scope.register(&mut socket, Interest::Both) {
            return Response::error(StreamError::Socket(error));
        }
        let config = P::config(&seed);
        let until = scope.now() + config.connect_timeout;
        first_response(
            BufferedIo::new(socket, config),
            Flow::Wait(Phase::Connecting { seed, until }),
        )
    }

    /// Makes a stream on a socket that is registered with this machine and has connected, or is
    /// about to; `ready` must be called next.
    pub(crate) fn registered(socket: S, seed: P::Seed, until: Time) -> Stream<P, S> {
        let io = BufferedIo::new(socket, P::config(&seed));
        Stream { io, phase: Phase::Connecting { seed, until } }
    }

    /// Prepares the stream for being dropped, which its owner does next. If the peer has not taken
    /// all of the output, the connection is reset, so that the peer does not mistake the part it
    /// has for everything.
    #[cold]
    pub(crate) fn reset_if_unsent(&mut self) {
        self.io.reset_if_unsent();
    }

    /// Returns the socket's own address, if it has one. This costs a system call.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.io.socket.local_address()
    }

    /// Returns the peer's address, if the socket has one. This costs a system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.io.socket.peer_address()
    }
}

impl<P: Protocol, S> Stream<P, S> {
    /// Returns whether there is no protocol yet, because the socket is connecting or in its
    /// handshake.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Connecting { .. } | Phase::Handshaking { .. })
    }

    /// Makes the stream tell its protocol of a drain as soon as there is a protocol. It is for a
    /// drain that began while connecting.
    pub(crate) fn set_drain_pending(&mut self) {
        self.io.set_drain_pending(true);
    }

    /// Returns whether the protocol is at work: connected, and not yet done.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Returns the protocol, for inspection between turns; `None` before the connection is
    /// established and once the protocol is done.
    pub fn protocol(&self) -> Option<&P> {
        let Phase::Open(open) = &self.phase else { return None };
        open.protocol()
    }

    /// Returns how many bytes were read and not yet consumed, for scans that look for connections
    /// with large buffers. [`input_max`](crate::StreamConfig::input_max) limits it, apart from what
    /// one read may exceed that by.
    pub fn input_len(&self) -> usize {
        self.io.input.len()
    }

    /// Returns how many bytes wait to be written, including blocks and ranges of files. It exceeds
    /// [`output_high_water`](crate::StreamConfig::output_high_water) by at most the output of one
    /// call for input. Output written at a wake-up or a deadline is not limited by the stream; the
    /// protocol must limit it.
    pub fn output_len(&self) -> usize {
        self.io.output.len()
    }
}

/// Makes the first response of a machine.
fn first_response<P: Protocol, S: StreamSocket, N>(
    io: BufferedIo<S>,
    flow: Flow<Phase<P>>,
) -> Response<Stream<P, S>, N> {
    // A phase without data serves as a placeholder until `enter` sets the first one.
    let mut stream = Stream { io, phase: Phase::Flushing };
    stream.enter(flow).map(|()| stream, |seed| seed)
}

impl<P: Protocol, S: StreamSocket> Machine for Stream<P, S> {
    type Context = P::Context;
    type Seed = StreamSeed<P, S>;

    fn create(seed: StreamSeed<P, S>, scope: &mut Scope<'_, P::Context>) -> Response<Self> {
        match seed {
            StreamSeed::Connected(socket, seed) => Stream::connected(socket, seed, scope),
            StreamSeed::Connect(target, seed) => Stream::connect(&target, seed, scope),
        }
    }

    fn handle(
        mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self, Self::Seed> {
        self.on_event(event, scope).map(|()| self, |seed| seed)
    }

    #[inline(always)]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, P::Context>,
    ) -> InPlace<Self::Seed> {
        let Event::Ready(events) = event else {
            return InPlace::Handled(self.on_event(event, scope));
        };
        // Made here, not in `on_event`: nearly every event ends here, and a response, which is as
        // large as a seed, would be moved once more.
        match self.on_ready(events, scope) {
            Ok(until) => InPlace::Handled(wait_response(until)),
            Err(flow) => InPlace::Handled(self.on_ready_slow(flow, scope)),
        }
    }

    fn idle(&self) -> Option<Idle> {
        let Phase::Open(open) = &self.phase else { return None };
        // A peer that does not take its output is not idle; the least rate deals with that. Neither
        // is a peer that has sent part of its next record, however long the rest takes.
        if self.io.has_output() || self.io.socket.awaits_rest() {
            return None;
        }
        open.idle(&self.io).map(Idle::since)
    }

    fn describe(&self, to: &mut Description) {
        to.set_peer(self.io.socket.peer_address());
        to.add_held(self.io.held_bytes());
        match &self.phase {
            Phase::Connecting { .. } => to.set_state("connecting"),
            Phase::Handshaking { .. } => to.set_state("handshaking"),
            Phase::Open(open) => {
                to.set_state("open");
                open.describe(to);
            }
            Phase::Flushing => to.set_state("flushing"),
            Phase::Lingering { .. } => to.set_state("lingering"),
        }
    }

    fn type_name(&self) -> &'static str {
        type_name::<P>()
    }
}

/// Makes the response of a stream that waits, after room for its buffers was found.
#[inline(always)]
fn wait_response<N>(until: Time) -> Response<(), N> {
    Response::from_parts(Answer::Continue(()), Deadline::At(until))
}

/// Handlers leave the stream in place and respond without it: it is large, and not moving it saves
/// time.
impl<P: Protocol, S: StreamSocket> Stream<P, S> {
    /// Handles an event. It never spawns, whatever the type of seeds is.
    ///
    /// It is inlined into the loop's own code, where the event is known. Nearly always it is a call
    /// of the pass over the protocol, whose response stays in registers.
    #[inline(always)]
    pub(crate) fn on_event<S2, N>(
        &mut self,
        event: Event<S2>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        match event {
            Event::Ready(events) => match self.on_ready(events, scope) {
                Ok(until) => wait_response(until),
                Err(flow) => self.on_ready_slow(flow, scope),
            },
            rarer => self.on_other_event(rarer, scope),
        }
    }

    #[inline(never)]
    fn on_other_event<S2, N>(
        &mut self,
        event: Event<S2>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        match event {
            Event::Timeout => self.on_timeout(scope),
            // Work that a handshake has offloaded is done; no event of the socket will follow.
            Event::Wakeup if matches!(self.phase, Phase::Handshaking { .. }) => {
                self.on_ready_without_protocol(scope)
            }
            Event::Wakeup => self.call(|p, io, scope| p.wakeup(&mut io.transport(), scope), scope),
            Event::Draining(until) => {
                // Without a protocol nothing can be told yet; it is told after its first call.
                self.io.set_drain_pending(self.is_opening());
                self.call(|p, io, scope| notify_drain(p, until, io, scope), scope)
            }
            // The connection may have become busy since it was chosen.
            Event::MakeRoom if self.idle().is_some() => {
                self.step(|phase, io| make_room(phase, io, scope))
            }
            // The result of a spawn does not concern the stream, which never spawns.
            _ => Response::keep(()),
        }
    }

    /// Does what readiness makes possible. Returns until when the stream waits, or as an error what
    /// else follows; `None` if the protocol is not at work.
    #[inline(always)]
    fn on_ready(
        &mut self,
        events: EventSet,
        scope: &mut Scope<'_, P::Context>,
    ) -> Result<Time, Option<Flow<()>>> {
        self.io.record_events(events);
        // The usual case.
        let Phase::Open(open) = &mut self.phase else { return Err(None) };
        let flow = open.pass(&mut self.io, scope);
        open.wait_deadline(&flow, &mut self.io).ok_or(Some(flow))
    }

    /// Handles a deadline that has passed.
    fn on_timeout<N>(&mut self, scope: &mut Scope<'_, P::Context>) -> Response<(), N> {
        let now = scope.now();
        self.step(|phase, io| match phase {
            Phase::Connecting { seed, until } if until <= now => {
                not_connected::<P>(seed, Fatal::ConnectTimeout, scope);
                Flow::Fail(None)
            }
            Phase::Handshaking { seed, until } if until <= now => {
                not_connected::<P>(seed, Fatal::HandshakeTimeout, scope);
                abandon_handshake(io, scope)
            }
            // Before the protocol's own deadline: its output would not be taken then either.
            Phase::Open(mut open) if io.write_rate.until() <= now => {
                let flow = open.output_not_taken(io, scope);
                next_phase(open, flow, io, scope)
            }
            Phase::Open(mut open) if open.deadline <= now => {
                // It fires once, even if the protocol keeps its deadline.
                open.deadline = Time::NEVER;
                let flow =
                    open.call(|p, io, scope| p.timeout(&mut io.transport(), scope), io, scope);
                next_phase(open, flow, io, scope)
            }
            Phase::Flushing if io.write_rate.until() <= now => abort(AbortReason::NotTaken, io),
            Phase::Lingering { until, .. } if until <= now => abort(AbortReason::NotEnded, io),
            // The machine was in time after all: the deadline that fired is an older one.
            other => Flow::Wait(other),
        })
    }

    /// Calls the protocol, if there is one.
    fn call<N>(
        &mut self,
        call: impl FnOnce(P, &mut BufferedIo<S>, &mut Scope<'_, P::Context>) -> Intent<P>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        let Phase::Open(open) = &mut self.phase else {
            // There is no protocol to call: the phase, and with it the deadline, stays as it is.
            return self.step(|phase, _| Flow::Wait(phase));
        };
        let flow = open.call(call, &mut self.io, scope);
        match open.wait_deadline(&flow, &mut self.io) {
            Some(until) => Response::from_parts(Answer::Continue(()), Deadline::At(until)),
            None => self.apply_flow(flow, scope),
        }
    }

    /// Handles readiness that did not leave the stream waiting; `flow` is the error of `on_ready`.
    fn on_ready_slow<N>(
        &mut self,
        flow: Option<Flow<()>>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        match flow {
            Some(flow) => self.apply_flow(flow, scope),
            None => self.on_ready_without_protocol(scope),
        }
    }

    /// Returns what follows from a pass over the protocol that did not leave it waiting.
    #[inline(never)]
    fn apply_flow<N>(
        &mut self,
        flow: Flow<()>,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        self.step(|phase, io| match phase {
            Phase::Open(open) => next_phase(open, flow, io, scope),
            other => Flow::Wait(other),
        })
    }

    /// Handles readiness before the protocol is at work, and after its end.
    #[inline(never)]
    fn on_ready_without_protocol<N>(
        &mut self,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<(), N> {
        self.step(|phase, io| match phase {
            Phase::Connecting { seed, until } => check_connected(seed, until, io, scope),
            Phase::Handshaking { seed, until } => handshake(seed, until, io, scope),
            Phase::Flushing => flush_and_close(io, scope),
            Phase::Lingering { until, left } => linger(io, until, left),
            // `on_ready` has made the pass over it.
            Phase::Open(open) => Flow::Wait(Phase::Open(open)),
        })
    }

    /// Makes a step from one phase to the next. If `step` panics, the phase does not matter: the
    /// machine is gone.
    #[inline]
    fn step<N>(
        &mut self,
        step: impl FnOnce(Phase<P>, &mut BufferedIo<S>) -> Flow<Phase<P>>,
    ) -> Response<(), N> {
        let phase = std::mem::replace(&mut self.phase, Phase::Flushing);
        let flow = step(phase, &mut self.io);
        self.enter(flow)
    }

    /// Enters the next phase and makes the response. This sets the deadline except where the stream
    /// merely waits.
    fn enter<N>(&mut self, flow: Flow<Phase<P>>) -> Response<(), N> {
        let (phase, again) = match flow {
            Flow::Wait(phase) => (phase, false),
            Flow::Again(phase) => (phase, true),
            Flow::Done => return Response::done(),
            Flow::Reset => {
                self.io.reset();
                return Response::done();
            }
            Flow::Fail(error) => {
                self.io.reset_if_unsent();
                return error.map_or_else(Response::done, Response::error);
            }
        };
        let stalled = self.io.write_rate.until();
        let deadline = match &phase {
            Phase::Open(open) => open.deadline.min(stalled),
            Phase::Flushing => stalled,
            Phase::Connecting { until, .. }
            | Phase::Handshaking { until, .. }
            | Phase::Lingering { until, .. } => *until,
        };
        self.phase = phase;
        let response = if again { Response::again(()) } else { Response::ok(()) };
        response.deadline(deadline)
    }
}

impl<P: Protocol, S: StreamSocket> Accepted<S> for Stream<P, S>
where
    P::Seed: Clone,
{
    type Shared = P::Seed;

    fn accepted(
        socket: S,
        _: Option<SocketAddr>,
        shared: P::Seed,
        scope: &mut Scope<'_, P::Context>,
    ) -> Response<Self> {
        Stream::connected(socket, shared, scope)
    }
}

impl<P: Protocol, S> fmt::Debug for Stream<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            Phase::Connecting { .. } => "Connecting",
            Phase::Handshaking { .. } => "Handshaking",
            Phase::Open(_) => "Open",
            Phase::Flushing => "Flushing",
            Phase::Lingering { .. } => "Lingering",
        };
        f.debug_struct("Stream")
            .field("protocol", &type_name::<P>())
            .field("phase", &phase)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol, S: StreamSocket> fmt::Debug for StreamSeed<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamSeed::Connected(..) => "Connected",
            StreamSeed::Connect(..) => "Connect",
        })
    }
}
