//! Cycles in a graph of files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::arrows::Arrows;

/// Files that can all reach each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// All files of the cycle.
    pub(crate) files: BTreeSet<String>,
    /// One shortest path around it: each file, and the path by which it names an item of the next
    /// file.
    steps: Vec<(String, String)>,
}

/// Finds all cycles. Each file is in one at most.
pub(crate) fn cycles(arrows: &Arrows) -> Vec<Cycle> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows
        .keys()
        .map(|from| (from, shortest_paths(arrows, from).into_keys().collect()))
        .collect();
    let leads = |from: &String, to: &String| reached.get(from).is_some_and(|all| all.contains(to));
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for from in arrows.keys().filter(|from| leads(from, from)) {
        if !seen.contains(from) {
            let files: BTreeSet<String> = reached[from]
                .iter()
                .filter(|to| leads(to, from))
                .map(|to| to.to_string())
                .collect();
            seen.extend(files.iter().cloned());
            let ways_round = files.iter().map(|file| shortest_cycle(arrows, file));
            let steps = ways_round.min_by_key(Vec::len).unwrap_or_default();
            cycles.push(Cycle { files, steps });
        }
    }
    cycles
}

/// The files reachable from `from`, each with its predecessor on a shortest path. `from` itself is
/// included only if it is in a cycle.
fn shortest_paths<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeMap<&'a String, &'a String> {
    let mut before = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(file) = open.pop_front() {
        for to in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            before.entry(to).or_insert_with(|| {
                open.push_back(to);
                file
            });
        }
    }
    before
}

/// A shortest path from a file in a cycle back to itself.
fn shortest_cycle(arrows: &Arrows, start: &String) -> Vec<(String, String)> {
    let before = shortest_paths(arrows, start);
    let mut steps = Vec::new();
    let mut to = start;
    loop {
        let from = before[to];
        steps.push((from.clone(), arrows[from][to].clone()));
        if from == start {
            steps.reverse();
            return steps;
        }
        to = from;
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, path) in &self.steps {
            write!(f, "{file} ─{path}─▶ ")?;
        }
        write!(f, "{}", self.steps[0].0)?;
        let others =
            self.files.iter().filter(|file| self.steps.iter().all(|(step, _)| step != *file));
        let others: Vec<&str> = others.map(String::as_str).collect();
        if others.is_empty() { Ok(()) } else { write!(f, " (and {})", others.join(", ")) }
    }
}
