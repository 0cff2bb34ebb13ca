//! `Frames`: a layer around a probe.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Scope, Time};
use rotor_stream::testing::Driver;
use rotor_stream::{
    Buf, Fatal, Intent, Layered, LayeredResult, Matched, Output, Protocol, StreamConfig, Transport,
};

use crate::probe::{Log, Probe, Seed};

/// Runs a probe inside frames of kind, length and payload. Output is sent as far as the window
/// allows; the peer opens the window.
pub(crate) struct Frames {
    probe: Layered<Probe>,
    window: usize,
    /// Whether the end of the probe's output was sent.
    has_sent_end: bool,
}

/// The maximum payload of a frame, in bytes.
const FRAME_MAX: usize = 100;

impl Frames {
    /// Sends what the window allows. Returns whether there was anything to send.
    fn send(&mut self, transport: &mut Transport<'_>) -> bool {
        let before = self.window;
        while self.window > 0 && !self.probe.output().is_empty() {
            let mut frame = Output::new();
            let count = self.window.min(FRAME_MAX);
            let moved = self.probe.output().move_to(&mut frame, count).expect("open");
            transport.output.write_all(&[b'D', moved as u8]).expect("open");
            frame.move_to(transport.output, moved).expect("open");
            self.window -= moved;
        }
        before != self.window
    }

    fn follow(
        mut self,
        mut ran: LayeredResult,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        while self.send(transport) || matches!(ran, LayeredResult::Again) {
            if !matches!(ran, LayeredResult::Failed(_)) {
                ran = self.probe.pass(scope);
            }
        }
        if matches!(ran, LayeredResult::Failed(_)) {
            assert!(
                matches!(self.probe.pass(scope), LayeredResult::Failed(None)),
                "it did not end well"
            );
        }
        let is_ended = matches!(ran, LayeredResult::Waits) && self.probe.output().is_ended();
        if is_ended && self.probe.output().is_empty() && !self.has_sent_end {
            transport.output.write_all(b"E\0").expect("open");
            self.has_sent_end = true;
        }
        let end: &[u8] = match ran {
            LayeredResult::Failed(_) => b"R\0",
            LayeredResult::Done if self.has_sent_end => b"",
            LayeredResult::Done if self.probe.output().is_empty() => b"E\0",
            LayeredResult::Waits | LayeredResult::Again | LayeredResult::Done => {
                let until = self.probe.deadline();
                return Intent::of(self).bytes(2).deadline(until);
            }
        };
        transport.output.write_all(end).expect("open");
        Intent::done()
    }
}

impl Protocol for Frames {
    type Context = Log;
    /// The probe's seed, the window, and the outer configuration.
    type Seed = (Seed, usize, Arc<StreamConfig>);

    fn create(
        (seed, window, within): Self::Seed,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let (probe, ran) = Layered::begin(seed, Buf::new(), true, &within, scope);
        Frames { probe, window, has_sent_end: false }.follow(ran, transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let (kind, len) = (transport.input[0], usize::from(transport.input[1]));
        if transport.input.len() < 2 + len {
            return Intent::of(self).bytes(2 + len).keep_deadline();
        }
        let payload = &transport.input[2..2 + len];
        let ran = match kind {
            b'D' => {
                self.probe.input().extend(payload);
                self.probe.pass(scope)
            }
            b'W' => {
                self.window += payload.iter().map(|more| usize::from(*more)).sum::<usize>();
                LayeredResult::Waits
            }
            // For this many seconds others go first.
            b'X' => {
                self.probe.excuse(scope.now() + Duration::from_secs(payload[0].into()));
                LayeredResult::Waits
            }
            // Sends what the window now allows, and calls nothing.
            b'w' => {
                self.window += payload.iter().map(|more| usize::from(*more)).sum::<usize>();
                transport.input.consume(2 + len);
                self.send(transport);
                return Intent::of(self).bytes(2).keep_deadline();
            }
            b'R' => self.probe.reset(scope),
            _ => self.probe.input_ended(kind == b'T', scope),
        };
        transport.input.consume(2 + len);
        self.follow(ran, transport, scope)
    }

    fn wakeup(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        let ran = self.probe.wakeup(scope);
        self.follow(ran, transport, scope)
    }

    fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let ran = self.probe.timeout(scope);
        self.follow(ran, transport, scope)
    }

    fn draining(
        mut self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let ran = self.probe.draining(until, scope);
        self.follow(ran, transport, scope)
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        self.probe.lost(error, scope);
    }
}

pub(crate) fn layered(seed: Seed, window: usize) -> Driver<Frames> {
    Driver::new((seed, window, StreamConfig::standard()), Log::new())
}

pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8], payload].concat()
}

/// The payload of the data frames, and the kinds of the other frames.
pub(crate) fn received(driver: &Driver<Frames>) -> (String, String) {
    let encoded = driver.take_received();
    let (mut left, mut data, mut others) = (&encoded[..], Vec::new(), String::new());
    while let [kind, len, rest @ ..] = left {
        let (payload, rest) = rest.split_at(usize::from(*len));
        match kind {
            b'D' => data.extend_from_slice(payload),
            kind => others.push(char::from(*kind)),
        }
        left = rest;
    }
    (String::from_utf8_lossy(&data).into_owned(), others)
}
