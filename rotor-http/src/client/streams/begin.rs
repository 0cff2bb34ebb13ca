//! Where the requests come from, and how many are taken.

use rotor_core::Time;

use super::child::Child;
use super::{Phase, Streams, put};
use crate::client::exchange::Exchange;
use crate::client::feed::{Feed, Offer, Room};
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::job::Job;
use crate::h2::frame::U31_MAX;
use crate::h2::{SendWindow, frame_writer};

impl<K: Client, F: Feed<K>> Streams<K, F> {
    /// How many requests there are, and how many more are taken, now or once the server has said so.
    fn count_room(&self, io: &Io<'_, '_, '_, K::Context>) -> Room {
        let is_last = self.is_last
            || self.is_read_closed
            || self.begun >= io.config.limits.requests_max
            // No number is used twice (RFC 9113 §5.1.1); each that is under way needs one.
            || self.next_stream > U31_MAX - 2 * io.config.http2_ref().streams_max.min(1 << 20)
            || self.next_key == u32::MAX;
        let most = match self.phase {
            _ if is_last => 0,
            _ => io.config.http2_ref().streams_max.min(self.peer.streams_max),
        };
        let under_way = u32::try_from(self.children.len()).unwrap_or(u32::MAX);
        Room { under_way, further: most.saturating_sub(under_way) }
    }

    /// Asks the feed for requests while there is room for them.
    pub(super) fn look_for_work(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        while std::mem::take(&mut self.looks_for_work) {
            if self.begun >= io.config.limits.requests_max {
                self.is_last = true;
            }
            let room = self.count_room(io);
            if self.room != Some(room) {
                self.room = Some(room);
                self.feed.room(room, io.scope);
            }
            // It may take no more than one: what it refused would have to be made again.
            let may_take = self.phase == Phase::Open || self.begun == 0;
            if room.further == 0 || !may_take {
                return;
            }
            match self.feed.next(self.begun == 0, io.scope) {
                Offer::Job(job) => {
                    // One was taken: the feed knows.
                    let (under_way, further) = (room.under_way + 1, room.further - 1);
                    self.room = Some(Room { under_way, further });
                    self.looks_for_work = true;
                    self.begin(job, io);
                }
                Offer::Idle => return,
                Offer::Close => {
                    self.is_last = true;
                    self.looks_for_work = true;
                }
            }
        }
    }

    fn begin(&mut self, job: Job<K>, io: &mut Io<'_, '_, '_, K::Context>) {
        if self.children.is_empty() {
            // What was not heard while nothing was to be said tells of nothing.
            self.heard = io.scope.now();
            self.ping_until = Time::NEVER;
        }
        let key = self.next_key;
        self.next_key += 1;
        self.begun += 1;
        // Whoever asked may give up while nothing else would call this machine.
        job.port.on_cancel(io.scope.part(key).notifier());
        let exchange = Exchange::framed(job, self.served > 0);
        let outbound = SendWindow::new(self.peer.initial_window);
        self.children.push(Child::new(key, exchange, outbound, io.config));
        self.step(self.children.len() - 1, io, |exchange, io| exchange.begin(io));
    }

    /// Asks the server whether it is still there.
    pub(super) fn ping(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        self.ping_until = io.scope.now() + io.config.http2_ref().ping_timeout;
        put(io, &frame_writer::ping(*b"are you?", false));
    }
}
