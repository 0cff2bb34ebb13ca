//! A connection that speaks HTTP/2: its streams, and what they share: two windows, two field
//! tables, one output. Each stream has an exchange, of which a connection of HTTP/1.1 has one at a
//! time.
//!
//! ```text
//!            HEADERS                              handler done              all sent, peer ended
//!   (none) ────────────▶ child with an exchange ──────────────▶ child that sends ──────────▶ (none)
//!      │                     │        ▲                            │
//!      └─ answered at once,  └────────┘ DATA, wake-ups, times      └─ the peer still sends: dropped,
//!         all sent: none                                              then RST_STREAM(NO_ERROR)
//! ```
//!
//! Each stream is a part of the machine, and its stream number is the part number. A handler's
//! notifiers wake it under that number, which is never used twice on a connection.

mod blocks;
mod bodies;
mod child;
mod collecting;
mod end;
mod events;
mod frames;
mod head_text;
mod nuisances;
mod outlet;
mod priorities;
mod requests;
mod steps;
mod tunnels;
mod windows;

use std::fmt;

use rotor_core::{Deadline, Time};
use rotor_stream::{Output, Share};

use self::child::Child;
use super::age::AgeLimit;
use super::config::ServerConfig;
use super::counters::Counters;
use super::handler::Server;
use super::handler::UpgradeSeed;
use super::io::Io;
use crate::flow::{BATCH, Flow, Wait};
use crate::frame_output::{self, FrameOutput};
use crate::h2::frame::{FrameHeader, PREFACE, U31_MAX};
use crate::h2::settings::{WINDOW_DEFAULT, setting};
use crate::h2::{
    BodiesWatch, ErrorCode, FieldReader, FieldSpace, FloodBuckets, GrantWatch, Ledger, Priority,
    ReceiveWindow, ResetStreams, Schedule, SettingsWatch, StreamState, Violation, frame_writer,
};
use crate::no_upgrade::is_possible;
use crate::tunnel::PendingDrain;

/// The result of a step: the connection is over. It never switches to another protocol.
pub(super) type StreamsFlow<S> = Flow<Option<UpgradeSeed<S>>>;

/// The result of a frame, or an error of its stream or its connection.
type FrameResult = Result<(), Violation>;

/// A connection that speaks HTTP/2.
pub(super) struct Streams<S: Server> {
    seed: S::Seed,
    phase: Phase,
    shutdown: ShutdownState,
    /// The loop drains, or an operator ends this connection: requests that still come are told.
    is_draining: bool,
    reader: FieldReader,
    frames: FrameOutput,
    /// Buffers for decoding and encoding fields, borrowed during a step.
    space: FieldSpace,
    inbound: ReceiveWindow,
    /// In the order of their numbers, which only grow. Boxed, because they are large and move when
    /// an earlier one ends.
    children: Vec<Box<Child<S>>>,
    schedule: Schedule,
    /// From which stream on streams are scheduled again, after the window of the connection was used
    /// up and none was left in the schedule. So their turns go on where they stopped.
    next_turn: u32,
    floods: FloodBuckets,
    /// The highest stream that the peer has begun.
    last_stream: u32,
    /// The last stream of our latest GOAWAY; none may name a higher one than before (RFC 9113
    /// §6.8).
    last_announced: u32,
    request_count: u64,
    age: AgeLimit,
    /// Streams that we have reset.
    reset_streams: ResetStreams,
    /// Priorities for streams that have not begun yet.
    pending_priorities: Vec<(u32, Priority)>,
    /// Whether the peer has sent any priority.
    uses_priorities: bool,
    /// Where handlers write their first response, which may be sent at once.
    scratch: Output,
    /// The time until which the peer has to acknowledge our settings.
    settings: SettingsWatch,
    /// Since when nothing is under way.
    idle_since: Time,
    /// No child has an earlier deadline than this.
    until: Time,
    /// Memory used by the responses that wait.
    held_output: usize,
    /// Bytes of the bodies that are collected for their handlers.
    collected: usize,
    /// Whether some of these bodies may be held back.
    has_held_back: bool,
    share: Share,
    bodies: BodiesWatch,
    /// How fast the peer opens the window of the connection.
    granted: GrantWatch,
    /// Whether more could be sent if there were room.
    waits_for_room: bool,
    /// Whether the peer has closed its sending side.
    is_read_closed: bool,
    /// A drain of which the protocols of tunnels have not been told yet.
    tunnel_drain: Option<PendingDrain>,
}

/// The progress of the connection's start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The preface has not arrived yet.
    Preface,
    /// The peer's settings, which must be its first frame, have not arrived yet.
    Settings,
    Open,
}

/// Whether further requests are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShutdownState {
    Open,
    /// The peer was told that the connection will end, but may not know that yet.
    Announced(Time),
    /// The peer knows which request was the last.
    Final,
}

