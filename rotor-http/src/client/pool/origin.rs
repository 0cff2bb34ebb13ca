//! `Origin`: a pool's records of one server: the requests that wait for it, and the states of its
//! connections.

use std::collections::{BTreeMap, VecDeque};

use super::blocked::{Blocked, Rank};
use crate::client::request_source::Room;

/// Identifies a connection of the pool.
pub(super) type MemberId = u64;

/// One server. `J` is a job; `W` wakes a connection.
pub(super) struct Origin<J, W> {
    /// Oldest first.
    pub(super) waiting: VecDeque<QueuedJob<J>>,
    /// Requests that were begun before and need a new connection. They precede the others.
    pub(super) repeated: VecDeque<QueuedJob<J>>,
    members: BTreeMap<MemberId, State<W>>,
    /// Connections that have nothing to do, and since when. The one that was used last is used
    /// next, so that the others may end.
    idle: Vec<(LogicalTime, MemberId)>,
    connecting: usize,
    woken: usize,
    ending: usize,
    /// Places of connections that were lost during requests that are to be made again: the requests
    /// keep them.
    pub(super) kept_places: usize,
    /// How many requests a connection accepts, as far as that is known.
    concurrency: Concurrency,
    /// The last connection that was made of those that accept one request at a time.
    newest_serial: Option<MemberId>,
    /// Whether it is in the queue of origins that need attention.
    pub(super) is_due: bool,
    /// Its wait for a place for another connection.
    pub(super) blocked: Option<Blocked>,
}

/// A waiting job, and how many bytes it takes meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueuedJob<J> {
    pub(super) job: J,
    pub(super) bytes: usize,
}

/// A counter that grows with each connection, of any server, that becomes idle.
pub(super) type LogicalTime = u64;

/// The state of a connection.
///
/// A connection that speaks HTTP/2 is `Multiplexed` from then on, and is idle if it has no request
/// under way.
///
/// ```text
///   Connecting ─ takes ─▶ Busy ◀─ takes ─ Woken ◀─ wake ─┐
///        │                 │  │             │            │
///        └──── nothing ────┴──┼─ nothing ───┴─────────▶ Idle ─ its place is needed ─▶ Ending
///                             └─ one of several, and another server has none ──────────▶┘
/// ```
enum State<W> {
    Connecting,
    Busy,
    Idle(W),
    /// It was woken to look for work, but has not done so yet.
    Woken,
    Ending,
    /// It speaks HTTP/2.
    Multiplexed(MultiplexedConnection<W>),
}

/// An HTTP/2 connection, which has many requests under way.
struct MultiplexedConnection<W> {
    room: Room,
    waker: W,
    /// It was woken to look for work, but has not done so yet.
    is_woken: bool,
}

/// How many requests a connection to a server has at a time, as reported by the last one that was
/// made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    /// Possibly many: waiting requests wait for what the first connection reports.
    Unknown,
    One,
    Many(u32),
}

/// The result when a connection looks for work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TakeResult<J> {
    Job(J),
    Nothing,
    /// The connection is not needed any more and must end.
    End,
}

/// What the requests that wait for a server need.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Shortage {
    Nothing,
    Connection,
    NewConnection,
}

/// The state of a connection that has left the records.
pub(super) enum RemovedState {
    /// It was not in the records.
    Unknown,
    /// It was asked to end, because its place was needed.
    Ending,
    Other,
}

impl<J, W> Origin<J, W> {
    /// Makes the records of a server of which nothing is known except whether its connections may
    /// accept many requests.
    pub(super) fn new(may_multiplex: bool) -> Origin<J, W> {
        Origin {
            waiting: VecDeque::new(),
            repeated: VecDeque::new(),
            members: BTreeMap::new(),
            idle: Vec::new(),
            connecting: 0,
            woken: 0,
            ending: 0,
            kept_places: 0,
            concurrency: if may_multiplex { Concurrency::Unknown } else { Concurrency::One },
            newest_serial: None,
            is_due: false,
            blocked: None,
        }
    }

    /// Changes the state of a connection. All changes go through this method.
    fn set(&mut self, id: MemberId, state: Option<State<W>>) -> Option<State<W>> {
        self.count(state.as_ref(), 1);
        let before = match state {
            Some(state) => self.members.insert(id, state),
            None => self.members.remove(&id),
        };
        self.count(before.as_ref(), -1);
        if matches!(before, Some(State::Idle(_) | State::Multiplexed(_))) {
            // Linear, but short: it contains only idle connections to one server.
            self.idle.retain(|(_, idle)| *idle != id);
        }
        before
    }

