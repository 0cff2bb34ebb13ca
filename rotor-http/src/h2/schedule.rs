//! `Schedule`: which stream sends next, with one queue for each urgency in use (RFC 9218 §10).

use std::collections::VecDeque;

use super::priority::Priority;

/// The streams that have something to send and may send it.
///
/// The most urgent go first. Within one urgency, responses that can be used only as a whole go one
/// after the other, in the order of their requests, and incremental ones take turns. If there are
/// both, the two kinds take turns, so that neither waits for all of the other.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The most urgent first. Most connections have one, or none; eight queues would be the larger
    /// part of the memory of an idle connection.
    queues: Vec<Queue>,
    len: usize,
}

#[derive(Debug, Default)]
struct Queue {
    urgency: u8,
    /// In ascending order.
    in_order: VecDeque<u32>,
    incremental: VecDeque<u32>,
    /// If there are both, the next turn is one of `incremental`.
    is_incremental_next: bool,
    /// The same before the stream that was returned last.
    was_incremental_next: bool,
}

impl Schedule {
    /// Creates an empty schedule.
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Returns the number of streams.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a waiting stream goes before a new stream of this priority, or takes turns
    /// with it.
    pub fn is_ahead_of(&self, priority: Priority) -> bool {
        let has_precedence = |queue: &&Queue| queue.urgency <= urgency(priority);
        self.len > 0 && self.queues.iter().take_while(has_precedence).any(|queue| !queue.is_empty())
    }

    /// Adds a stream, which must not be there already.
    pub fn insert(&mut self, stream: u32, priority: Priority) {
        let queue = self.queue(urgency(priority));
        if priority.is_incremental {
            queue.incremental.push_back(stream);
        } else {
            let at = queue.in_order.partition_point(|own| *own < stream);
            queue.in_order.insert(at, stream);
        }
        self.len += 1;
    }

    /// Removes a stream that was added with this priority. Returns whether it was there.
    pub fn remove(&mut self, stream: u32, priority: Priority) -> bool {
        let queue = self.queue(urgency(priority));
        let list =
            if priority.is_incremental { &mut queue.incremental } else { &mut queue.in_order };
        let Some(at) = list.iter().position(|own| *own == stream) else { return false };
        list.remove(at);
        self.len -= 1;
        true
    }

    /// Returns the stream whose turn it is to send a frame. The caller must remove it if it has
    /// nothing more to send, or may not send it.
    pub fn next_stream(&mut self) -> Option<u32> {
        self.queues.iter_mut().find(|queue| !queue.is_empty())?.next()
    }

    /// Lets the stream that [`next_stream`](Schedule::next_stream) has just returned keep its turn,
    /// because there was no room for what it has to send. Otherwise something large would wait for
    /// as long as others fill the room with smaller frames.
    pub(crate) fn keep_turn(&mut self, stream: u32, priority: Priority) {
        let queue = self.queue(urgency(priority));
        queue.is_incremental_next = priority.is_incremental;
        if priority.is_incremental && queue.incremental.back() == Some(&stream) {
            queue.incremental.rotate_right(1);
        }
    }

    /// Takes back the turn of the stream that [`next_stream`](Schedule::next_stream) has just
    /// returned, which has not sent anything and is to be removed. Otherwise, if the window is used
    /// up after each turn, the same kind would have every turn: what the other kind could not use
    /// would count as its own.
    pub(crate) fn skip_turn(&mut self, priority: Priority) {
        let queue = self.queue(urgency(priority));
        queue.is_incremental_next = queue.was_incremental_next;
    }

    /// Returns the queue of this urgency, which is created if necessary.
    fn queue(&mut self, urgency: u8) -> &mut Queue {
        let at = match self.queues.binary_search_by_key(&urgency, |queue| queue.urgency) {
            Ok(at) => at,
            Err(at) => {
                // There is seldom more than this one.
                self.queues.reserve_exact(1);
                self.queues.insert(at, Queue { urgency, ..Queue::default() });
                at
            }
        };
        &mut self.queues[at]
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.incremental.is_empty()
    }

