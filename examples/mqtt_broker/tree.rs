//! All subscriptions, as a tree in which each node is one level of the filters.

use std::collections::BTreeMap;

use super::packet::Qos;
use super::session::SessionId;
use super::topic::{ALL, ONE, is_hidden};

/// The cost of a message is the number of nodes that its name leads to, not the number of all
/// subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// By the level of the filter; `+` and `#`, which no name contains, stand for themselves.
    children: BTreeMap<Box<str>, Node>,
    /// The sessions whose filters end here.
    subscribers: BTreeMap<SessionId, Qos>,
}

impl Tree {
    pub(crate) fn insert(&mut self, filter: &str, session: SessionId, qos: Qos) {
        let mut node = &mut self.root;
        for level in filter.split('/') {
            node = node.children.entry(level.into()).or_default();
        }
        node.subscribers.insert(session, qos);
    }

    pub(crate) fn remove(&mut self, filter: &str, session: SessionId) {
        self.root.remove(Some(filter), session);
    }

    /// Adds all subscribers of a name, each once, with the highest QoS of its filters (§3.3.5).
    pub(crate) fn find(&self, name: &str, found: &mut Vec<(SessionId, Qos)>) {
        self.root.find(Some(name), is_hidden(name), found);
        found.sort_unstable_by_key(|(session, qos)| (*session, std::cmp::Reverse(*qos)));
        found.dedup_by_key(|(session, _)| *session);
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.subscribers.is_empty()
    }

    /// The recursion is as deep as filters are, which is limited when they are accepted.
    fn remove(&mut self, rest: Option<&str>, session: SessionId) {
        let Some(rest) = rest else {
            self.subscribers.remove(&session);
            return;
        };
        let (level, rest) = split(rest);
        let Some(child) = self.children.get_mut(level) else { return };
        child.remove(rest, session);
        if child.is_empty() {
            self.children.remove(level);
        }
    }

    /// The recursion is as deep as filters are, however deep the name is.
    fn find(&self, rest: Option<&str>, is_hidden: bool, found: &mut Vec<(SessionId, Qos)>) {
        if let Some(all) = self.children.get(ALL).filter(|_| !is_hidden) {
            all.add_to(found);
        }
        let Some(rest) = rest else { return self.add_to(found) };
        let (level, rest) = split(rest);
        if let Some(child) = self.children.get(level) {
            child.find(rest, false, found);
        }
        if let Some(one) = self.children.get(ONE).filter(|_| !is_hidden) {
            one.find(rest, false, found);
        }
    }

    fn add_to(&self, found: &mut Vec<(SessionId, Qos)>) {
        found.extend(self.subscribers.iter().map(|(session, qos)| (*session, *qos)));
    }
}

fn split(rest: &str) -> (&str, Option<&str>) {
    rest.split_once('/').map_or((rest, None), |(level, rest)| (level, Some(rest)))
}