    fn count(&mut self, state: Option<&State<W>>, by: isize) {
        let counter = match state {
            Some(State::Connecting) => &mut self.connecting,
            Some(State::Woken) => &mut self.woken,
            Some(State::Ending) => &mut self.ending,
            Some(State::Idle(_) | State::Busy | State::Multiplexed(_)) | None => return,
        };
        *counter = counter.saturating_add_signed(by);
    }

    /// Records a connection that is about to be made.
    pub(super) fn connect(&mut self, id: MemberId) {
        self.kept_places = self.kept_places.saturating_sub(1);
        self.set(id, Some(State::Connecting));
    }

    /// Returns work for a connection. If there is none, `waker` wakes it later.
    pub(super) fn take(
        &mut self,
        id: MemberId,
        now: LogicalTime,
        waker: impl FnOnce() -> W,
    ) -> TakeResult<QueuedJob<J>> {
        let repeated = match self.members.get(&id) {
            None | Some(State::Ending) => return TakeResult::End,
            // It was woken for another reason; no work is reserved for it.
            Some(State::Idle(_)) => return TakeResult::Nothing,
            Some(State::Multiplexed(_)) => return self.take_multiplexed(id),
            // A repeated request needs a connection that has made no request yet, so only a new one
            // will do.
            Some(State::Connecting) => self.repeated.pop_front(),
            Some(State::Busy | State::Woken) => None,
        };
        if let Some(State::Connecting) = self.members.get(&id) {
            // It speaks HTTP/1.1, whatever earlier connections did. Waiting requests must not wait
            // for what each further connection reports.
            self.concurrency = Concurrency::One;
            self.newest_serial = self.newest_serial.max(Some(id));
        }
        if let Some(job) = repeated.or_else(|| self.waiting.pop_front()) {
            self.set(id, Some(State::Busy));
            return TakeResult::Job(job);
        }
        self.set(id, Some(State::Idle(waker())));
        self.idle.push((now, id));
        TakeResult::Nothing
    }

    /// Returns whether more than one request waits for this connection, which has not reported yet
    /// what it speaks.
    pub(super) fn is_expected_to_multiplex(&self, id: MemberId) -> bool {
        self.concurrency != Concurrency::One
            && matches!(self.members.get(&id), Some(State::Connecting))
    }

    /// Records that a connection speaks HTTP/2, and its room.
    pub(super) fn set_room(
        &mut self,
        id: MemberId,
        room: Room,
        now: LogicalTime,
        waker: impl FnOnce() -> W,
    ) {
        if matches!(self.members.get(&id), None | Some(State::Ending)) {
            return;
        }
        // If a newer connection accepts only one request, an older one does not predict the next.
        if Some(id) > self.newest_serial && room.further > 0 {
            self.concurrency = Concurrency::Many(room.under_way + room.further);
        }
        let waker = match self.set(id, None) {
            Some(State::Multiplexed(MultiplexedConnection { waker, .. })) => waker,
            _ => waker(),
        };
        self.set(
            id,
            Some(State::Multiplexed(MultiplexedConnection { room, waker, is_woken: false })),
        );
        // A connection that accepts no more is about to end by itself.
        if room.under_way == 0 && room.further > 0 {
            self.idle.push((now, id));
        }
    }

    /// Returns work for an HTTP/2 connection that has room. This may also be a repeated request: an
    /// HTTP/2 connection need not be new for it, because the requests under way show that it works.
    fn take_multiplexed(&mut self, id: MemberId) -> TakeResult<QueuedJob<J>> {
        let Some(State::Multiplexed(multiplexed)) = self.members.get_mut(&id) else {
            return TakeResult::Nothing;
        };
        multiplexed.is_woken = false;
        if multiplexed.room.further == 0 {
            return TakeResult::Nothing;
        }
        let Some(job) = self.repeated.pop_front().or_else(|| self.waiting.pop_front()) else {
            return TakeResult::Nothing;
        };
        multiplexed.room.under_way += 1;
        multiplexed.room.further -= 1;
        self.idle.retain(|(_, idle)| *idle != id);
        TakeResult::Job(job)
    }

