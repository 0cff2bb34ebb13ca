//! `Replay`: what the client has sent of its body, for an upstream that has not processed the
//! request.

use std::collections::VecDeque;

use rotor::stream::Block;

use super::message::{Lines, Message};

/// How many bytes of a body are kept until its response begins: enough for most forms and calls of
/// APIs. Each request under way to an upstream that speaks HTTP/2 may hold as much.
pub(crate) const REPLAY_BYTES_MAX: usize = 64 << 10;

/// How often a request is made again. The library does it as often for a request without a body.
const REFUSALS_MAX: u8 = 10;

/// The body of a request on its way to the upstream.
///
/// Every server ends its connections now and then, and says which requests it has not processed
/// (GOAWAY); or it refuses one because it has too many (REFUSED_STREAM). These are made again on
/// another connection. The client cannot be asked for its body again, so the beginning is kept.
pub(crate) struct Replay {
    parts: VecDeque<Part>,
    /// How many of the parts were sent: none of them if parts are not kept.
    sent: usize,
    bytes: usize,
    is_kept: bool,
    refusals: u8,
}

#[derive(Clone)]
enum Part {
    Piece(Block),
    End(Lines),
}

impl Replay {
    pub(crate) fn new() -> Replay {
        Replay { parts: VecDeque::new(), sent: 0, bytes: 0, is_kept: false, refusals: 0 }
    }

    /// Keeps what is sent from now on.
    pub(crate) fn keep(&mut self) {
        self.is_kept = self.bytes <= REPLAY_BYTES_MAX;
    }

    /// Forgets what was sent: if the response has begun, this attempt is the last one.
    pub(crate) fn forget(&mut self) {
        self.parts.drain(..self.sent);
        (self.sent, self.bytes, self.is_kept) = (0, usize::MAX, false);
    }

    /// Adds a piece that has arrived.
    pub(crate) fn add_piece(&mut self, piece: Block) {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > REPLAY_BYTES_MAX {
            self.forget();
        }
        self.parts.push_back(Part::Piece(piece));
    }

    /// Adds the end of the body.
    pub(crate) fn add_end(&mut self, trailers: Lines) {
        self.parts.push_back(Part::End(trailers));
    }

    /// Returns whether something has arrived that was not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.parts.len()
    }

    /// Returns the next part to be sent.
    pub(crate) fn next(&mut self) -> Option<Message> {
        let part = match self.is_kept {
            true => self.parts.get(self.sent).cloned()?,
            false => self.parts.pop_front()?,
        };
        self.sent += usize::from(self.is_kept);
        Some(match part {
            Part::Piece(piece) => Message::Piece(piece),
            Part::End(trailers) => Message::End(trailers),
        })
    }

    /// Returns whether the end is next.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.parts.get(self.sent), Some(Part::End(_)))
    }

    /// Begins again for another attempt. Returns false if there cannot be one.
    pub(crate) fn restart(&mut self) -> bool {
        if !self.is_kept || self.refusals == REFUSALS_MAX {
            return false;
        }
        self.refusals += 1;
        self.sent = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that are sent next: the length of each piece, and 0 for the end.
    fn sent(replay: &mut Replay) -> Vec<usize> {
        let length = |message| match message {
            Message::Piece(piece) => piece.len(),
            _ => 0,
        };
        std::iter::from_fn(|| replay.next()).map(length).collect()
    }

    fn piece(bytes: usize) -> Block {
        vec![b'x'; bytes].into()
    }

    #[test]
    fn a_body_is_sent_again_from_its_beginning_until_it_is_too_long() {
        let mut replay = Replay::new();
        replay.keep();
        replay.add_piece(piece(5));
        assert_eq!(sent(&mut replay), [5]);
        replay.add_piece(piece(REPLAY_BYTES_MAX - 5));
        assert!(replay.restart());
        assert_eq!(sent(&mut replay), [5, REPLAY_BYTES_MAX - 5]);
        replay.add_end(Vec::new());
        assert!(replay.has_unsent() && replay.is_at_end() && replay.restart());
        assert_eq!(sent(&mut replay), [5, REPLAY_BYTES_MAX - 5, 0]);
        assert!(!replay.has_unsent());

        replay.add_piece(piece(1));
        assert!(!replay.restart());
        assert_eq!(sent(&mut replay), [1]);
    }

    #[test]
    fn a_body_is_not_kept_after_its_response_has_begun() {
        for forgets in [false, true] {
            let mut replay = Replay::new();
            if forgets {
                replay.keep();
            }
            replay.add_piece(piece(5));
            assert_eq!(sent(&mut replay), [5]);
            replay.forget();
            replay.keep();
            replay.add_piece(piece(6));
            assert!(!replay.restart());
            assert_eq!(sent(&mut replay), [6]);
            assert_eq!(replay.parts.len(), 0);
        }
    }

    #[test]
    fn a_request_is_not_made_again_for_ever() {
        let mut replay = Replay::new();
        replay.keep();
        assert_eq!((0..100).filter(|_| replay.restart()).count(), usize::from(REFUSALS_MAX));
    }
}
