//! `Questions`: what to ask the servers, in which order, and for which lookups. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lookup::LookupId;
use crate::query_link::QueryLink;
use crate::record::Question;

/// Questions that are being asked or wait for it. Equal questions are asked once, for all lookups.
/// It is dropped with the resolver, and then the queries under way are told.
#[derive(Default)]
pub(crate) struct Questions {
    pending: BTreeMap<Question, PendingQuestion>,
    /// The questions that wait for their turn, in order.
    queue: BTreeMap<u64, Question>,
    /// The questions that are being asked although no lookup waits for them any more, the oldest
    /// first.
    unawaited: BTreeMap<u64, Question>,
    /// How many queries were told to make room and have not ended yet.
    giving_way: usize,
    last_place: u64,
}

struct PendingQuestion {
    /// The lookups that wait for it; at least one as long as the question is in the queue. They are
    /// sorted, so that each of many can be removed without a search through the others.
    waiters: BTreeSet<LookupId>,
    state: QuestionState,
    /// What its query is told.
    link: Arc<QueryLink>,
}

#[derive(Clone, Copy)]
enum QuestionState {
    /// It waits for its turn, at this place.
    Queued(u64),
    /// It is being asked.
    Asked,
    /// It is being asked, only for the cache; its place among such questions.
    Unawaited(u64),
    /// Its query was told to make room.
    GivingWay,
}

impl Questions {
    /// Adds a question for a lookup. Returns whether other lookups wait for it already.
    pub(crate) fn add_waiter(&mut self, question: &Question, id: LookupId) -> bool {
        // A thousand clients that come back at the same moment cause one datagram.
        if let Some(pending) = self.pending.get_mut(question) {
            pending.waiters.insert(id);
            pending.link.set_awaited(true);
            match pending.state {
                QuestionState::Queued(_) | QuestionState::Asked => return true,
                QuestionState::Unawaited(place) => drop(self.unawaited.remove(&place)),
                // If it has not ended yet, it goes on.
                QuestionState::GivingWay => self.giving_way -= 1,
            }
            pending.state = QuestionState::Asked;
            return true;
        }
        self.last_place += 1;
        self.queue.insert(self.last_place, question.clone());
        let pending = PendingQuestion {
            waiters: BTreeSet::from([id]),
            state: QuestionState::Queued(self.last_place),
            link: Arc::new(QueryLink::awaited()),
        };
        self.pending.insert(question.clone(), pending);
        false
    }

    /// Removes a lookup that no longer waits for the question. If no other lookup waits for it, the
    /// question leaves the queue at once, so that cancelled lookups take no memory. If it is being
    /// asked already, the reply goes into the cache, but no other server is asked, and the query
    /// ends early if another question needs its place.
    pub(crate) fn remove_waiter(&mut self, question: &Question, id: LookupId) {
        let Some(pending) = self.pending.get_mut(question) else { return };
        pending.waiters.remove(&id);
        if !pending.waiters.is_empty() {
            return;
        }
        pending.link.set_awaited(false);
        match pending.state {
            QuestionState::Queued(place) => {
                self.queue.remove(&place);
                self.pending.remove(question);
            }
            QuestionState::Asked => {
                self.last_place += 1;
                self.unawaited.insert(self.last_place, question.clone());
                pending.state = QuestionState::Unawaited(self.last_place);
            }
            QuestionState::Unawaited(_) | QuestionState::GivingWay => {}
        }
    }

    /// Has queries that no lookup waits for end soon, one for each question that waits for its turn.
    pub(crate) fn make_room(&mut self) {
        while self.giving_way < self.queue.len() {
            let Some((_, question)) = self.unawaited.pop_first() else { return };
            let Some(pending) = self.pending.get_mut(&question) else { continue };
            pending.state = QuestionState::GivingWay;
            self.giving_way += 1;
            pending.link.wake_query();
        }
    }

    /// Takes the next question to ask from the queue, with the link to its query. It is in progress
    /// until `take_waiters`.
    pub(crate) fn start_next(&mut self) -> Option<(Question, Arc<QueryLink>)> {
        let (_, question) = self.queue.pop_first()?;
        let pending = self.pending.get_mut(&question)?;
        pending.state = QuestionState::Asked;
        Some((question, pending.link.clone()))
    }

    /// Handles the end of a query that no lookup was waiting for. One that has begun to wait since
    /// needs another query.
    pub(crate) fn query_abandoned(&mut self, question: &Question) {
        for id in self.take_waiters(question) {
            self.add_waiter(question, id);
        }
    }