    /// Removes a connection that has ended, or was not made.
    pub(super) fn remove(&mut self, id: MemberId) -> RemovedState {
        match self.set(id, None) {
            None => RemovedState::Unknown,
            Some(State::Connecting) => {
                // It has reported nothing, so the other requests must not wait for the next one
                // alone.
                if self.concurrency == Concurrency::Unknown {
                    self.concurrency = Concurrency::One;
                }
                RemovedState::Other
            }
            Some(State::Ending) => RemovedState::Ending,
            Some(_) => {
                let is_kept = self.repeated.len() > self.connecting + self.kept_places;
                self.kept_places += usize::from(is_kept);
                RemovedState::Other
            }
        }
    }

    /// Returns whether the place of a lost connection is kept for a request of that connection.
    pub(super) fn keeps_place(&self) -> bool {
        self.kept_places > 0 && self.shortage() == Shortage::NewConnection
    }

    /// Removes a connection that was not even attempted, so that nothing was learned of the server.
    pub(super) fn remove_unattempted(&mut self, id: MemberId) -> RemovedState {
        let concurrency = self.concurrency;
        let removed = self.remove(id);
        self.concurrency = concurrency;
        removed
    }

    /// Returns the number of connections, whatever their state.
    pub(super) fn connections(&self) -> usize {
        self.members.len()
    }

    /// Returns whether more requests wait than connections are about to take.
    pub(super) fn shortage(&self) -> Shortage {
        let per_connection = match self.concurrency {
            // All requests wait for what the first connection reports.
            Concurrency::Unknown => self.repeated.len() + self.waiting.len(),
            Concurrency::One => 1,
            Concurrency::Many(requests) => requests as usize,
        };
        let multiplexed: usize = self
            .multiplexed()
            .filter(|own| own.is_woken)
            .map(|own| own.room.further as usize)
            .sum();
        // Each repeated request needs a new connection, or room on an HTTP/2 connection.
        let expected =
            (self.connecting * per_connection + multiplexed).checked_sub(self.repeated.len());
        let Some(expected) = expected else { return Shortage::NewConnection };
        if self.waiting.len() > expected + self.woken {
            Shortage::Connection
        } else {
            Shortage::Nothing
        }
    }

    /// Returns whether fewer connections are ending than new ones are needed.
    pub(super) fn needs_another_to_end(&self) -> bool {
        self.ending < self.repeated.len()
    }

    /// Returns whether requests wait for the server, and it has no connection.
    pub(super) fn is_starving(&self) -> bool {
        self.members.is_empty() && self.shortage() != Shortage::Nothing
    }

    /// Returns which servers get a place before this one.
    pub(super) fn rank(&self) -> Rank {
        match (self.keeps_place(), self.is_starving()) {
            (true, _) => Rank::KeepsPlace,
            (false, true) => Rank::Starving,
            (false, false) => Rank::HasConnections,
        }
    }

    /// Lets a connection that has finished its work end, if it is not the only one.
    pub(super) fn try_end_spare(&mut self, id: MemberId) -> bool {
        let is_serial = matches!(self.members.get(&id), Some(State::Busy));
        let ends = is_serial && self.members.len() - self.ending > 1;
        if ends {
            self.set(id, Some(State::Ending));
        }
        ends
    }

    /// Lets a connection that has finished its work end, because a repeated request needs a new one,
    /// and all others are taken by later requests.
    pub(super) fn try_end_for_repeated(&mut self, id: MemberId) -> bool {
        let ends = !self.repeated.is_empty()
            && !self.waiting.is_empty()
            && matches!(self.members.get(&id), Some(State::Busy))
            && self.needs_another_to_end()
            && self.shortage() == Shortage::NewConnection;
        if ends {
            self.set(id, Some(State::Ending));
        }
        ends
    }

    fn multiplexed(&self) -> impl Iterator<Item = &MultiplexedConnection<W>> {
        self.members.values().filter_map(|state| match state {
            State::Multiplexed(multiplexed) => Some(multiplexed),
            _ => None,
        })
    }

    /// Wakes a connection for the waiting requests: the fullest one that has room, so that others
    /// may end.
    pub(super) fn wake(&mut self, shortage: &Shortage) -> Option<W>
    where
        W: Clone,
    {
        let with_room = self.members.values_mut().filter_map(|state| match state {
            State::Multiplexed(own) if own.room.further > 0 && !own.is_woken => Some(own),
            _ => None,
        });
        if let Some(multiplexed) = with_room.min_by_key(|own| own.room.further) {
            multiplexed.is_woken = true;
            return Some(multiplexed.waker.clone());
        }
        // A repeated request needs a connection that has made no request yet.
        if *shortage == Shortage::Connection { self.wake_idle() } else { None }
    }