impl<S: Server> Streams<S> {
    /// Creates the connection before its preface, for which it has waited since `since`, and writes
    /// our settings. `is_draining` is set if it is to end, which the loop may not know.
    pub(super) fn new(
        seed: S::Seed,
        since: Time,
        is_draining: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Streams<S> {
        Counters::add(&io.config.counters_ref().http2_connections);
        let (config, now) = (io.config.http2_ref(), io.scope.now());
        let mut settings = Vec::new();
        let pairs = [
            (setting::MAX_CONCURRENT_STREAMS, config.streams_max),
            (setting::INITIAL_WINDOW_SIZE, config.stream_window),
            (setting::MAX_HEADER_LIST_SIZE, list_bytes_max(io.config) as u32),
            (setting::NO_RFC7540_PRIORITIES, 1),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
        ];
        // The last pair only if there is a protocol.
        let count = pairs.len() - usize::from(!offers_protocols::<S>(io.config));
        frame_writer::settings(&pairs[..count], &mut settings);
        let mut streams = Streams {
            seed,
            phase: Phase::Preface,
            shutdown: ShutdownState::Open,
            is_draining,
            reader: FieldReader::new(),
            frames: FrameOutput::new(),
            space: FieldSpace::new(),
            inbound: ReceiveWindow::with_known(WINDOW_DEFAULT, config.connection_window),
            children: Vec::new(),
            schedule: Schedule::new(),
            next_turn: 0,
            floods: FloodBuckets::new(&config.floods, now),
            last_stream: 0,
            last_announced: STREAM_MAX,
            request_count: 0,
            age: AgeLimit::start(io.config.limits_ref(), io.scope),
            reset_streams: ResetStreams::default(),
            pending_priorities: Vec::new(),
            uses_priorities: false,
            scratch: Output::new(),
            settings: SettingsWatch::begin(config.settings_timeout, now),
            idle_since: since,
            until: Time::NEVER,
            held_output: 0,
            collected: 0,
            has_held_back: false,
            share: Share::NONE,
            bodies: BodiesWatch::new(io.config.limits_ref(), now),
            granted: GrantWatch::new(io.config.limits_ref(), now),
            waits_for_room: false,
            is_read_closed: false,
            tunnel_drain: None,
        };
        write_frame(io, &settings);
        streams.send_window_update(io);
        // A connection that is accepted during a drain gets no event for the drain.
        if is_draining || io.scope.draining_until().is_some() {
            streams.announce_end(io);
        }
        streams
    }

    /// Handles the frames that have arrived, and sends what can be sent.
    pub(super) fn advance(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        self.space.acquire();
        let (unread, began) = (io.transport.input.len(), io.scope.now());
        let mut frames = 0;
        while frames < BATCH {
            let taken = match self.take_frame(io) {
                Err(Violation::Stream(stream, code)) => {
                    self.reset_for_violation(stream, code, io).map(|()| true)
                }
                taken => taken,
            };
            match taken {
                Ok(true) => frames += 1 + self.reader.take_steps(),
                Ok(false) => break,
                Err(violation) => return self.fail(violation, io),
            }
            if io.scope.now() != began {
                // A handler has blocked, and the next one may. What is finished is sent before.
                frames = u32::MAX;
            }
        }
        // The stream has counted one for the call.
        io.transport.count_calls(frames.saturating_sub(1));
        let rest = io.transport.input.len();
        let handled = unread.saturating_sub(rest);
        self.settings.count(handled);
        self.drain_tunnels_if_due(handled, io);
        if rest > 0 || self.reader.until() != Time::NEVER {
            let until = io.scope.now() + io.config.limits_ref().head_timeout;
            self.reader.watch_frame(io.transport.input, frames > 0, until);
        }
        self.proceed(io)
    }

    /// Sends what can be sent, and waits for what is next.
    fn proceed(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        self.space.acquire();
        self.resume_held_bodies(io);
        self.send_window_update(io);
        self.pump(io);
        if self.count_held(io).is_err() {
            return self.fail_for_room(io);
        }
        let is_closing = self.is_read_closed || self.shutdown == ShutdownState::Final;
        if is_closing && self.children.is_empty() {
            return Flow::Done(None);
        }
        self.space.release();
        Flow::Wait(self.wait(io))
    }

    fn wait(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let unsent = io.transport.output.len();
        // With half of the mark left, the peer is kept busy while more is put into frames.
        let half = io.config.limits_ref().output_high_water / 2;
        let flush = self.waits_for_room.then(|| half.min(unsent.saturating_sub(1)));
        let deadline = match self.deadline(io.config) {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        };
        let has_sent_all = |child: &Child<S>| child.tunnel.is_some() && !child.state.is_sending();
        let wait = if !self.is_read_closed {
            Wait::input(Some(self.needed_input(io.transport.input)), deadline)
        } else if self.children.iter().all(|child| has_sent_all(child)) {
            // What protocols hold back is not lost with the connection.
            Wait::held(deadline)
        } else {
            Wait::input(None, deadline)
        };
        wait.or_flush(flush)
    }

    /// Returns how many bytes must be there before anything can be done with them.
    fn needed_input(&self, input: &[u8]) -> usize {
        match self.phase {
            // The first wrong byte is noticed at once.
            Phase::Preface => PREFACE.len().min(input.len() + 1),
            Phase::Settings | Phase::Open => FrameHeader::needed(input),
        }
    }

    /// Returns the earliest deadline.
    fn deadline(&self, config: &ServerConfig) -> Time {
        let limits = config.limits_ref();
        let mut until = self.settings.until().min(self.until).min(self.reader.until());
        if let ShutdownState::Announced(time) = self.shutdown {
            until = until.min(time);
        }
        if self.phase != Phase::Open {
            until = until.min(self.idle_since + limits.head_timeout);
        } else if self.children.is_empty() {
            until = until.min(self.idle_since + limits.idle_timeout);
        }
        until
    }

    /// Returns the windows as this side knows them.
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.sends.insert(0, self.frames.window().balance());
        ledger.receives.insert(0, self.inbound.left().into());
        for child in &self.children {
            ledger.sends.insert(child.id, child.outbound.balance());
            ledger.receives.insert(child.id, child.intake.left().into());
        }
        ledger
    }

