//! Sends frames. Requests take turns, and the output stays below its high-water mark, so that a
//! large body delays no other request.

use super::child::Child;
use super::head_text::{encode, fits, names_one_protocol};
use super::steps::PRIORITY;
use super::{Phase, Streams};
use crate::client::error::ClientError;
use crate::client::exchange::Exchange;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::frame_output::{Data, DataOutcome, SentData, TrailerOutput, room};
use crate::h2::frame::PAYLOAD_BYTES_MAX;
use crate::h2::{ErrorCode, StreamEvent, TurnOutcome};
use crate::no_upgrade::is_possible;
use crate::tunnel::Event;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Sends what can be sent. Handlers whose output was taken are told, and may write more.
    pub(super) fn send_scheduled(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        self.waits_for_room = false;
        while let Some(key) = self.schedule.next_stream() {
            let Some(at) = self.find_child(key) else { break };
            if self.reroute_upgrade(at, io) || self.refuse_large_head(at, io) {
                continue;
            }
            let turn = self.send(at, io);
            match turn {
                TurnOutcome::Over => {}
                TurnOutcome::NoWindow => self.schedule.skip_turn(PRIORITY),
                TurnOutcome::GoesOn | TurnOutcome::NoRoom => {
                    self.schedule.keep_turn(key, PRIORITY);
                }
            }
            if turn == TurnOutcome::NoRoom {
                self.waits_for_room = true;
                break;
            }
            if self.children[at].tunnel.is_some() {
                self.run_tunnel(at, Event::Pass, io);
            } else if self.children[at].needs_flush_call() {
                self.step(at, io, Exchange::flushed);
            } else {
                self.update_child(at, io);
            }
        }
    }

    /// Adds a child to the schedule if it has something that may be sent; otherwise removes it.
    pub(super) fn schedule_child(&mut self, at: usize) {
        let (outbound, can_open_stream) = (self.frames.window().credit(), self.can_open_stream());
        let child = &mut self.children[at];
        let may_send = if !child.state.is_sending() {
            false
        } else if child.stream.is_none() {
            let is_ready =
                child.is_head_done() && (self.phase == Phase::Open || !needs_settings(child));
            self.waits_for_stream |= is_ready && !can_open_stream;
            is_ready && can_open_stream
        } else if child.unsent_body_len() > 0 {
            child.outbound.credit().min(outbound) > 0
        } else {
            child.is_complete()
        };
        if may_send == child.is_scheduled {
            return;
        }
        child.is_scheduled = may_send;
        if may_send {
            self.schedule.insert(child.key, PRIORITY);
        } else {
            self.schedule.remove(child.key, PRIORITY);
        }
    }

    /// Gives a request that is about to be sent to HTTP/1.1, if it asks for a protocol that cannot
    /// be requested here but can be over HTTP/1.1. Returns whether it did.
    fn reroute_upgrade(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) -> bool {
        let child = &mut self.children[at];
        // Checked first, because this is true for nearly all requests.
        if child.stream.is_some() || !child.offers_upgrade() || !is_possible::<K::Upgrade>() {
            return false;
        }
        let may_ask =
            self.frames.peer().connect_protocol && names_one_protocol(child.output.front());
        if may_ask || !self.source.has_http1() {
            return false;
        }
        let job =
            child.exchange.as_mut().and_then(|exchange| exchange.reclaim_for_rerouting(io.config));
        self.reroute_to_http1(at, job, io)
    }

    /// Fails a request that is about to be sent, if its fields are larger than the server has said
    /// that it accepts. It might end the connection for them, and so fail all other requests there.
    /// Returns whether the request was refused.
    fn refuse_large_head(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) -> bool {
        let child = &mut self.children[at];
        let list_bytes_max = self.frames.peer().list_bytes_max;
        if child.stream.is_some() || list_bytes_max == u32::MAX {
            return false;
        }
        let is_secure = io.transport.is_secure();
        let may_ask = self.frames.peer().connect_protocol && child.offers_upgrade();
        let text = child.output.front();
        let is_extended_connect = may_ask && names_one_protocol(text);
        if fits(text, is_secure, is_extended_connect, list_bytes_max) {
            return false;
        }
        self.fail_and_reset(at, ClientError::FieldsTooLarge, ErrorCode::Cancel, io);
        true
    }

    /// Sends one frame of a child, or all frames of a head.
    fn send(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) -> TurnOutcome {
        let room = room(io.transport.output, io.config.limits.output_high_water);
        let child = &mut self.children[at];
        let Some(stream) = child.stream else {
            // If another stream began before it, the schedule gets it again once there is room.
            return match !self.can_open_stream() || self.send_head(at, room, io) {
                true => TurnOutcome::Over,
                false => TurnOutcome::NoRoom,
            };
        };
        let (left, trailers) = (child.unsent_body_len(), child.trailers_len());
        if left > 0 {
            return self.send_body(at, stream, left, room, io);
        }
        let trailing =
            TrailerOutput { waiting: &mut child.output, trailers, block: &mut self.space.block };
        if !self.frames.put_end(trailing, stream, room, io.transport.output) {
            return TurnOutcome::NoRoom;
        }
        self.record_sent(at, true, true, io);
        TurnOutcome::Over
    }

    /// Begins the stream by sending its head. Returns false if there is no room.
    fn send_head(&mut self, at: usize, room: usize, io: &mut Io<'_, '_, '_, K::Context>) -> bool {
        let is_secure = io.transport.is_secure();
        let child = &mut self.children[at];
        let may_ask = self.frames.peer().connect_protocol && child.offers_upgrade();
        let text = child.output.front();
        let is_extended_connect = may_ask && names_one_protocol(text);
        let Some(len) = encode(
            text,
            is_secure,
            is_extended_connect,
            self.frames.encoder(),
            &mut self.space.block,
        ) else {
            debug_assert!(false, "a head that is written is whole");
            return true;
        };
        if !self.frames.fits_or_discard(&self.space.block, room, io.transport.output) {
            return false;
        }
        child.output.discard(len);
        child.is_extended_connect = is_extended_connect;
        let is_end = child.is_complete() && child.output.is_empty();
        let stream = self.next_stream;
        self.next_stream += 2;
        child.stream = Some(stream);
        if let Some(exchange) = &mut child.exchange {
            exchange.head_sent(io);
        }
        self.streams.push((stream, child.key));
        self.frames.put_block(&self.space.block, stream, is_end, io.transport.output);
        self.record_sent(at, is_end, true, io);
        true
    }

    fn send_body(
        &mut self,
        at: usize,
        stream: u32,
        left: usize,
        room: usize,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> TurnOutcome {
        let child = &mut self.children[at];
        let (key, is_complete, trailers) = (child.key, child.is_complete(), child.trailers_len());
        let is_all = is_complete && trailers == 0;
        // If there is no other stream, its frames need not be shorter.
        let most = if self.schedule.len() > 1 { child.turn.left() } else { PAYLOAD_BYTES_MAX };
        let (body, window) = child.body_and_window();
        let data = Data { stream, body, left, is_all, most, window };
        let outcome = self.frames.put_data(data, room, io.transport.output);
        let SentData { bytes, is_end, is_cut, is_credited } = match outcome {
            DataOutcome::Sent(sent) => sent,
            DataOutcome::NoWindow => return TurnOutcome::NoWindow,
            DataOutcome::NoRoom => return TurnOutcome::NoRoom,
        };
        child.send_watch.count_sent(bytes, &io.config.limits, io.scope.now());
        let turn = child.turn.count(bytes, is_cut);
        if self.frames.window().credit() == 0 {
            self.next_turn = if turn == TurnOutcome::GoesOn { key } else { key + 1 };
        }
        self.record_sent(at, is_end, is_credited, io);
        turn
    }

    fn record_sent(
        &mut self,
        at: usize,
        is_end: bool,
        is_credited: bool,
        io: &Io<'_, '_, '_, K::Context>,
    ) {
        if is_credited {
            self.floods.allow_for_sent(1, &io.config.http2_ref().floods);
        }
        let child = &mut self.children[at];
        // The stream was open: streams that have ended are not in the schedule.
        child.state = child.state.after(StreamEvent::Sent { is_end }).unwrap_or(child.state);
    }
}

/// Returns whether a request must not be sent before the server's settings have come. They say
/// whether the server allows other protocols (RFC 8441 §3), and how large fields may be: it may end
/// the connection for larger ones.
fn needs_settings<K: Client>(child: &Child<K>) -> bool {
    /// In bytes, with 32 for each field: half of the least that servers in use accept (8 KiB).
    const UNCHECKED_MAX: u32 = 4 << 10;
    child.offers_upgrade() || !fits(child.output.front(), true, false, UNCHECKED_MAX)
}
