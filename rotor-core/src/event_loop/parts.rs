//! The parts of machines that were woken.

use std::sync::atomic::Ordering::AcqRel;

use super::rest::Rest;
use crate::wake_queue::PartWake;
use crate::{Machine, Token};

impl<M: Machine, B> Rest<M, B> {
    /// Takes what has arrived. Called after the flag of the woken machine was taken, so that
    /// nothing is missed.
    pub(super) fn take_parts(&mut self) {
        if !self.queue.has_parts() {
            return;
        }
        while let Ok(PartWake { token, part, queued }) = self.due.parts_arriving.try_recv() {
            queued.swap(false, AcqRel);
            if self.queue.is_alive(token) {
                self.due.parts.insert((token, part));
            }
        }
    }

    /// Takes the parts of a machine that were woken, in ascending order.
    #[inline]
    pub(super) fn parts_of(&mut self, token: Token) -> Vec<u32> {
        if self.due.parts.is_empty() { Vec::new() } else { self.parts_among(token) }
    }

    #[cold]
    fn parts_among(&mut self, token: Token) -> Vec<u32> {
        let mut parts = Vec::new();
        while let Some(&entry) = self.due.parts.range((token, 0)..=(token, u32::MAX)).next() {
            self.due.parts.remove(&entry);
            parts.push(entry.1);
        }
        parts
    }

    pub(super) fn has_parts(&self, token: Token) -> bool {
        self.due.parts.range((token, 0)..=(token, u32::MAX)).next().is_some()
    }
}