    /// Returns the index of a stream's child.
    fn find(&self, stream: u32) -> Option<usize> {
        self.children.binary_search_by_key(&stream, |child| child.id).ok()
    }

    /// Returns the index of a stream's child, unless the stream is closed.
    fn find_open(&self, stream: u32) -> Option<usize> {
        self.find(stream).filter(|at| self.children[*at].state != StreamState::Closed)
    }

    /// Sends an update for the part of the connection's window that was released.
    fn send_window_update(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        if !self.is_read_closed
            && let Some(more) = self.inbound.update_of_held()
        {
            write_frame(io, &frame_writer::window_update(0, more));
        }
    }

    /// Returns how many bytes the response of this child may keep waiting, besides those of the
    /// others.
    fn room(&self, child: usize, config: &ServerConfig) -> usize {
        /// Each child may have this much: a handler that waits for room and has no output would
        /// never be told that there is some.
        const ROOM_MIN: usize = 4 << 10;
        let own = self.children.get(child).map_or(0, |child| child.output.len());
        let of_all = config.http2_ref().unsent_bytes_max.saturating_sub(self.held_output);
        of_all.max(ROOM_MIN.saturating_sub(own))
    }

    /// Counts the memory of bodies, responses and requests, and of what the peer has left
    /// incomplete, besides the connection's input and output.
    fn count_held(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Result<(), rotor_stream::NoRoom> {
        let besides = self.reader.held_bytes() + self.reset_streams.held_bytes();
        if self.children.is_empty() && self.share.bytes() == 0 && besides == 0 {
            return Ok(());
        }
        let inputs: usize = self.children.iter().map(|child| child.input.capacity()).sum();
        // Rounded down, so that the few requests of most connections never change the total.
        let requests = self.children.len() * size_of::<Child<S>>() / 4096 * 4096;
        // In steps, as streams do it, so that small changes rarely change the total.
        let held = (inputs + self.held_output + requests + besides).next_multiple_of(1024);
        self.share.set(held, &io.config.held())
    }

    fn record_deadline(&mut self, time: Time) {
        self.until = self.until.min(time);
    }
}

/// Returns whether streams may switch to other protocols.
fn offers_protocols<S: Server>(config: &ServerConfig) -> bool {
    is_possible::<S::Upgrade>() && config.http2_ref().connect_protocol
}

/// Returns how many bytes of fields a request may have, with 32 added for each field.
fn list_bytes_max(config: &ServerConfig) -> usize {
    config.limits_ref().head_bytes_max
}

/// Writes a frame at once: frames that respond to those of the peer do not wait for their turn.
/// Their number is limited, because the number of the peer's frames is.
fn write_frame<C>(io: &mut Io<'_, '_, '_, C>, frame: &[u8]) {
    frame_output::put(io.transport.output, frame);
}

/// The highest stream number: for a GOAWAY that refuses nothing yet.
const STREAM_MAX: u32 = U31_MAX;

/// The code for a stream or connection that ends without an error.
const GRACEFUL: ErrorCode = ErrorCode::NoError;

impl<S: Server> fmt::Debug for Streams<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("last", &self.last_stream)
            .field("children", &self.children.len())
            .finish_non_exhaustive()
    }
}
