//! `Origin`: what the books of a pool say of one server: who waits for it, and what the connections
//! to it do.

use std::collections::{BTreeMap, VecDeque};

use crate::client::feed::Room;

/// A connection of the pool.
pub(super) type MemberId = u64;

/// One server. `J` is a job, `W` wakes a connection.
pub(super) struct Origin<J, W> {
    /// Oldest first.
    pub(super) waiting: VecDeque<Queued<J>>,
    /// Those that were begun before and want a new connection; begun before the others.
    pub(super) repeated: VecDeque<Queued<J>>,
    members: BTreeMap<MemberId, State<W>>,
    /// Those with nothing to do, and since when; the one that was used last is used next, so that
    /// the others may end.
    idle: Vec<(Moment, MemberId)>,
    connecting: usize,
    woken: usize,
    ending: usize,
    /// What is known of how many requests a connection takes.
    known: Known,
    /// The last that was made of those that take one.
    newest_of_one: Option<MemberId>,
    /// It is among those for which something may have to be done.
    pub(super) is_due: bool,
}

/// A job that waits, and what it takes meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queued<J> {
    pub(super) job: J,
    pub(super) bytes: usize,
}

/// Grows with each connection that becomes idle, of any server.
pub(super) type Moment = u64;

/// What a connection does.
///
/// One that speaks HTTP/2 is `Sharing` from then on, and is idle while it has nothing under way.
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
    /// It is to look for work, and has not looked yet.
    Woken,
    Ending,
    /// It speaks HTTP/2.
    Sharing(Sharing<W>),
}

/// A connection that has many requests under way.
struct Sharing<W> {
    room: Room,
    waker: W,
    /// It is to look for work, and has not looked yet.
    is_woken: bool,
}

/// How many requests a connection to a server has at a time: what the last that was made has said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It may be many: those who wait are to wait for what the first connection says.
    Nothing,
    One,
    Many(u32),
}

/// What a connection finds when it looks for work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<J> {
    Job(J),
    Nothing,
    /// It is not wanted any more.
    End,
}

/// What those who wait for a server lack.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Lack {
    Nothing,
    Connection,
    NewConnection,
}

/// What a connection did that has left the books.
pub(super) enum Left {
    /// It was not in the books.
    Unknown,
    /// It was asked to end, for want of its place.
    Ending,
    Other,
}

impl<J, W> Origin<J, W> {
    /// A server of which nothing is known but whether its connections may take many requests.
    pub(super) fn new(may_share: bool) -> Origin<J, W> {
        Origin {
            waiting: VecDeque::new(),
            repeated: VecDeque::new(),
            members: BTreeMap::new(),
            idle: Vec::new(),
            connecting: 0,
            woken: 0,
            ending: 0,
            known: if may_share { Known::Nothing } else { Known::One },
            newest_of_one: None,
            is_due: false,
        }
    }

    /// The one door through which a connection changes what it does.
    fn set(&mut self, id: MemberId, state: Option<State<W>>) -> Option<State<W>> {
        self.count(state.as_ref(), 1);
        let before = match state {
            Some(state) => self.members.insert(id, state),
            None => self.members.remove(&id),
        };
        self.count(before.as_ref(), -1);
        if matches!(before, Some(State::Idle(_) | State::Sharing(_))) {
            // Linear, and short: idle connections to one server.
            self.idle.retain(|(_, idle)| *idle != id);
        }
        before
    }

    fn count(&mut self, state: Option<&State<W>>, by: isize) {
        let counter = match state {
            Some(State::Connecting) => &mut self.connecting,
            Some(State::Woken) => &mut self.woken,
            Some(State::Ending) => &mut self.ending,
            Some(State::Idle(_) | State::Busy | State::Sharing(_)) | None => return,
        };
        *counter = counter.saturating_add_signed(by);
    }

    /// A connection is about to be made.
    pub(super) fn connect(&mut self, id: MemberId) {
        self.set(id, Some(State::Connecting));
    }