    /// Wakes the connection that was used last.
    fn wake_idle(&mut self) -> Option<W> {
        // The one that was used last is most likely still open at the server.
        let is_idle = |id: &MemberId| matches!(self.members.get(id), Some(State::Idle(_)));
        let (_, id) = *self.idle.iter().rev().find(|(_, id)| is_idle(id))?;
        waker_of(self.set(id, Some(State::Woken)))
    }

    /// Returns since when the longest idle connection has been idle.
    pub(super) fn idle_since(&self) -> Option<LogicalTime> {
        self.longest_idle().map(|(since, _)| since)
    }

    /// Lets the longest idle connection end.
    pub(super) fn end_idle(&mut self) -> Option<W> {
        let (_, id) = self.longest_idle()?;
        waker_of(self.set(id, Some(State::Ending)))
    }

    fn longest_idle(&self) -> Option<(LogicalTime, MemberId)> {
        // One that was woken is about to take a request.
        let is_woken = |id: &MemberId| matches!(self.members.get(id), Some(State::Multiplexed(own)) if own.is_woken);
        self.idle.iter().find(|(_, id)| !is_woken(id)).copied()
    }

    /// Takes the request for which a connection was to be made that could not be made.
    pub(super) fn take_oldest(&mut self) -> Option<QueuedJob<J>> {
        // The requests in `repeated` were asked before all others.
        self.repeated.pop_front().or_else(|| self.waiting.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.repeated.is_empty() && self.members.is_empty()
    }
}

fn waker_of<W>(state: Option<State<W>>) -> Option<W> {
    match state? {
        State::Idle(waker) | State::Multiplexed(MultiplexedConnection { waker, .. }) => Some(waker),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_what_waits_beyond_the_expected_connections() {
        for (waiting, repeated, connecting, woken, shortage) in [
            (0, 0, 0, 0, Shortage::Nothing),
            (1, 0, 0, 0, Shortage::Connection),
            (1, 0, 1, 0, Shortage::Nothing),
            (1, 0, 0, 1, Shortage::Nothing),
            (3, 0, 1, 1, Shortage::Connection),
            (0, 1, 0, 0, Shortage::NewConnection),
            (0, 1, 0, 1, Shortage::NewConnection),
            (0, 1, 1, 0, Shortage::Nothing),
            (1, 1, 1, 0, Shortage::Connection),
            (1, 1, 2, 0, Shortage::Nothing),
        ] {
            let mut origin: Origin<u32, MemberId> = Origin::new(false);
            for id in 0..woken {
                origin.connect(id);
                assert_eq!(origin.take(id, id, || id), TakeResult::Nothing);
                assert_eq!(origin.wake_idle(), Some(id));
            }
            (woken..woken + connecting).for_each(|id| origin.connect(id));
            let queued = |job| QueuedJob { job, bytes: 1 };
            origin.waiting.extend((0..waiting).map(queued));
            origin.repeated.extend((0..repeated).map(queued));
            assert_eq!(origin.shortage(), shortage, "{waiting} {repeated} {connecting} {woken}");
        }
    }

    #[test]
    fn the_most_recently_used_is_woken_and_the_longest_idle_ends() {
        let mut origin: Origin<u32, MemberId> = Origin::new(false);
        for (moment, id) in [(5, 1), (6, 3), (7, 2)] {
            origin.connect(id);
            assert_eq!(origin.take(id, moment, || id), TakeResult::Nothing);
        }
        assert_eq!((origin.idle_since(), origin.end_idle()), (Some(5), Some(1)));
        assert_eq!((origin.wake_idle(), origin.idle_since()), (Some(2), Some(6)));
        assert_eq!(
            (origin.take(1, 8, || 1), origin.take(2, 8, || 2)),
            (TakeResult::End, TakeResult::Nothing)
        );
        assert!(matches!(origin.remove(1), RemovedState::Ending));
        assert!(matches!(origin.remove(1), RemovedState::Unknown));
        assert!(matches!(origin.remove(2), RemovedState::Other));
    }
}
