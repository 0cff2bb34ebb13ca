//! The records of a pool: which requests wait for which server, and which connections there are.
//! Pure: it neither connects nor wakes, but returns which connections to wake, and where a new one
//! is needed.

use std::collections::{BTreeMap, VecDeque};

use super::blocked::{Blocked, BlockedKey};
use super::config::PoolConfig;
use super::origin::{LogicalTime, MemberId, Origin, QueuedJob, RemovedState, Shortage, TakeResult};
use crate::client::request_source::Room;

/// All servers that have waiting requests or connections. `J` is a job; `W` wakes a connection.
pub(super) struct Origins<O, J, W> {
    by_name: BTreeMap<O, Origin<J, W>>,
    /// The servers whose state has changed: `next_action` looks at each of them once.
    due: VecDeque<O>,
    /// The servers that need another connection, in the order in which they get the next places.
    blocked: BTreeMap<BlockedKey, O>,
    /// How many of them have no connection.
    blocked_starving: usize,
    /// How many times a server has begun to wait for a place.
    turns: u64,
    per_origin_max: usize,
    /// Returns whether connections may turn out to accept many requests.
    may_multiplex: fn(&O) -> bool,
    connections_max: usize,
    waiting_per_origin_max: usize,
    /// For all servers together: how many requests may wait, and how many bytes they may take; and
    /// how many do.
    waiting_max: Load,
    waiting: Load,
    connections: usize,
    /// Connections that are about to end because others need their places.
    ending: usize,
    /// How many servers waited for a place and had no connection when `next_action` had nothing more
    /// to do, less the places that have become free since.
    starving: usize,
    /// Whether a connection may have become idle since none was found.
    may_have_idle: bool,
    next_id: MemberId,
    now: LogicalTime,
}

/// How many jobs wait, and how many bytes they take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    jobs: usize,
    bytes: usize,
}

