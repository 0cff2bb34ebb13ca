//! A connection that speaks HTTP/2: many requests at once, each with an exchange like those of
//! HTTP/1.1. They share two windows, two tables of fields and one output.
//!
//! ```text
//!          next: a job            head written                 handler done, both ended
//!   (none) ────────────▶ child ─────────────────▶ stream begins ─────────────────────────▶ (none)
//!                          │                          │
//!                          └─ done before it began    ├─ done sooner, cancelled, late: RST_STREAM(CANCEL)
//!                                                     ├─ nothing missing but END_STREAM: waits for that
//!                                                     └─ refused, not processed: given back
//! ```
//!
//! A child is a part of the machine: a handler's notifiers wake it under its key. The key is not
//! the number of its stream, because streams must begin in the order of their numbers, and handlers
//! may write their heads in another order.

mod begin;
mod child;
mod end;
mod events;
mod fields;
mod frames;
mod head_text;
mod held_heads;
mod loss;
mod outlet;
mod resets;
mod steps;
mod tunnels;

use std::fmt;

use rotor_core::{Deadline, Time};
use rotor_stream::Share;

use self::child::Child;
use self::loss::Loss;
use super::config::ClientConfig;
use super::counters::Counters;
use super::handler::Client;
use super::io::Io;
use super::request_source::{RequestSource, Room};
use super::requests::ConnectionFlow;
use crate::flow::{BATCH, Flow, Wait};
use crate::frame_output::{self, FrameOutput};
use crate::h2::frame::{FrameHeader, PREFACE};
use crate::h2::settings::{WINDOW_DEFAULT, setting};
use crate::h2::{
    BodiesWatch, FieldReader, FieldSpace, FloodBuckets, GrantWatch, Ledger, ReceiveWindow,
    ResetStreams, Schedule, SettingsWatch, Violation, frame_writer,
};
use crate::tunnel::PendingDrain;

/// A connection that speaks HTTP/2.
pub(super) struct Streams<K: Client, F> {
    source: F,
    phase: Phase,
    reader: FieldReader,
    frames: FrameOutput,
    /// Temporary space for decoding and encoding fields.
    space: FieldSpace,
    inbound: ReceiveWindow,
    /// In the order of their keys, which only grow.
    #[expect(clippy::vec_box, reason = "they are large, and move when one before them ends")]
    children: Vec<Box<Child<K>>>,
    /// Streams that have begun, in their order, with the keys of their children.
    streams: Vec<(u32, u32)>,
    schedule: Schedule,
    /// From which child on children are scheduled again, after the window of the connection was used
    /// up and none was left in the schedule. So their turns go on where they stopped.
    next_turn: u32,
    floods: FloodBuckets,
    /// Once there were too many resets: how many were counted that no request has. Only so many more
    /// begin.
    spare_resets: Option<u32>,
    /// When the next one may be counted, if a request needs it.
    spare_reset_at: Time,
    next_key: u32,
    next_stream: u32,
    /// The number of requests that were begun, and of those that got their response.
    started: u64,
    served: u64,
    /// Whether it has waited for a request while none was under way.
    has_been_idle: bool,
    /// Whether no further request may begin on this connection.
    is_closing: bool,
    /// Whether the loop drains, or an operator ends this connection: protocols that still begin are
    /// told.
    is_draining: bool,
    /// Whether the source must be called: it may have a request, or must be told something.
    must_call_feed: bool,
    /// The room that the source was last told.
    room: Option<Room>,
    /// Streams that this side has reset.
    reset_streams: ResetStreams,
    /// Until when the server has to acknowledge our settings.
    settings_watch: SettingsWatch,
    /// Since when no request has been under way.
    idle_since: Time,
    /// No child has an earlier deadline than this.
    until: Time,
    /// When the server last showed that it is there: something arrived, or waiting output was
    /// taken.
    last_alive: Time,
    /// The number of bytes of an incomplete frame that had arrived by then.
    partial_frame_len: usize,
    /// The number of unsent bytes after the last call, if the socket was full before that call;
    /// otherwise 0.
    unsent: usize,
    /// Until when a PING must be answered, if one is under way.
    ping_until: Option<Time>,
    /// The earliest time for the next PING: servers that send nothing tolerate few of them.
    next_ping: Time,
    /// Whether one PING may be sent sooner, for a request that has begun since.
    has_spare_ping: bool,
    /// Whether a request could begin if the server accepted more at a time.
    waits_for_stream: bool,
    share: Share,
    bodies_watch: BodiesWatch,
    /// How fast the server opens the window of the connection.
    grant_watch: GrantWatch,
    /// Whether more could be sent if there were room.
    waits_for_room: bool,
    /// Whether the server sends no more.
    is_read_closed: bool,
    /// A drain of which the protocols of tunnels have not been told yet.
    tunnel_drain: Option<PendingDrain>,
}