    /// Removes a question that has a reply, and returns the lookups that wait for it.
    pub(crate) fn take_waiters(&mut self, question: &Question) -> BTreeSet<LookupId> {
        let Some(pending) = self.pending.remove(question) else { return BTreeSet::new() };
        match pending.state {
            QuestionState::Queued(place) => drop(self.queue.remove(&place)),
            QuestionState::Asked => {}
            QuestionState::Unawaited(place) => drop(self.unawaited.remove(&place)),
            QuestionState::GivingWay => self.giving_way -= 1,
        }
        pending.waiters
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.pending.values().for_each(|pending| pending.link.wake_query());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    fn question(text: &str) -> Question {
        Question { name: text.parse().expect("a name"), kind: Kind::A }
    }

    fn next(questions: &mut Questions) -> Option<String> {
        questions.start_next().map(|(question, _)| question.name.to_string())
    }

    #[test]
    fn equal_questions_are_asked_once_and_others_in_order() {
        let mut questions = Questions::default();
        for (text, id) in [("b", 1), ("a", 2), ("b", 3), ("b", 4)] {
            questions.add_waiter(&question(text), id);
        }
        assert_eq!(next(&mut questions).as_deref(), Some("b"));
        // A lookup that joins while the question is in flight gets the same reply.
        questions.add_waiter(&question("b"), 5);
        questions.remove_waiter(&question("b"), 3);
        assert_eq!(next(&mut questions).as_deref(), Some("a"));
        assert_eq!(next(&mut questions), None);
        assert_eq!(questions.take_waiters(&question("b")), BTreeSet::from([1, 4, 5]));
        assert_eq!(questions.take_waiters(&question("b")), BTreeSet::new());
        questions.add_waiter(&question("b"), 6);
        assert_eq!(next(&mut questions).as_deref(), Some("b"), "it is asked anew");
    }

    #[test]
    fn an_unwanted_question_is_dropped_and_one_in_flight_is_not_repeated() {
        let mut questions = Questions::default();
        questions.add_waiter(&question("a"), 1);
        questions.add_waiter(&question("b"), 2);
        questions.remove_waiter(&question("a"), 7);
        questions.remove_waiter(&question("a"), 1);
        assert_eq!(next(&mut questions).as_deref(), Some("b"));
        questions.remove_waiter(&question("b"), 2);
        questions.add_waiter(&question("b"), 3);
        assert_eq!(next(&mut questions), None, "it is under way");
        assert_eq!(questions.take_waiters(&question("b")), BTreeSet::from([3]));
        assert!(questions.pending.is_empty() && questions.queue.is_empty());
    }

    #[test]
    fn a_question_in_flight_is_awaited_as_long_as_any_lookup_waits() {
        let mut questions = Questions::default();
        questions.add_waiter(&question("a"), 1);
        questions.add_waiter(&question("a"), 2);
        let (_, link) = questions.start_next().expect("one waits");
        for (id, expected) in [(1, true), (2, false)] {
            questions.remove_waiter(&question("a"), id);
            assert_eq!(link.is_awaited(), expected, "{id}");
        }
        questions.add_waiter(&question("a"), 3);
        assert!(link.is_awaited());
    }

    #[test]
    fn a_question_whose_query_was_abandoned_is_asked_again_only_for_a_new_waiter() {
        let mut questions = Questions::default();
        for joins in [false, true] {
            questions.add_waiter(&question("a"), 1);
            assert_eq!(next(&mut questions).as_deref(), Some("a"));
            questions.remove_waiter(&question("a"), 1);
            if joins {
                questions.add_waiter(&question("a"), 2);
            }
            questions.query_abandoned(&question("a"));
            assert_eq!(next(&mut questions).as_deref(), joins.then_some("a"));
        }
        assert_eq!(questions.take_waiters(&question("a")), BTreeSet::from([2]));
    }

    #[test]
    fn an_unawaited_query_gives_way_for_each_question_in_the_queue() {
        let mut questions = Questions::default();
        for (id, text) in ["a", "b", "c", "d"].into_iter().enumerate() {
            questions.add_waiter(&question(text), id as LookupId);
            assert_eq!(next(&mut questions).as_deref(), Some(text));
        }
        for (id, text) in [(2, "c"), (0, "a"), (1, "b")] {
            questions.remove_waiter(&question(text), id);
            questions.remove_waiter(&question(text), id);
        }
        let state = |questions: &Questions| (questions.giving_way, questions.unawaited.len());
        questions.make_room();
        assert_eq!(state(&questions), (0, 3), "nothing is waiting");
        questions.add_waiter(&question("e"), 5);
        questions.make_room();
        questions.make_room();
        assert_eq!(state(&questions), (1, 2));
        let gives_way = questions.pending[&question("c")].state;
        assert!(matches!(gives_way, QuestionState::GivingWay), "the oldest");
        // It is asked for again before it has ended; so is one that was not told to end.
        questions.add_waiter(&question("c"), 6);
        questions.add_waiter(&question("a"), 7);
        assert_eq!(state(&questions), (0, 1));
        questions.make_room();
        assert_eq!(state(&questions), (1, 0), "only one is left");
        questions.query_abandoned(&question("b"));
        assert_eq!(state(&questions), (0, 0));
        assert_eq!(next(&mut questions).as_deref(), Some("e"));
        for text in ["a", "c", "d", "e"] {
            assert_eq!(questions.take_waiters(&question(text)).len(), 1, "{text}");
        }
        assert!(questions.pending.is_empty() && questions.queue.is_empty());
    }

    /// Would take far too long if each cancelled lookup searched all the others.
    #[test]
    fn many_waiters_of_one_question_are_removed_quickly() {
        const MANY: LookupId = 400_000;
        let mut questions = Questions::default();
        let asked = question("a");
        (0..MANY).for_each(|id| assert_eq!(questions.add_waiter(&asked, id), id > 0));
        (0..MANY).rev().for_each(|id| questions.remove_waiter(&asked, id));
        assert_eq!(next(&mut questions), None);
    }
}
