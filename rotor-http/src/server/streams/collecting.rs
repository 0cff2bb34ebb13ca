//! Limits how many bytes of one connection are in memory for bodies that are collected as a whole
//! for their handlers.
//!
//! Beyond the limit only the window of the first of them is opened, so that this body is completed
//! and makes room for the next. If all were held back, none would be completed.

use rotor_core::{Deadline, Time};

use super::{Streams, write_frame};
use crate::h2::frame_writer;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;

impl<S: Server> Streams<S> {
    /// Sends an update for what was read from the window of this stream, unless its body is held
    /// back.
    pub(super) fn open_window(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        if self.must_hold_back(at, io) {
            return self.hold_back(at, io);
        }
        let child = &mut self.children[at];
        // Even if nothing was read now, because what the peer may still send may have become less.
        if child.state.is_receiving()
            && let Some(more) = child.intake.update()
        {
            write_frame(io, &frame_writer::window_update(child.id, more));
        }
    }

    /// Returns whether there is no room for more of this body besides the others.
    fn must_hold_back(&self, at: usize, io: &Io<'_, '_, '_, S::Context>) -> bool {
        self.collected >= io.config.http2_ref().collected_bytes_max
            && self.children[at].is_being_collected()
            && self.children[..at].iter().any(|child| child.is_being_collected())
    }

    fn hold_back(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &mut self.children[at];
        if child.is_held_back {
            return;
        }
        Counters::add(&io.config.counters_ref().bodies_held_back);
        self.has_held_back = true;
        child.is_held_back = true;
        // From now on it is not the peer's fault that nothing arrives.
        let deadline = child.step(io.scope, io.config, |exchange, io| {
            exchange.is_held_back = true;
            exchange.next_deadline(io)
        });
        if let Some(deadline) = deadline {
            child.until = if let Deadline::At(time) = deadline { time } else { Time::NEVER };
        }
    }

    /// Lets bodies go on for which there is room, the oldest first.
    pub(super) fn resume_held_bodies(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        if !self.has_held_back {
            return;
        }
        self.has_held_back = false;
        let held_back = self.children.iter().filter(|child| child.is_held_back);
        let held_back: Vec<u32> = held_back.map(|child| child.id).collect();
        for stream in held_back {
            let Some(at) = self.find(stream) else { continue };
            if self.must_hold_back(at, io) {
                self.has_held_back = true;
                break;
            }
            self.children[at].is_held_back = false;
            self.step(at, io, |exchange, io| {
                exchange.is_held_back = false;
                exchange.receive(io)
            });
        }
    }
}