    /// A connection looks for work; if there is none, `waker` wakes it later.
    pub(super) fn take(
        &mut self,
        id: MemberId,
        now: Moment,
        waker: impl FnOnce() -> W,
    ) -> Found<Queued<J>> {
        let repeated = match self.members.get(&id) {
            None | Some(State::Ending) => return Found::End,
            // Woken for something else; nothing was put aside for it.
            Some(State::Idle(_)) => return Found::Nothing,
            Some(State::Sharing(_)) => return self.take_shared(id),
            // A repeated request needs a connection that has served nobody, which only a new one
            // is.
            Some(State::Connecting) => self.repeated.pop_front(),
            Some(State::Busy | State::Woken) => None,
        };
        if let Some(State::Connecting) = self.members.get(&id) {
            // It speaks HTTP/1.1, whatever others did before: those who wait must not wait for what
            // each further connection says.
            self.known = Known::One;
            self.newest_of_one = self.newest_of_one.max(Some(id));
        }
        if let Some(job) = repeated.or_else(|| self.waiting.pop_front()) {
            self.set(id, Some(State::Busy));
            return Found::Job(job);
        }
        self.set(id, Some(State::Idle(waker())));
        self.idle.push((now, id));
        Found::Nothing
    }

    /// Whether more requests than one wait for this connection, which has still to say what it
    /// speaks.
    pub(super) fn is_to_take_many(&self, id: MemberId) -> bool {
        self.known != Known::One && matches!(self.members.get(&id), Some(State::Connecting))
    }

    /// A connection speaks HTTP/2, and has so much room.
    pub(super) fn share(
        &mut self,
        id: MemberId,
        room: Room,
        now: Moment,
        waker: impl FnOnce() -> W,
    ) {
        if matches!(self.members.get(&id), None | Some(State::Ending)) {
            return;
        }
        // One that is older than another that takes one request says nothing of the next.
        if Some(id) > self.newest_of_one && room.further > 0 {
            self.known = Known::Many(room.under_way + room.further);
        }
        let waker = match self.set(id, None) {
            Some(State::Sharing(Sharing { waker, .. })) => waker,
            _ => waker(),
        };
        self.set(id, Some(State::Sharing(Sharing { room, waker, is_woken: false })));
        // A connection that takes no more is about to end by itself.
        if room.under_way == 0 && room.further > 0 {
            self.idle.push((now, id));
        }
    }

    /// A connection that has room looks for work. It is told of what was refused unseen, too: that
    /// it stands is known by what it has under way.
    fn take_shared(&mut self, id: MemberId) -> Found<Queued<J>> {
        let Some(State::Sharing(sharing)) = self.members.get_mut(&id) else {
            return Found::Nothing;
        };
        sharing.is_woken = false;
        if sharing.room.further == 0 {
            return Found::Nothing;
        }
        let Some(job) = self.repeated.pop_front().or_else(|| self.waiting.pop_front()) else {
            return Found::Nothing;
        };
        sharing.room.under_way += 1;
        sharing.room.further -= 1;
        self.idle.retain(|(_, idle)| *idle != id);
        Found::Job(job)
    }

    /// A connection has ended, or was not made.
    pub(super) fn remove(&mut self, id: MemberId) -> Left {
        match self.set(id, None) {
            None => Left::Unknown,
            Some(State::Connecting) => {
                // It has told nothing, so the others must not wait for the next one alone.
                if self.known == Known::Nothing {
                    self.known = Known::One;
                }
                Left::Other
            }
            Some(State::Ending) => Left::Ending,
            Some(_) => Left::Other,
        }
    }

    /// Returns how many connections there are, whatever they do.
    pub(super) fn connections(&self) -> usize {
        self.members.len()
    }

    /// Returns whether more wait than connections are about to take.
    pub(super) fn lack(&self) -> Lack {
        let each = match self.known {
            // Everybody waits for what the first connection says.
            Known::Nothing => self.repeated.len() + self.waiting.len(),
            Known::One => 1,
            Known::Many(requests) => requests as usize,
        };
        let shared: usize =
            self.shared().filter(|own| own.is_woken).map(|own| own.room.further as usize).sum();
        // Each of the repeated ones needs a new connection, or room on one of HTTP/2.
        let coming = (self.connecting * each + shared).checked_sub(self.repeated.len());
        let Some(coming) = coming else { return Lack::NewConnection };
        if self.waiting.len() > coming + self.woken { Lack::Connection } else { Lack::Nothing }
    }

    /// Returns whether fewer connections end than are wanted anew.
    pub(super) fn ends_too_few(&self) -> bool {
        self.ending < self.repeated.len()
    }

    /// Whether somebody waits for it, and it has no connection.
    pub(super) fn starves(&self) -> bool {
        self.members.is_empty() && self.lack() != Lack::Nothing
    }

    /// Has a connection end that has done its work and looks for more, if it is not the only one.
    pub(super) fn end_one_of_several(&mut self, id: MemberId) -> bool {
        let is_one = matches!(self.members.get(&id), Some(State::Busy));
        let ends = is_one && self.members.len() - self.ending > 1;
        if ends {
            self.set(id, Some(State::Ending));
        }
        ends
    }

