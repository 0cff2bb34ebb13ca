//! Sends the responses: frame by frame, the most urgent stream first. Responses never fill the
//! output up to its mark, so that the frames of the peer are read at all times.

use super::Streams;
use super::head_text::encode;
use crate::frame_output::{Data, DataOutcome, SentData, TrailerOutput, room};
use crate::h1::response::{Ending, ResponseState};
use crate::h2::frame::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, flag, kind};
use crate::h2::frame_writer::frame_header;
use crate::h2::{Priority, StreamEvent, TurnOutcome};
use crate::server::config::ServerConfig;
use crate::server::exchange::Exchange;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::Event;

impl<S: Server> Streams<S> {
    /// Sends what can be sent. Handlers whose response is sent are told so, and may write more.
    pub(super) fn pump(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        // Above the mark nothing is read until the output has gone down to half of it. That would
        // happen late, or never, if each wake-up and each deadline filled the output again.
        self.waits_for_room = io.transport.is_input_held() && !self.schedule.is_empty();
        if self.waits_for_room {
            return;
        }
        while let Some(stream) = self.schedule.next_stream() {
            let Some(at) = self.find(stream) else { break };
            let turn = self.send(at, io);
            match turn {
                TurnOutcome::Over => {}
                TurnOutcome::NoWindow => self.schedule.skip_turn(self.children[at].priority),
                TurnOutcome::GoesOn | TurnOutcome::NoRoom => {
                    self.schedule.keep_turn(stream, self.children[at].priority);
                }
            }
            if turn == TurnOutcome::NoRoom {
                self.waits_for_room = true;
                break;
            }
            if self.children[at].tunnel.is_some() {
                self.run_tunnel(at, Event::Pass, io);
            } else if self.children[at].is_flushed() {
                self.step(at, io, Exchange::flushed);
            } else {
                self.update_child(at, io);
            }
        }
    }

    /// Adds a child to the schedule if it has something that may be sent; otherwise removes it.
    pub(super) fn schedule_child(&mut self, at: usize) {
        let outbound = self.frames.window().credit();
        let child = &mut self.children[at];
        let may_send = if !child.state.is_sending() {
            false
        } else if !child.has_sent_head {
            // Without a status, the output has interim responses.
            let is_whole = child.is_head_done() || child.ending() == Ending::Unstarted;
            is_whole && !child.output.is_empty()
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
            self.schedule.insert(child.id, child.priority);
        } else {
            self.schedule.remove(child.id, child.priority);
        }
    }

    /// Sends one frame of a child (or all frames of its head).
    fn send(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) -> TurnOutcome {
        let room = room(io.transport.output, output_mark(io.config));
        let child = &mut self.children[at];
        let (stream, is_complete) = (child.id, child.is_complete());
        let trailers = child.trailers_len();
        if !child.has_sent_head {
            let Some(head) =
                encode(child.output.front(), self.frames.encoder(), &mut self.space.block)
            else {
                // The head is not complete yet; the schedule gets the child back once it is.
                return TurnOutcome::Over;
            };
            if !self.frames.fits_or_discard(&self.space.block, room, io.transport.output) {
                return TurnOutcome::NoRoom;
            }
            child.output.discard(head.len);
            child.has_sent_head = !head.is_interim;
            let is_end = child.has_sent_head
                && is_complete
                && child.output.is_empty()
                && child.unsent_body_len() == 0;
            self.frames.put_block(&self.space.block, stream, is_end, io.transport.output);
            self.record_sent(at, is_end, true, io);
            return TurnOutcome::Over;
        }
        let left = child.unsent_body_len();
        if left == 0 {
            let trailing = TrailerOutput {
                waiting: &mut child.output,
                trailers,
                block: &mut self.space.block,
            };
            if !self.frames.put_end(trailing, stream, room, io.transport.output) {
                return TurnOutcome::NoRoom;
            }
            self.record_sent(at, true, true, io);
            return TurnOutcome::Over;
        }
        let is_all = is_complete && trailers == 0;
        // If there is no other stream, its frames need not be shorter.
        let most = if self.schedule.len() > 1 { child.turn.left() } else { PAYLOAD_BYTES_MAX };
        let (body, window) = child.body_and_window();
        let data = Data { stream, body, left, is_all, most, window };
        let put = self.frames.put_data(data, room, io.transport.output);
        let SentData { bytes, is_end, is_cut, is_credited } = match put {
            DataOutcome::Sent(sent) => sent,
            DataOutcome::NoWindow => return TurnOutcome::NoWindow,
            DataOutcome::NoRoom => return TurnOutcome::NoRoom,
        };
        child.send_watch.count_sent(bytes, io.config.limits_ref(), io.scope.now());
        let turn = child.turn.count(bytes, is_cut);
        if self.frames.window().credit() == 0 {
            self.next_turn = if turn == TurnOutcome::GoesOn { stream } else { stream + 1 };
        }
        self.record_sent(at, is_end, is_credited, io);
        turn
    }

    fn record_sent(
        &mut self,
        at: usize,
        is_end: bool,
        is_credited: bool,
        io: &Io<'_, '_, '_, S::Context>,
    ) {
        if is_credited {
            self.floods.allow_for_sent(1, &io.config.http2_ref().floods);
        }
        let child = &mut self.children[at];
        // The stream was open: the schedule has no stream that has ended.
        child.state = child.state.after(StreamEvent::Sent { is_end }).unwrap_or(child.state);
    }

    /// Sends a whole response at once, if nothing delays it: no other stream, no window, no mark.
    /// Otherwise does nothing and returns `false`.
    pub(super) fn send_immediately(
        &mut self,
        stream: u32,
        state: &ResponseState,
        priority: Priority,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> bool {
        if self.schedule.is_ahead_of(priority) || state.trailers_len() > 0 {
            return false;
        }
        let output = &mut *io.transport.output;
        let room = room(output, output_mark(io.config));
        let Some(head) = encode(self.scratch.front(), self.frames.encoder(), &mut self.space.block)
        else {
            return false;
        };
        let body = self.scratch.len() - head.len;
        let window = self.frames.window().credit().min(self.frames.peer().initial_window as usize);
        let block = self.space.block.len();
        if head.is_interim
            || body > window
            || body > PAYLOAD_BYTES_MAX
            || block > PAYLOAD_BYTES_MAX
            || block + body + 2 * FRAME_HEADER_BYTES > room
        {
            self.frames.encoder().discard_block();
            return false;
        }
        self.scratch.discard(head.len);
        self.floods.allow_for_sent(1 + u32::from(body > 0), &io.config.http2_ref().floods);
        let ends = if body == 0 { flag::END_STREAM } else { 0 };
        let headers = frame_header(block, kind::HEADERS, flag::END_HEADERS | ends, stream);
        if body == 0 {
            let _open = output.write_pieces(&[&headers, &self.space.block]);
            return true;
        }
        let data = frame_header(body, kind::DATA, flag::END_STREAM, stream);
        let front = self.scratch.front();
        if front.len() == body {
            let _open = output.write_pieces(&[&headers, &self.space.block, &data, front]);
            self.scratch.discard(body);
        } else {
            let _open = output.write_pieces(&[&headers, &self.space.block, &data]);
            let _all = self.scratch.move_to(output, body);
        }
        self.frames.consume_window(body);
        true
    }
}

/// Returns how far responses may fill the output. A sixteenth of the mark is left for responses to
/// the frames of the peer: 4 KiB are three hundred acknowledgements.
fn output_mark(config: &ServerConfig) -> usize {
    let most = config.limits_ref().output_high_water;
    most - most / 16
}
