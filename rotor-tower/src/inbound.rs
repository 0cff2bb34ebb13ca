//! The body of a request on its way: the connection puts pieces in, the service takes them out, on
//! whatever thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::body_lost::BodyLost;

/// How many octets of a request's body may wait for its service, beyond the last piece that came.
/// A piece counts as 160 octets more than it has, for what is kept beside them.
pub const HELD_BYTES_MAX: usize = 64 << 10;

/// What is kept of a piece beside its octets: its place in line, its handle, who owns its memory. A
/// peer chooses how short pieces are.
const PIECE_BYTES: usize = 160;

/// The memory for which a piece counts.
fn held_for(piece: &Bytes) -> usize {
    piece.len() + PIECE_BYTES
}

/// What both ends share.
pub(crate) struct Channel {
    state: Mutex<State>,
    /// Wakes the connection, or its stream, as whatever it polls does: who is polled with this is polled
    /// there.
    connection: Waker,
}

struct State {
    pieces: VecDeque<Bytes>,
    held: usize,
    end: End,
    /// Octets that are still to be taken, where the length is known.
    left: Option<u64>,
    reader: Reader,
}

enum End {
    Open,
    /// Behind the last piece; the trailers until they are taken.
    Whole(Option<HeaderMap>),
    Lost(BodyLost),
}

enum Reader {
    /// It has not asked for the body yet.
    Idle,
    Waits(Waker),
    /// It has what it asked for.
    Reading,
    Gone,
}

/// What the service wants of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Demand {
    /// Nothing so far.
    Unasked,
    More,
    /// Nothing before it has taken what waits for it, or ever again.
    Nothing,
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service polls for the next frame.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyLost>>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            let was_full = state.held >= HELD_BYTES_MAX;
            state.held -= held_for(&piece);
            if let Some(left) = &mut state.left {
                *left = left.saturating_sub(piece.len() as u64);
            }
            state.reader = Reader::Reading;
            // The connection held its peer up; nobody is woken for less.
            let has_room = was_full && state.held < HELD_BYTES_MAX;
            drop(state);
            if has_room {
                self.wake_connection(context);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut state.end {
            End::Whole(trailers) => {
                Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            End::Lost(lost) => {
                let lost = *lost;
                // Said once: who reads on behind an error must come to an end, too.
                state.end = End::Whole(None);
                Poll::Ready(Some(Err(lost)))
            }
            End::Open => {
                let is_first = matches!(state.reader, Reader::Idle);
                state.reader = Reader::Waits(context.waker().clone());
                drop(state);
                // It asks the peer for the body.
                if is_first {
                    self.wake_connection(context);
                }
                Poll::Pending
            }
        }
    }

    /// What the service wants has changed. Where the connection polls it, that looks by itself.
    fn wake_connection(&self, context: &Context<'_>) {
        if !context.waker().will_wake(&self.connection) {
            self.connection.wake_by_ref();
        }
    }

    /// Whether all has been taken.
    pub(crate) fn is_end(&self) -> bool {
        let state = self.lock();
        state.pieces.is_empty() && matches!(state.end, End::Whole(None))
    }

    /// How many octets are still to be taken, where that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.lock().left
    }

    /// The service has dropped the body.
    pub(crate) fn reader_gone(&self) {
        let mut state = self.lock();
        state.reader = Reader::Gone;
        state.pieces.clear();
    }
}

/// The connection's end. Dropped before the end of the body, that is lost.
pub(crate) struct Inbound(Arc<Channel>);

impl Inbound {
    /// Makes both ends, for a body of this length, if that is known.
    pub(crate) fn new(length: Option<u64>, connection: Waker) -> (Inbound, Arc<Channel>) {
        let state = State {
            pieces: VecDeque::new(),
            held: 0,
            end: End::Open,
            left: length,
            reader: Reader::Idle,
        };
        let channel = Arc::new(Channel { state: Mutex::new(state), connection });
        (Inbound(channel.clone()), channel)
    }

    pub(crate) fn demand(&self) -> Demand {
        let state = self.0.lock();
        match (&state.end, &state.reader) {
            (End::Open, Reader::Idle) => Demand::Unasked,
            (End::Open, Reader::Waits(_) | Reader::Reading) if state.held < HELD_BYTES_MAX => {
                Demand::More
            }
            _ => Demand::Nothing,
        }
    }

    /// The next piece has come. Returns whether the connection is to poll, since it is where the body
    /// is read; others are woken.
    #[must_use = "nobody else polls then"]
    pub(crate) fn push(&self, piece: Bytes) -> bool {
        self.tell(|state| {
            if !matches!(state.reader, Reader::Gone) {
                state.held += held_for(&piece);
                state.pieces.push_back(piece);
            }
        })
    }

    /// All of it has come. Returns what [`push`](Inbound::push) does.
    #[must_use = "nobody else polls then"]
    pub(crate) fn end(&self, trailers: Option<HeaderMap>) -> bool {
        self.tell(|state| state.end = End::Whole(trailers))
    }

    /// The rest does not come: the request is over, and nothing of it is polled any more.
    pub(crate) fn lose(&self, lost: BodyLost) {
        let _over = self.tell(|state| {
            if matches!(state.end, End::Open) {
                state.end = End::Lost(lost);
            }
        });
    }

    fn tell(&self, change: impl FnOnce(&mut State)) -> bool {
        let mut state = self.0.lock();
        change(&mut state);
        let Reader::Waits(_) = state.reader else { return false };
        let reader = std::mem::replace(&mut state.reader, Reader::Reading);
        // Without the lock: a waker may be anything.
        drop(state);
        let Reader::Waits(waker) = reader else { return false };
        if waker.will_wake(&self.0.connection) {
            return true;
        }
        waker.wake();
        false
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        self.lose(BodyLost::Finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_known_length_is_what_was_not_taken() {
        let (inbound, channel) = Inbound::new(Some(10), Waker::noop().clone());
        let mut context = Context::from_waker(Waker::noop());
        assert!(channel.poll(&mut context).is_pending(), "it asks");
        for (piece, left) in [(&b"0123"[..], 6), (b"456789", 0)] {
            let before = channel.left();
            let _polls = inbound.push(Bytes::from_static(piece));
            assert_eq!(channel.left(), before, "it was not taken yet");
            assert!(channel.poll(&mut context).is_ready());
            assert_eq!(channel.left(), Some(left));
        }
    }

    #[test]
    fn what_comes_for_a_body_that_was_dropped_is_not_kept() {
        let (inbound, channel) = Inbound::new(None, Waker::noop().clone());
        assert!(channel.poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it asks");
        let memory = Arc::new([b'x'; 100]);
        let piece = || Bytes::from_owner(Lent(memory.clone()));
        let _polls = inbound.push(piece());
        assert_eq!(Arc::strong_count(&memory), 2, "it waits");
        channel.reader_gone();
        let _polls = inbound.push(piece());
        assert_eq!((Arc::strong_count(&memory), inbound.demand()), (1, Demand::Nothing));
    }

    struct Lent(Arc<[u8; 100]>);

    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            &*self.0
        }
    }

    /// What so many pieces of a body, of one octet each, take until their peer has to wait.
    #[test]
    fn small_pieces_are_as_many_as_there_is_memory_for_not_as_many_as_octets() {
        let (inbound, channel) = Inbound::new(None, Waker::noop().clone());
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