    fn shared(&self) -> impl Iterator<Item = &Sharing<W>> {
        self.members.values().filter_map(|state| match state {
            State::Sharing(sharing) => Some(sharing),
            _ => None,
        })
    }

    /// Wakes a connection for those who wait: the fullest that has room, so that others may end.
    pub(super) fn wake(&mut self, lack: &Lack) -> Option<W>
    where
        W: Clone,
    {
        let with_room = self.members.values_mut().filter_map(|state| match state {
            State::Sharing(own) if own.room.further > 0 && !own.is_woken => Some(own),
            _ => None,
        });
        if let Some(sharing) = with_room.min_by_key(|own| own.room.further) {
            sharing.is_woken = true;
            return Some(sharing.waker.clone());
        }
        // A repeated request needs a connection that has served nobody.
        if *lack == Lack::Connection { self.wake_idle() } else { None }
    }

    /// Wakes the connection that was used last.
    fn wake_idle(&mut self) -> Option<W> {
        // The one that was used last is most likely still open at the server.
        let is_idle = |id: &MemberId| matches!(self.members.get(id), Some(State::Idle(_)));
        let (_, id) = *self.idle.iter().rev().find(|(_, id)| is_idle(id))?;
        waker_of(self.set(id, Some(State::Woken)))
    }

    /// Returns since when the connection has had nothing to do that was used longest ago.
    pub(super) fn idle_since(&self) -> Option<Moment> {
        self.idle.first().map(|(since, _)| *since)
    }

    /// Has that connection end.
    pub(super) fn end_idle(&mut self) -> Option<W> {
        let (_, id) = *self.idle.first()?;
        waker_of(self.set(id, Some(State::Ending)))
    }

    /// The request that a connection was to serve which could not be made.
    pub(super) fn take_oldest(&mut self) -> Option<Queued<J>> {
        // Those of `repeated` were asked before all others.
        self.repeated.pop_front().or_else(|| self.waiting.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.repeated.is_empty() && self.members.is_empty()
    }
}

fn waker_of<W>(state: Option<State<W>>) -> Option<W> {
    match state? {
        State::Idle(waker) | State::Sharing(Sharing { waker, .. }) => Some(waker),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacked_is_what_waits_beyond_what_is_on_its_way() {
        for (waiting, repeated, connecting, woken, lack) in [
            (0, 0, 0, 0, Lack::Nothing),
            (1, 0, 0, 0, Lack::Connection),
            (1, 0, 1, 0, Lack::Nothing),
            (1, 0, 0, 1, Lack::Nothing),
            (3, 0, 1, 1, Lack::Connection),
            (0, 1, 0, 0, Lack::NewConnection),
            (0, 1, 0, 1, Lack::NewConnection),
            (0, 1, 1, 0, Lack::Nothing),
            (1, 1, 1, 0, Lack::Connection),
            (1, 1, 2, 0, Lack::Nothing),
        ] {
            let mut origin: Origin<u32, MemberId> = Origin::new(false);
            for id in 0..woken {
                origin.connect(id);
                assert_eq!(origin.take(id, id, || id), Found::Nothing);
                assert_eq!(origin.wake_idle(), Some(id));
            }
            (woken..woken + connecting).for_each(|id| origin.connect(id));
            let queued = |job| Queued { job, bytes: 1 };
            origin.waiting.extend((0..waiting).map(queued));
            origin.repeated.extend((0..repeated).map(queued));
            assert_eq!(origin.lack(), lack, "{waiting} {repeated} {connecting} {woken}");
        }
    }

    #[test]
    fn the_one_used_last_is_woken_and_the_one_used_longest_ago_ends() {
        let mut origin: Origin<u32, MemberId> = Origin::new(false);
        for (moment, id) in [(5, 1), (6, 3), (7, 2)] {
            origin.connect(id);
            assert_eq!(origin.take(id, moment, || id), Found::Nothing);
        }
        assert_eq!((origin.idle_since(), origin.end_idle()), (Some(5), Some(1)));
        assert_eq!((origin.wake_idle(), origin.idle_since()), (Some(2), Some(6)));
        assert_eq!(
            (origin.take(1, 8, || 1), origin.take(2, 8, || 2)),
            (Found::End, Found::Nothing)
        );
        assert!(matches!(origin.remove(1), Left::Ending));
        assert!(matches!(origin.remove(1), Left::Unknown));
        assert!(matches!(origin.remove(2), Left::Other));
    }
}
