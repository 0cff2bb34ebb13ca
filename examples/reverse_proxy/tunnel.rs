//! `Tunnel`: the protocol of the connections on both sides, once both have switched: bytes in both
//! directions.

use std::marker::PhantomData;
use std::sync::Arc;

use rotor::stream::{Block, Exception, Intent, Matched, Protocol, StreamConfig, Transport};
use rotor::{Mailbox, Scope, Sender, with_causes};

use super::message::Message;

/// One end of a tunnel. What it reads from its socket goes to the other end, and vice versa.
pub(crate) struct Tunnel<C> {
    to: Sender<Message>,
    from: Mailbox<Message>,
    /// Whether a piece is on its way to the other end: nothing is read until `More` arrives.
    is_held: bool,
    /// Whether the other end waits for `More`, until enough output has been sent.
    owes_more: bool,
    /// Whether our peer has ended its side, and whether the other end's peer has.
    has_ended: bool,
    is_told: bool,
    context: PhantomData<fn(C)>,
}

/// How much output may wait before the other end is held back, in bytes.
const UNSENT_MAX: usize = 64 << 10;

impl<C> Tunnel<C> {
    fn proceed(mut self, transport: &mut Transport<'_>) -> Intent<Self> {
        while let Some(message) = self.from.receive() {
            match message {
                Message::Piece(piece) => {
                    if transport.output.push_block(piece).is_err() {
                        return Intent::done();
                    }
                    self.owes_more = true;
                }
                Message::More => self.is_held = false,
                Message::End(_) => {
                    self.is_told = true;
                    transport.shutdown_write();
                }
                // Not an orderly end: an incomplete stream must not be taken for a complete one.
                Message::Broken => return Intent::reset(),
                // These belong to the previous exchange.
                Message::Ready(..) | Message::Wanted | Message::Interim(..) | Message::Head(_) => {}
            }
        }
        if self.owes_more && transport.output.len() <= UNSENT_MAX {
            self.owes_more = false;
            let _other_end_is_gone = self.to.send(Message::More);
        }
        if (self.has_ended && self.is_told) || self.to.is_closed() {
            return Intent::done();
        }
        let (is_held, has_ended, owes_more) = (self.is_held, self.has_ended, self.owes_more);
        let intent = Intent::of(self);
        let waiting = match (has_ended, is_held) {
            (true, _) => intent.sleep(),
            // What has arrived before a reset reaches the other end first.
            (false, true) => intent.hold(),
            (false, false) => intent.bytes(1),
        };
        let waiting = if owes_more { waiting.or_flush(UNSENT_MAX) } else { waiting };
        // A WebSocket may be silent for any time; each side notices when the other is gone.
        waiting.no_deadline()
    }
}

impl<C> Protocol for Tunnel<C> {
    type Context = C;
    type Seed = (Sender<Message>, Mailbox<Message>);

    /// Each direction holds one piece, so the stream need not limit the output. It would do that by
    /// not reading, and a peer that takes nothing because it is not read from would never go on.
    fn config(_: &Self::Seed) -> Arc<StreamConfig> {
        StreamConfig::new().output_high_water(usize::MAX).share()
    }

    fn create(
        (to, from): Self::Seed,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let tunnel = Tunnel {
            to,
            from,
            is_held: false,
            owes_more: false,
            has_ended: false,
            is_told: false,
            context: PhantomData,
        };
        tunnel.proceed(transport)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let piece = Block::take_from(transport.input, usize::MAX);
        self.is_held = true;
        let _other_end_is_gone = self.to.send(Message::Piece(piece));
        self.proceed(transport)
    }

    fn bytes_flushed(self, transport: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        self.proceed(transport)
    }

    fn wakeup(self, transport: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        self.proceed(transport)
    }

    fn exception(
        mut self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let Exception::EndOfStream = exception else {
            // A peer can cause this as often as it likes, and it is not an error of this program.
            log::debug!("the tunnel {} breaks off: {}", scope.token(), with_causes(&exception));
            return Intent::reset();
        };
        self.has_ended = true;
        let _other_end_is_gone = self.to.send(Message::End(Vec::new()));
        self.proceed(transport)
    }
}

impl<C> Drop for Tunnel<C> {
    fn drop(&mut self) {
        // However this end ends, the other one is told.
        if !self.has_ended {
            let _other_end_is_gone = self.to.send(Message::Broken);
        }
    }
}
