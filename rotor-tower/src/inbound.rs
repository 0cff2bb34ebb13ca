//! The body of a request in transit: the connection puts pieces in, and the service takes them out,
//! on any thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::body_lost::BodyLost;

/// How many bytes of a request's body may wait for its service, not counting the last piece that
/// arrived. A piece counts as 160 bytes more than its length, for the memory that it needs besides.
pub const HELD_BYTES_MAX: usize = 64 << 10;

/// The memory of a piece besides its bytes: its place in the queue, its handle, and the owner of
/// its memory. The peer chooses how short pieces are.
const PIECE_OVERHEAD_BYTES: usize = 160;

/// Returns as how many bytes a piece counts.
fn held_bytes_of(piece: &Bytes) -> usize {
    piece.len() + PIECE_OVERHEAD_BYTES
}

/// The state that both ends share.
pub(crate) struct BodyChannel {
    state: Mutex<State>,
    /// Wakes the connection, or its stream, like the waker in its polls. A reader with this waker
    /// is polled there.
    connection: Waker,
}

struct State {
    pieces: VecDeque<Bytes>,
    held: usize,
    end: EndState,
    /// How many bytes are still to be taken, if the length is known.
    remaining: Option<u64>,
    reader: ReaderState,
}

enum EndState {
    Open,
    /// The end follows the last piece; the trailers, until they are taken.
    Complete(Option<HeaderMap>),
    Lost(BodyLost),
}

enum ReaderState {
    /// The service has not requested the body yet.
    Idle,
    Waiting(Waker),
    /// The service has what it requested.
    Reading,
    Dropped,
}

/// What the service needs of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Demand {
    /// Nothing has been requested so far.
    NotRequested,
    More,
    /// Nothing, until it has taken what waits for it; or nothing ever again.
    Nothing,
}

impl BodyChannel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls for the next frame, for the service.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyLost>>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            let was_full = state.held >= HELD_BYTES_MAX;
            state.held -= held_bytes_of(&piece);
            if let Some(remaining) = &mut state.remaining {
                *remaining = remaining.saturating_sub(piece.len() as u64);
            }
            state.reader = ReaderState::Reading;
            // The connection was holding its peer back. Otherwise it need not be woken.
            let has_room = was_full && state.held < HELD_BYTES_MAX;
            drop(state);
            if has_room {
                self.wake_connection(context);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut state.end {
            EndState::Complete(trailers) => {
                Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            EndState::Lost(lost) => {
                let lost = *lost;
                // An error is returned once; a service that continues to read must reach an end.
                state.end = EndState::Complete(None);
                Poll::Ready(Some(Err(lost)))
            }
            EndState::Open => {
                let is_first = matches!(state.reader, ReaderState::Idle);
                state.reader = ReaderState::Waiting(context.waker().clone());
                drop(state);
                // The first poll requests the body from the peer.
                if is_first {
                    self.wake_connection(context);
                }
                Poll::Pending
            }
        }
    }

    /// Tells the connection that the demand has changed. If the connection itself polls, it checks
    /// that anyway.
    fn wake_connection(&self, context: &Context<'_>) {
        if !context.waker().will_wake(&self.connection) {
            self.connection.wake_by_ref();
        }
    }

    /// Returns whether everything has been taken.
    pub(crate) fn is_finished(&self) -> bool {
        let state = self.lock();
        state.pieces.is_empty() && matches!(state.end, EndState::Complete(None))
    }

    /// Returns how many bytes are still to be taken, if known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.lock().remaining
    }

    /// Called when the service has dropped the body.
    pub(crate) fn close_reader(&self) {
        let mut state = self.lock();
        state.reader = ReaderState::Dropped;
        state.pieces.clear();
    }
}

/// The connection's end of the body. If it is dropped before the end, the rest is lost.
pub(crate) struct InboundBody(Arc<BodyChannel>);

impl InboundBody {
    /// Makes both ends, for a body of this length, if it is known.
    pub(crate) fn new(length: Option<u64>, connection: Waker) -> (InboundBody, Arc<BodyChannel>) {
        let state = State {
            pieces: VecDeque::new(),
            held: 0,
            end: EndState::Open,
            remaining: length,
            reader: ReaderState::Idle,
        };
        let channel = Arc::new(BodyChannel { state: Mutex::new(state), connection });
        (InboundBody(channel.clone()), channel)
    }