    fn next(&mut self) -> Option<u32> {
        let takes_incremental =
            self.in_order.is_empty() || (self.is_incremental_next && !self.incremental.is_empty());
        self.was_incremental_next = self.is_incremental_next;
        self.is_incremental_next = !takes_incremental;
        if takes_incremental {
            let stream = self.incremental.pop_front()?;
            self.incremental.push_back(stream);
            Some(stream)
        } else {
            self.in_order.front().copied()
        }
    }
}

fn urgency(priority: Priority) -> u8 {
    priority.urgency.min(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(streams: &[(u32, u8, bool, usize)]) -> Vec<u32> {
        let mut schedule = Schedule::new();
        let mut left: Vec<(u32, Priority, usize)> = Vec::new();
        for &(stream, urgency, is_incremental, frames) in streams {
            let priority = Priority { urgency, is_incremental };
            schedule.insert(stream, priority);
            left.push((stream, priority, frames));
        }
        let mut sent = Vec::new();
        while let Some(stream) = schedule.next_stream() {
            sent.push(stream);
            let (_, priority, frames) =
                left.iter_mut().find(|(own, ..)| *own == stream).expect("it was added");
            *frames -= 1;
            if *frames == 0 {
                assert!(schedule.remove(stream, *priority));
            }
        }
        assert!(schedule.is_empty());
        sent
    }

    #[test]
    fn urgent_streams_go_first_then_in_order_or_in_turns() {
        assert_eq!(order(&[(5, 3, false, 2), (3, 3, false, 2), (1, 3, false, 1)]), [1, 3, 3, 5, 5]);
        assert_eq!(order(&[(1, 3, true, 3), (3, 3, true, 2), (5, 3, true, 1)]), [1, 3, 5, 1, 3, 1]);
        assert_eq!(order(&[(1, 7, false, 1), (3, 0, true, 2), (5, 3, false, 1)]), [3, 3, 5, 1]);
        assert_eq!(
            order(&[(1, 3, false, 3), (3, 3, true, 2), (5, 3, true, 2)]),
            [1, 3, 1, 5, 1, 3, 5]
        );
    }

    #[test]
    fn a_stream_that_could_not_send_keeps_its_turn() {
        let incremental = Priority { urgency: 3, is_incremental: true };
        let mut schedule = Schedule::new();
        let streams = [(1, incremental), (3, incremental), (5, Priority::DEFAULT)];
        streams.iter().for_each(|(stream, priority)| schedule.insert(*stream, *priority));
        for stream in [5, 1, 5, 3, 5, 1] {
            for _ in 0..3 {
                assert_eq!(schedule.next_stream(), Some(stream));
                let (_, priority) = streams.iter().find(|(own, _)| *own == stream).expect("known");
                schedule.keep_turn(stream, *priority);
            }
            assert_eq!(schedule.next_stream(), Some(stream));
        }
    }

    #[test]
    fn streams_that_could_not_send_leave_the_turn_to_their_kind() {
        let incremental = Priority { urgency: 3, is_incremental: true };
        let all = [(1, Priority::DEFAULT), (3, incremental), (5, Priority::DEFAULT)];
        let mut schedule = Schedule::new();
        let mut first = Vec::new();
        for _ in 0..6 {
            all.iter().for_each(|(stream, priority)| schedule.insert(*stream, *priority));
            let mut has_sent = false;
            while let Some(stream) = schedule.next_stream() {
                let (_, priority) = all.iter().find(|(own, _)| *own == stream).expect("known");
                if std::mem::replace(&mut has_sent, true) {
                    schedule.skip_turn(*priority);
                } else {
                    first.push(stream);
                }
                assert!(schedule.remove(stream, *priority));
            }
        }
        assert_eq!(first, [1, 3, 1, 3, 1, 3]);
    }

    #[test]
    fn a_stream_is_removed_once_and_only_with_its_own_priority() {
        let mut schedule = Schedule::new();
        let incremental = Priority { urgency: 3, is_incremental: true };
        schedule.insert(1, incremental);
        assert!(!schedule.remove(1, Priority::DEFAULT));
        assert!(schedule.is_ahead_of(Priority::DEFAULT));
        assert!(!schedule.is_ahead_of(Priority { urgency: 2, is_incremental: false }));
        assert!(schedule.remove(1, incremental) && !schedule.remove(1, incremental));
        assert!(!schedule.is_ahead_of(Priority::DEFAULT) && schedule.next_stream().is_none());
    }
}