impl Load {
    fn add(&mut self, bytes: usize) {
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn remove(&mut self, bytes: usize) {
        self.jobs -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What to do next for the waiting requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PoolAction<O, W> {
    /// Wake this connection.
    Wake(W),
    /// Make a connection. It is counted already.
    Connect(O, MemberId),
    Nothing,
}

impl<O: Ord + Clone, J, W: Clone> Origins<O, J, W> {
    pub(super) fn new(config: &PoolConfig, may_multiplex: fn(&O) -> bool) -> Self {
        Origins {
            by_name: BTreeMap::new(),
            due: VecDeque::new(),
            blocked: BTreeMap::new(),
            blocked_starving: 0,
            turns: 0,
            per_origin_max: config.connections_per_origin_max,
            may_multiplex,
            connections_max: config.connections_max,
            waiting_per_origin_max: config.waiting_per_origin_max,
            waiting_max: Load { jobs: config.waiting_max, bytes: config.waiting_bytes_max },
            waiting: Load::default(),
            connections: 0,
            ending: 0,
            starving: 0,
            may_have_idle: false,
            next_id: 0,
            now: 0,
        }
    }

    /// Returns the records of this server, and marks it to be looked at by `next_action`. Makes
    /// them if necessary.
    fn mark_due(&mut self, name: O) -> &mut Origin<J, W> {
        let Origins { by_name, due, may_multiplex, .. } = self;
        let origin =
            by_name.entry(name.clone()).or_insert_with(|| Origin::new(may_multiplex(&name)));
        // Each server is in the queue only once: otherwise the queue would grow with the number of
        // requests.
        if !std::mem::replace(&mut origin.is_due, true) {
            due.push_back(name);
        }
        origin
    }

    /// Adds a request that takes so many bytes to the end of its queue. Returns it if there is no
    /// room. If no other request waits, it is accepted whatever its size.
    pub(super) fn add(&mut self, name: O, job: J, bytes: usize) -> Result<(), J> {
        let Load { jobs, bytes: taken } = self.waiting;
        let of_origin = self.by_name.get(&name).map_or(0, |origin| origin.waiting.len());
        let is_full = of_origin >= self.waiting_per_origin_max
            || jobs >= self.waiting_max.jobs
            || (jobs > 0 && taken.saturating_add(bytes) > self.waiting_max.bytes);
        if is_full {
            return Err(job);
        }
        self.waiting.add(bytes);
        self.mark_due(name).waiting.push_back(QueuedJob { job, bytes });
        Ok(())
    }

    /// Adds a request that is to be made again. It is not limited: it was accepted before, and
    /// takes the place of the connection that it lost.
    pub(super) fn add_repeated(&mut self, name: O, job: J, bytes: usize) {
        self.waiting.add(bytes);
        self.mark_due(name).repeated.push_back(QueuedJob { job, bytes });
    }

    /// Returns work for a connection that has nothing to do. If there is none, `waker` wakes it
    /// later.
    pub(super) fn take(
        &mut self,
        name: &O,
        id: MemberId,
        waker: impl FnOnce() -> W,
    ) -> TakeResult<J> {
        // Its server was removed, and the connection with it: it is no longer counted, so it must
        // end.
        let Some(origin) = self.by_name.get_mut(name) else { return TakeResult::End };
        self.now += 1;
        // Otherwise a server that always has work would keep its places forever.
        if self.starving > self.ending && origin.try_end_spare(id) {
            self.ending += 1;
            return TakeResult::End;
        }
        // It would never become idle, and could not end for that request then. At the limit of all
        // connections, those that are ending already give their places to the servers that wait.
        let is_full = origin.connections() >= self.per_origin_max
            || (self.connections >= self.connections_max && self.blocked.len() > self.ending);
        if is_full && origin.try_end_for_repeated(id) {
            self.ending += 1;
            return TakeResult::End;
        }
        // If it takes a request, its server needs one connection less.
        let is_blocked = origin.blocked.is_some();
        let was_expected_to_multiplex = origin.is_expected_to_multiplex(id);
        let result = match origin.take(id, self.now, waker) {
            TakeResult::Job(QueuedJob { job, bytes }) => {
                // From here on the connection holds the job, and the limits of connections apply.
                self.waiting.remove(bytes);
                if was_expected_to_multiplex || is_blocked {
                    // The other requests have waited to learn what the server speaks, or relied on
                    // the room of an earlier connection. This connection takes only one.
                    self.mark_due(name.clone());
                }
                return TakeResult::Job(job);
            }
            TakeResult::Nothing => TakeResult::Nothing,
            TakeResult::End => TakeResult::End,
        };
        if let TakeResult::Nothing = result {
            self.may_have_idle = true;
            if !origin.repeated.is_empty() || self.is_any_waiting() {
                // Other servers may wait for a place, which this connection has.
                self.mark_due(name.clone());
            }
        }
        result
    }

    /// Records that a connection speaks HTTP/2, and its room.
    pub(super) fn set_room(
        &mut self,
        name: &O,
        id: MemberId,
        room: Room,
        waker: impl FnOnce() -> W,
    ) {
        let Some(origin) = self.by_name.get_mut(name) else { return };
        self.now += 1;
        origin.set_room(id, room, self.now, waker);
        // Requests may wait for room on this connection or for another one, or other servers for
        // its place.
        let is_wanted = !origin.waiting.is_empty() || !origin.repeated.is_empty();
        self.may_have_idle |= room.under_way == 0;
        if is_wanted || (room.under_way == 0 && self.is_any_waiting()) {
            self.mark_due(name.clone());
        }
    }

    /// Returns whether a server may wait for a place.
    fn is_any_waiting(&self) -> bool {
        !self.due.is_empty() || !self.blocked.is_empty()
    }

    /// Removes a connection that has ended, or was not made.
    pub(super) fn remove(&mut self, name: &O, id: MemberId) {
        self.remove_by(name, id, Origin::remove);
    }

    /// Removes a connection for which there was no place in the loop.
    pub(super) fn remove_unattempted(&mut self, name: &O, id: MemberId) {
        self.remove_by(name, id, Origin::remove_unattempted);
    }

    fn remove_by(
        &mut self,
        name: &O,
        id: MemberId,
        remove: fn(&mut Origin<J, W>, MemberId) -> RemovedState,
    ) {
        let Some(origin) = self.by_name.get_mut(name) else { return };
        match remove(origin, id) {
            RemovedState::Unknown => return,
            RemovedState::Ending => self.ending -= 1,
            RemovedState::Other => {}
        }
        self.connections -= 1;
        // `next_action` gives the place to one of them, but other connections may look for work
        // before it is called.
        self.starving = self.starving.saturating_sub(1);
        self.mark_due(name.clone());
    }

    /// Takes the request for which a connection was to be made that could not be made.
    pub(super) fn take_for_failure(&mut self, name: &O) -> Option<J> {
        let QueuedJob { job, bytes } = self.by_name.get_mut(name)?.take_oldest()?;
        self.waiting.remove(bytes);
        Some(job)
    }

    /// Returns what to do next for the waiting requests. Call this until it returns `Nothing`. If
    /// the loop has no place for another connection, or the limit of all connections is reached,
    /// the longest idle connection has to make room.
    pub(super) fn next_action(&mut self, has_place: bool) -> PoolAction<O, W> {
        while let Some(name) = self.due.pop_front() {
            let Some(origin) = self.by_name.get_mut(&name) else { continue };
            let shortage = origin.shortage();
            if shortage != Shortage::NewConnection {
                origin.kept_places = 0;
            }
            // An existing connection is faster than a new one.
            if shortage != Shortage::Nothing
                && let Some(waker) = origin.wake(&shortage)
            {
                // The server keeps its turn: more requests may wait for it than this connection
                // takes.
                self.due.push_front(name);
                return PoolAction::Wake(waker);
            }
            origin.is_due = false;
            if shortage != Shortage::Nothing && origin.connections() < self.per_origin_max {
                self.block(name);
                continue;
            }
            // An idle connection cannot serve a request that needs a new one, so it makes room.
            let ends = shortage == Shortage::NewConnection && origin.needs_another_to_end();
            let ended = if ends { origin.end_idle() } else { None };
            let is_empty = origin.is_empty();
            self.unblock(&name);
            if is_empty {
                self.by_name.remove(&name);
            }
            let Some(waker) = ended else { continue };
            self.ending += 1;
            return PoolAction::Wake(waker);
        }
        if has_place
            && self.connections < self.connections_max
            && let Some(name) = self.blocked.first_key_value().map(|(_, name)| name.clone())
        {
            self.unblock(&name);
            let id = self.next_id;
            self.next_id += 1;
            self.connections += 1;
            // It may need more than this one; then its next turn comes after those of the others.
            self.mark_due(name.clone()).connect(id);
            return PoolAction::Connect(name, id);
        }
        // Each connection that ends gives its place to a server that is held up, so no more are
        // ended than necessary.
        if self.blocked.len() > self.ending && self.may_have_idle {
            if let Some(waker) = self.end_longest_idle() {
                self.ending += 1;
                return PoolAction::Wake(waker);
            }
            self.may_have_idle = false;
        }
        self.starving = self.blocked_starving;
        PoolAction::Nothing
    }

    /// Lets a server wait for a place. If it waits already, it keeps its turn among those of its
    /// rank, which may have changed.
    fn block(&mut self, name: O) {
        let Some(origin) = self.by_name.get(&name) else { return };
        let (rank, is_starving) = (origin.rank(), origin.is_starving());
        let turn = match self.unblock(&name) {
            Some(turn) => turn,
            None => {
                self.turns += 1;
                self.turns
            }
        };
        let Some(origin) = self.by_name.get_mut(&name) else { return };
        origin.blocked = Some(Blocked { key: (rank, turn), is_starving });
        self.blocked_starving += usize::from(is_starving);
        self.blocked.insert((rank, turn), name);
    }

    /// Ends the wait of a server for a place. Returns the turn that it had.
    fn unblock(&mut self, name: &O) -> Option<u64> {
        let Blocked { key, is_starving } = self.by_name.get_mut(name)?.blocked.take()?;
        self.blocked_starving -= usize::from(is_starving);
        self.blocked.remove(&key);
        Some(key.1)
    }

    fn end_longest_idle(&mut self) -> Option<W> {
        // This goes through all servers. Without a place for another connection, and while servers
        // wait for one, that is done for each connection that becomes idle.
        let idle =
            self.by_name.values_mut().filter_map(|origin| Some((origin.idle_since()?, origin)));
        idle.min_by_key(|(since, _)| *since).and_then(|(_, origin)| origin.end_idle())
    }

    /// Removes and returns the requests that need not wait any longer.
    pub(super) fn remove_where(&mut self, is_over: impl Fn(&J) -> bool) -> Vec<J> {
        let mut out = Vec::new();
        let mut changed = Vec::new();
        for (name, origin) in &mut self.by_name {
            for queue in [&mut origin.repeated, &mut origin.waiting] {
                // Most queues contain none, and are left unchanged.
                if queue.iter().any(|queued| is_over(&queued.job)) {
                    let (over, left): (VecDeque<QueuedJob<J>>, VecDeque<QueuedJob<J>>) =
                        std::mem::take(queue).into_iter().partition(|queued| is_over(&queued.job));
                    *queue = left;
                    over.iter().for_each(|queued| self.waiting.remove(queued.bytes));
                    out.extend(over.into_iter().map(|queued| queued.job));
                    changed.push(name.clone());
                }
            }
        }
        for name in changed {
            // If nothing is left, `next_action` removes the server.
            self.mark_due(name);
        }
        out
    }

    /// Returns whether `next_action` may return something.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns whether a request waits to be made again.
    pub(super) fn has_repeated(&self) -> bool {
        self.by_name.values().any(|origin| !origin.repeated.is_empty())
    }

    /// Returns the waiting requests.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &J> {
        self.by_name
            .values()
            .flat_map(|origin| origin.repeated.iter().chain(&origin.waiting))
            .map(|queued| &queued.job)
    }

    /// Returns whether no request waits and there is no connection. Valid after `next_action` has
    /// returned `Nothing`.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

#[cfg(test)]
mod tests;