/// The phase of the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The server's settings, which are its first frame, are still to come.
    Settings,
    Open,
}

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Makes a new connection, and writes the preface and our settings.
    pub(super) fn new(source: F, io: &mut Io<'_, '_, '_, K::Context>) -> Streams<K, F> {
        Counters::add(&io.config.counters_ref().http2_connections);
        let (config, now) = (io.config.http2_ref(), io.scope.now());
        let mut settings = PREFACE.to_vec();
        frame_writer::settings(
            &[
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, config.stream_window),
                (setting::MAX_HEADER_LIST_SIZE, list_bytes_max(io.config) as u32),
            ],
            &mut settings,
        );
        write_frame(io, &settings);
        Streams {
            source,
            phase: Phase::Settings,
            reader: FieldReader::new(),
            frames: FrameOutput::new(),
            space: FieldSpace::new(),
            inbound: ReceiveWindow::with_known(WINDOW_DEFAULT, config.connection_window),
            children: Vec::new(),
            streams: Vec::new(),
            schedule: Schedule::new(),
            next_turn: 0,
            floods: FloodBuckets::new(&config.floods, now),
            spare_resets: None,
            spare_reset_at: Time::NEVER,
            next_key: 1,
            next_stream: 1,
            started: 0,
            served: 0,
            has_been_idle: false,
            is_closing: false,
            is_draining: false,
            must_call_feed: true,
            room: None,
            reset_streams: ResetStreams::default(),
            settings_watch: SettingsWatch::begin(config.settings_timeout, now),
            idle_since: now,
            until: Time::NEVER,
            last_alive: now,
            partial_frame_len: 0,
            unsent: 0,
            ping_until: None,
            next_ping: now,
            has_spare_ping: true,
            waits_for_stream: false,
            share: Share::NONE,
            bodies_watch: BodiesWatch::new(&io.config.limits, now),
            grant_watch: GrantWatch::new(&io.config.limits, now),
            waits_for_room: false,
            is_read_closed: false,
            tunnel_drain: None,
        }
    }

    /// Begins with the first request of a new connection.
    pub(super) fn begin_first(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        self.proceed(io)
    }

    /// Processes the frames that have arrived, and sends what can be sent.
    pub(super) fn advance(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        // This is also called for a drain, which says nothing about the server.
        if io.transport.input.len() > self.partial_frame_len {
            self.record_liveness(io);
        }
        self.space.acquire();
        let unread = io.transport.input.len();
        let mut frames = 0;
        // What is left behind an end or a violation is not for us.
        while frames < BATCH && !self.is_read_closed {
            let taken = match self.take_frame(io) {
                Err(Violation::Stream(stream, code)) => {
                    self.fail_stream(stream, code, io).map(|()| true)
                }
                taken => taken,
            };
            match taken {
                Ok(true) => frames += 1 + self.reader.take_steps(),
                Ok(false) => break,
                Err(violation) => return self.fail(violation, io),
            }
        }
        // The stream has counted one call itself.
        io.transport.count_calls(frames.saturating_sub(1));
        self.partial_frame_len = io.transport.input.len();
        let handled = unread.saturating_sub(self.partial_frame_len);
        self.settings_watch.count(handled);
        let input = &*io.transport.input;
        let is_rest_partial = self.is_read_closed || input.len() < FrameHeader::needed(input);
        if PendingDrain::is_due(&mut self.tunnel_drain, handled, is_rest_partial) {
            self.drain_tunnels(io);
        }
        self.proceed(io)
    }

    /// Records that the server has sent something, whatever it is: it is there.
    fn record_liveness(&mut self, io: &Io<'_, '_, '_, K::Context>) {
        (self.last_alive, self.ping_until) = (io.scope.now(), None);
        self.partial_frame_len = io.transport.input.len();
    }

    /// Makes one step, and checks whether the socket has taken some of the waiting output since the
    /// last one.
    ///
    /// A PING is queued behind earlier output, so its answer may be late only because of that. A
    /// socket that was full takes more only after the server has taken some, so the server is
    /// there.
    pub(in crate::client) fn step_tracking_output(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
        step: impl FnOnce(&mut Self, &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K>,
    ) -> ConnectionFlow<K> {
        let waits = io.transport.unsent_len();
        if waits < self.unsent {
            let now = io.scope.now();
            self.last_alive = now;
            if let Some(until) = &mut self.ping_until {
                *until = now + io.config.http2_ref().ping_timeout;
            }
        }
        let made = step(self, io);
        // How much an empty socket takes at once says nothing about the server.
        self.unsent = if waits > 0 { io.transport.unsent_len() } else { 0 };
        made
    }

    /// Begins and sends what is possible, and waits for the next event.
    fn proceed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        self.space.acquire();
        loop {
            self.begin_waiting(io);
            self.take_requests(io);
            self.send_window_update(io);
            self.send_scheduled(io);
            // Sending may have ended a request, and so made room for another.
            if !self.must_call_feed {
                break;
            }
        }
        if self.count_held(io).is_err() {
            Counters::add(&io.config.counters_ref().without_room);
            self.fail_all(&Loss::NoRoom, io.config, io.scope);
            return self.close(io);
        }
        // A connection that accepts no requests at all would only occupy a place of its origin. A new
        // one may have as many resets as this one had.
        let takes_none = self.spare_resets == Some(0)
            || self.phase == Phase::Open && self.frames.peer().streams_max == 0;
        let is_ending = self.is_closing || self.is_read_closed || takes_none;
        // Children whose end is all that is missing do not count.
        if is_ending && self.children.iter().all(|child| child.is_handler_done()) {
            return self.close(io);
        }
        self.space.release();
        Flow::Wait(self.wait(io))
    }

    fn wait(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Wait {
        let deadline = Deadline::At(self.deadline(io.config));
        let wait = match self.is_read_closed {
            false => Wait::input(Some(FrameHeader::needed(io.transport.input)), deadline),
            // A request that goes on after its response fails if the connection is lost.
            true if self.children.iter().any(|child| child.state.is_sending()) => {
                Wait::input(None, deadline)
            }
            // Handlers may still hold complete responses, which are not lost with the connection.
            true => Wait::held(deadline),
        };
        let unsent = io.transport.output.len();
        // With half of the mark left, the server is kept busy while more frames are written.
        let half = io.config.limits.output_high_water / 2;
        let flush = self.waits_for_room.then(|| half.min(unsent.saturating_sub(1)));
        wait.or_flush(flush)
    }

    /// Returns the earliest deadline of the connection.
    fn deadline(&self, config: &ClientConfig) -> Time {
        let until = self
            .settings_watch
            .until()
            .min(self.until)
            .min(self.spare_reset_at)
            .min(self.ping_until.unwrap_or(Time::NEVER))
            .min(self.reader.until());
        if self.children.is_empty() {
            until.min(self.idle_since + config.limits.unused_timeout)
        } else if self.ping_until.is_none() && !self.is_read_closed {
            until.min(self.ping_at(config))
        } else {
            until
        }
    }

    /// Returns when the server is to get a PING, unless it sends something before.
    fn ping_at(&self, config: &ClientConfig) -> Time {
        self.next_ping.max(self.last_alive + config.http2_ref().ping_after)
    }

    /// Returns the windows, as this side knows them.
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.sends.insert(0, self.frames.window().balance());
        ledger.receives.insert(0, self.inbound.left().into());
        for child in &self.children {
            let Some(stream) = child.stream else { continue };
            ledger.sends.insert(stream, child.outbound.balance());
            ledger.receives.insert(stream, child.intake.left().into());
        }
        ledger
    }

    /// Returns the position of the child with this key.
    fn find_child(&self, key: u32) -> Option<usize> {
        self.children.binary_search_by_key(&key, |child| child.key).ok()
    }

    /// Returns the position of a stream's child.
    fn find_stream(&self, stream: u32) -> Option<usize> {
        let at = self.streams.binary_search_by_key(&stream, |(own, _)| *own).ok()?;
        self.find_child(self.streams[at].1)
    }

    /// Tells the server how much of the connection's window was released.
    fn send_window_update(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        if !self.is_read_closed
            && let Some(more) = self.inbound.update_of_held()
        {
            write_frame(io, &frame_writer::window_update(0, more));
        }
    }

    /// Counts the memory of bodies and requests, and of what the server has left incomplete, in
    /// addition to the input and the output of the connection.
    fn count_held(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Result<(), rotor_stream::NoRoom> {
        let besides = self.reader.held_bytes() + self.reset_streams.held_bytes();
        if self.children.is_empty() && self.share.bytes() == 0 && besides == 0 {
            return Ok(());
        }
        let held: usize = self.children.iter().map(|child| child.held_bytes()).sum();
        // Rounded like the counts of streams, so that small changes rarely change the total.
        self.share.set((held + besides).next_multiple_of(1024), io.config.held_ref())
    }

    fn record_deadline(&mut self, time: Time) {
        self.until = self.until.min(time);
    }
}

/// Returns how many bytes of fields a response may have, counting 32 more for each field.
fn list_bytes_max(config: &ClientConfig) -> usize {
    config.limits.head_bytes_max
}

/// Writes a frame at once: frames that answer those of the server do not wait for their turn. Their
/// number is limited by what the server may make us send.
fn write_frame<C>(io: &mut Io<'_, '_, '_, C>, frame: &[u8]) {
    frame_output::put(io.transport.output, frame);
}

impl<K: Client, F> fmt::Debug for Streams<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("children", &self.children.len())
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}