    pub(crate) fn demand(&self) -> Demand {
        let state = self.0.lock();
        match (&state.end, &state.reader) {
            (EndState::Open, ReaderState::Idle) => Demand::NotRequested,
            (EndState::Open, ReaderState::Waiting(_) | ReaderState::Reading)
                if state.held < HELD_BYTES_MAX =>
            {
                Demand::More
            }
            _ => Demand::Nothing,
        }
    }

    /// Adds the next piece. Returns whether the connection has to poll because it is the reader;
    /// any other reader is woken.
    #[must_use = "nobody else polls then"]
    pub(crate) fn push(&self, piece: Bytes) -> bool {
        self.update(|state| {
            if !matches!(state.reader, ReaderState::Dropped) {
                state.held += held_bytes_of(&piece);
                state.pieces.push_back(piece);
            }
        })
    }

    /// Ends the body, which is complete. Returns the same as [`push`](InboundBody::push).
    #[must_use = "nobody else polls then"]
    pub(crate) fn end(&self, trailers: Option<HeaderMap>) -> bool {
        self.update(|state| state.end = EndState::Complete(trailers))
    }

    /// Reports that the rest will not arrive. The request has ended, so the connection polls
    /// nothing any more.
    pub(crate) fn report_lost(&self, lost: BodyLost) {
        let _over = self.update(|state| {
            if matches!(state.end, EndState::Open) {
                state.end = EndState::Lost(lost);
            }
        });
    }

    fn update(&self, change: impl FnOnce(&mut State)) -> bool {
        let mut state = self.0.lock();
        change(&mut state);
        let ReaderState::Waiting(_) = state.reader else { return false };
        let reader = std::mem::replace(&mut state.reader, ReaderState::Reading);
        // Without the lock, because a waker may do anything.
        drop(state);
        let ReaderState::Waiting(waker) = reader else { return false };
        if waker.will_wake(&self.0.connection) {
            return true;
        }
        waker.wake();
        false
    }
}

impl Drop for InboundBody {
    fn drop(&mut self) {
        self.report_lost(BodyLost::Finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_length_shrinks_as_pieces_are_taken() {
        let (inbound, channel) = InboundBody::new(Some(10), Waker::noop().clone());
        let mut context = Context::from_waker(Waker::noop());
        assert!(channel.poll(&mut context).is_pending(), "it asks");
        for (piece, remaining) in [(&b"0123"[..], 6), (b"456789", 0)] {
            let before = channel.remaining();
            let _polls = inbound.push(Bytes::from_static(piece));
            assert_eq!(channel.remaining(), before, "it was not taken yet");
            assert!(channel.poll(&mut context).is_ready());
            assert_eq!(channel.remaining(), Some(remaining));
        }
    }

    #[test]
    fn pieces_for_a_dropped_body_are_discarded() {
        let (inbound, channel) = InboundBody::new(None, Waker::noop().clone());
        assert!(channel.poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it asks");
        let memory = Arc::new([b'x'; 100]);
        let piece = || Bytes::from_owner(Lent(memory.clone()));
        let _polls = inbound.push(piece());
        assert_eq!(Arc::strong_count(&memory), 2, "it waits");
        channel.close_reader();
        let _polls = inbound.push(piece());
        assert_eq!((Arc::strong_count(&memory), inbound.demand()), (1, Demand::Nothing));
    }

    struct Lent(Arc<[u8; 100]>);

    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            &*self.0
        }
    }

    /// How many one-byte pieces of a body are taken until their peer has to wait.
    #[test]
    fn small_pieces_are_limited_by_the_memory_they_need() {
        let (inbound, channel) = InboundBody::new(None, Waker::noop().clone());
        let mut context = Context::from_waker(Waker::noop());
        assert!(channel.poll(&mut context).is_pending(), "it asks");
        for _ in 0..2 {
            let mut count = 0;
            while inbound.demand() == Demand::More {
                let _polls = inbound.push(Bytes::from_static(b"x"));
                count += 1;
            }
            assert!((300..1_000).contains(&count), "{count} pieces");
            while channel.poll(&mut context).is_ready() {}
            assert_eq!(inbound.demand(), Demand::More, "all of it was taken");
        }
        let mut count = 0;
        while inbound.demand() == Demand::More {
            let _polls = inbound.push(Bytes::from_static(&[b'x'; 16 << 10]));
            count += 1;
        }
        assert_eq!(count, 4, "of an input's length");
    }
}
