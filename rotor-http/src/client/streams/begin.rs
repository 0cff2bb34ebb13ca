//! Takes requests from the source: which, and how many.

use super::child::Child;
use super::end::return_unsent;
use super::{Phase, Streams, write_frame};
use crate::client::exchange::Exchange;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::job::Job;
use crate::client::request_source::{Offer, RequestSource, Room};
use crate::h2::frame::U31_MAX;
use crate::h2::frame_writer;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Counts the requests, and how many more are accepted, now or once the server has sent its
    /// limit.
    fn count_room(&self, io: &Io<'_, '_, '_, K::Context>) -> Room {
        let is_last = self.is_closing
            || self.is_read_closed
            || self.started >= io.config.limits.requests_max
            // No number is used twice (RFC 9113 §5.1.1), and each request under way needs one.
            || self.next_stream > U31_MAX - 2 * io.config.http2_ref().streams_max.min(1 << 20)
            || self.next_key == u32::MAX;
        let streams_max = match self.phase {
            _ if is_last => 0,
            _ => io.config.http2_ref().streams_max.min(self.frames.peer().streams_max),
        };
        let under_way = u32::try_from(self.children.len()).unwrap_or(u32::MAX);
        Room { under_way, further: streams_max.saturating_sub(under_way) }
    }

    /// Takes requests from the source while there is room for them.
    pub(super) fn take_requests(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        while std::mem::take(&mut self.must_call_feed) {
            if self.started >= io.config.limits.requests_max {
                self.is_closing = true;
            }
            self.count_reset_ahead(io);
            let mut room = self.count_room(io);
            room.further = room.further.min(self.spare_resets.unwrap_or(u32::MAX));
            if self.room != Some(room) {
                self.room = Some(room);
                self.source.room(room, io.scope);
            }
            // The server may accept only one at a time, and requests that it refused would have to
            // be made again.
            let may_take = self.phase == Phase::Open || self.children.is_empty();
            if room.further == 0 || !may_take {
                return;
            }
            match self.source.next(self.started == 0, io.scope) {
                Offer::Job(job) => {
                    // The source knows that one was taken.
                    let (under_way, further) = (room.under_way + 1, room.further - 1);
                    self.room = Some(Room { under_way, further });
                    self.must_call_feed = true;
                    self.begin_request(job, io);
                }
                Offer::Idle => {
                    self.has_been_idle |= self.children.is_empty();
                    return;
                }
                Offer::Close => {
                    self.is_closing = true;
                    self.must_call_feed = true;
                }
            }
        }
    }

    fn begin_request(&mut self, job: Job<K>, io: &mut Io<'_, '_, '_, K::Context>) {
        if self.children.is_empty() {
            // Silence while nothing was expected says nothing about the server. An answer to a PING
            // is expected all the same.
            self.last_alive = io.scope.now();
        }
        let soon = io.scope.now() + io.config.http2_ref().ping_after;
        if self.next_ping > soon && std::mem::take(&mut self.has_spare_ping) {
            // What the server sent before says nothing about now, and it tolerates one PING that
            // comes early.
            self.next_ping = soon;
        }
        let key = self.next_key;
        self.next_key += 1;
        self.started += 1;
        // The caller may cancel the request while nothing else would call this machine.
        job.port.on_cancel(io.scope.part(key).notifier());
        let exchange = Exchange::framed(job, self.served > 0 || self.has_been_idle);
        let outbound = self.frames.stream_window();
        let mut child = Child::new(key, exchange, outbound, io.config);
        if let Some(spare) = &mut self.spare_resets {
            // Without one there is no room.
            *spare -= 1;
            child.is_reset_counted = true;
        }
        self.children.push(child);
        self.step(self.children.len() - 1, io, |exchange, io| exchange.begin(io));
    }

    /// Returns whether the server accepts another stream beside the open ones (RFC 9113 §5.1.2). It
    /// may have reduced their number after the requests were taken.
    pub(super) fn can_open_stream(&self) -> bool {
        self.streams.len() < self.frames.peer().streams_max as usize
    }

    /// Lets waiting requests begin, after a stream has ended or the server accepts more.
    pub(super) fn begin_waiting(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        if self.waits_for_stream && self.can_open_stream() {
            self.waits_for_stream = false;
            // The oldest first.
            self.update_children_from(0, io);
        }
    }

    /// Gives back requests that have not begun, if the server now accepts fewer than were taken for
    /// it. They are made elsewhere if possible.
    pub(super) fn return_excess(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        let left = (self.frames.peer().streams_max as usize).saturating_sub(self.streams.len());
        let excess = self.children.iter().filter(|child| child.stream.is_none()).skip(left);
        let excess: Vec<u32> = excess.map(|child| child.key).collect();
        for key in excess {
            let Some(at) = self.find_child(key) else { continue };
            let child = &mut self.children[at];
            if return_unsent(child, &mut self.source, self.phase, io.config, io.scope) {
                self.remove_child(at, io);
            }
        }
    }

    /// Sends a PING, to find out whether the server is still there.
    pub(super) fn send_ping(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        let (now, config) = (io.scope.now(), io.config.http2_ref());
        self.ping_until = Some(now + config.ping_timeout);
        self.next_ping = now + config.ping_again_after;
        write_frame(io, &frame_writer::ping(*b"are you?", false));
    }
}
