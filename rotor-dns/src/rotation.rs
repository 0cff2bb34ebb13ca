//! `Rotation`: with which server each query begins, if they take turns (`rotate`, resolv.conf(5)).
//! Pure.

use crate::record::Question;

/// Spreads the load over the servers. Without it the second server gets only the questions at which
/// the first has failed.
///
/// The two questions for a host, which follow each other, begin with the same server. If each of
/// them went to the next one, then with two servers one would get all questions for IPv6 addresses
/// and the other all for IPv4 addresses; and if one of them was silent, no host would be found
/// without waiting for it.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    /// How often it has moved on to the next server.
    turns: usize,
    /// The last question, if the next one may be its counterpart of the other family.
    first_of_pair: Option<Question>,
}

impl Rotation {
    /// Puts the servers into the order in which they are asked this question.
    pub(crate) fn apply<S>(&mut self, question: &Question, servers: &mut [S]) {
        let is_second_of_pair = self
            .first_of_pair
            .take()
            .is_some_and(|first| first.name == question.name && first.kind != question.kind);
        if !is_second_of_pair {
            self.turns = self.turns.wrapping_add(1);
            self.first_of_pair = Some(question.clone());
        }
        if !servers.is_empty() {
            // The first turn is that of the first server.
            servers.rotate_left(self.turns.wrapping_sub(1) % servers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind::{A, Aaaa};

    #[test]
    fn each_query_begins_with_the_next_server_but_both_of_a_host_with_the_same() {
        let mut rotation = Rotation::default();
        for (number, (name, kind, first)) in [
            ("a", Aaaa, 0),
            ("a", A, 0),
            ("b", Aaaa, 1),
            ("b", A, 1),
            // Only one of the two had to be asked; a name that is asked for again and again.
            ("c", A, 2),
            ("c", A, 0),
            ("c", A, 1),
            ("d", Aaaa, 2),
            ("e", A, 0),
            ("f", Aaaa, 1),
            ("f", A, 1),
            ("f", Aaaa, 2),
            ("f", A, 2),
        ]
        .into_iter()
        .enumerate()
        {
            let question = Question { name: name.parse().expect("a name"), kind };
            let mut servers = [0, 1, 2];
            rotation.apply(&question, &mut servers);
            assert_eq!(servers, [first, (first + 1) % 3, (first + 2) % 3], "number {number}");
        }
    }
}
