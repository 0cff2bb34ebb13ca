//! The parts of machines that were woken.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::AcqRel;

use crate::sync::mpsc;
use crate::token::Token;
use crate::wake_queue::{PartWake, WakeQueue};

/// The parts that were woken, of machines that have not been called yet.
pub(in crate::event_loop) struct WokenParts {
    woken: BTreeSet<(Token, u32)>,
    arriving: mpsc::Receiver<PartWake>,
}

impl WokenParts {
    pub(super) fn new(arriving: mpsc::Receiver<PartWake>) -> WokenParts {
        WokenParts { woken: BTreeSet::new(), arriving }
    }

    /// Takes the parts that have arrived. Called after the flags of the woken machine were taken,
    /// so that none is missed.
    #[inline]
    pub(super) fn receive(&mut self, wakes: &WakeQueue) {
        if wakes.has_parts() {
            self.drain_channel(wakes);
        }
    }

    #[cold]
    fn drain_channel(&mut self, wakes: &WakeQueue) {
        while let Ok(PartWake { token, part, queued }) = self.arriving.try_recv() {
            // A swap rather than a store, to acquire everything that was written before the
            // wake-up.
            queued.swap(false, AcqRel);
            if wakes.is_alive(token) {
                self.woken.insert((token, part));
            }
        }
    }

    /// Takes the parts of a machine that were woken, in ascending order.
    #[inline]
    pub(in crate::event_loop) fn take(&mut self, token: Token) -> Vec<u32> {
        if self.woken.is_empty() { Vec::new() } else { self.collect_parts(token) }
    }

    /// Does the same into a list that is empty.
    #[inline]
    pub(in crate::event_loop) fn take_into(&mut self, token: Token, parts: &mut Vec<u32>) {
        if !self.woken.is_empty() {
            *parts = self.collect_parts(token);
        }
    }

    #[cold]
    fn collect_parts(&mut self, token: Token) -> Vec<u32> {
        let mut parts = Vec::new();
        while let Some(&entry) = self.woken.range((token, 0)..=(token, u32::MAX)).next() {
            self.woken.remove(&entry);
            parts.push(entry.1);
        }
        parts
    }

    pub(in crate::event_loop) fn has(&self, token: Token) -> bool {
        self.woken.range((token, 0)..=(token, u32::MAX)).next().is_some()
    }
}
