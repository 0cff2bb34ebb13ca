//! `Questions`: what to ask the servers, in which order, and for which lookups. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::lookup::LookupId;
use crate::record::Question;

/// Questions that are being asked or wait for it. Equal questions are asked once, for all lookups.
#[derive(Default)]
pub(crate) struct Questions {
    pending: BTreeMap<Question, Pending>,
    /// The questions that wait for their turn, in order.
    queue: BTreeMap<u64, Question>,
    last_turn: u64,
}

struct Pending {
    /// The lookups that wait for it; at least one as long as the question is in the queue. They are
    /// sorted, so that each of many can be removed without a search through the others.
    waiting: BTreeSet<LookupId>,
    /// Its place in the queue, until it is asked.
    turn: Option<u64>,
}

impl Questions {
    /// Adds a question for a lookup. Returns whether other lookups wait for it already.
    pub(crate) fn want(&mut self, question: &Question, id: LookupId) -> bool {
        // A thousand clients that come back at the same moment cause one datagram.
        if let Some(pending) = self.pending.get_mut(question) {
            pending.waiting.insert(id);
            return true;
        }
        self.last_turn += 1;
        self.queue.insert(self.last_turn, question.clone());
        let pending = Pending { waiting: BTreeSet::from([id]), turn: Some(self.last_turn) };
        self.pending.insert(question.clone(), pending);
        false
    }

    /// Removes a lookup that no longer waits for the question. If no other lookup waits for it, the
    /// question leaves the queue at once, so that cancelled lookups take no memory. If it is being
    /// asked already, the reply goes into the cache.
    pub(crate) fn forget(&mut self, question: &Question, id: LookupId) {
        let Some(pending) = self.pending.get_mut(question) else { return };
        pending.waiting.remove(&id);
        if let (true, Some(turn)) = (pending.waiting.is_empty(), pending.turn) {
            self.queue.remove(&turn);
            self.pending.remove(question);
        }
    }

    /// Takes the next question to ask from the queue. It is in progress until it is `answered`.
    pub(crate) fn begin_next(&mut self) -> Option<Question> {
        let (_, question) = self.queue.pop_first()?;
        if let Some(pending) = self.pending.get_mut(&question) {
            pending.turn = None;
        }
        Some(question)
    }

    /// Removes a question that has a reply, and returns the lookups that wait for it.
    pub(crate) fn answered(&mut self, question: &Question) -> BTreeSet<LookupId> {
        self.pending.remove(question).map(|pending| pending.waiting).unwrap_or_default()
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
        questions.begin_next().map(|question| question.name.to_string())
    }

    #[test]
    fn equal_questions_are_asked_once_and_others_in_their_turn() {
        let mut questions = Questions::default();
        for (text, id) in [("b", 1), ("a", 2), ("b", 3), ("b", 4)] {
            questions.want(&question(text), id);
        }
        assert_eq!(next(&mut questions).as_deref(), Some("b"));
        // Who comes while it is under way has the same reply.
        questions.want(&question("b"), 5);
        questions.forget(&question("b"), 3);
        assert_eq!(next(&mut questions).as_deref(), Some("a"));
        assert_eq!(next(&mut questions), None);
        assert_eq!(questions.answered(&question("b")), BTreeSet::from([1, 4, 5]));
        assert_eq!(questions.answered(&question("b")), BTreeSet::new());
        questions.want(&question("b"), 6);
        assert_eq!(next(&mut questions).as_deref(), Some("b"), "it is asked anew");
    }

    #[test]
    fn what_nobody_waits_for_is_not_asked_and_what_is_asked_is_not_asked_again() {
        let mut questions = Questions::default();
        questions.want(&question("a"), 1);
        questions.want(&question("b"), 2);
        questions.forget(&question("a"), 7);
        questions.forget(&question("a"), 1);
        assert_eq!(next(&mut questions).as_deref(), Some("b"));
        questions.forget(&question("b"), 2);
        questions.want(&question("b"), 3);
        assert_eq!(next(&mut questions), None, "it is under way");
        assert_eq!(questions.answered(&question("b")), BTreeSet::from([3]));
        assert!(questions.pending.is_empty() && questions.queue.is_empty());
    }

    /// Without an end if each one that gives up looked through the others.
    #[test]
    fn a_great_many_give_up_one_question() {
        const MANY: LookupId = 400_000;
        let mut questions = Questions::default();
        let asked = question("a");
        (0..MANY).for_each(|id| assert_eq!(questions.want(&asked, id), id > 0));
        (0..MANY).rev().for_each(|id| questions.forget(&asked, id));
        assert_eq!(next(&mut questions), None);
    }
}
