//! Counters of other kinds: of TLS, WebSockets, the PROXY protocol, or of the program itself.

use std::fmt;

use crate::families::{Families, Labels};

/// Reads counters, each with its name.
type ReadFn = Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>;

/// Counters of one kind.
pub(crate) struct CounterGroup {
    pub(crate) kind: String,
    pub(crate) sources: Vec<(String, ReadFn)>,
}

impl CounterGroup {
    pub(crate) fn new(kind: &str) -> CounterGroup {
        CounterGroup { kind: metric_word(kind), sources: Vec::new() }
    }

    /// Returns whether the counters are of this kind.
    pub(crate) fn is_kind(&self, kind: &str) -> bool {
        self.kind == metric_word(kind)
    }

    pub(crate) fn write(&self, families: &mut Families<'_>) -> fmt::Result {
        let read: Vec<_> =
            self.sources.iter().map(|(name, read)| ([(&*self.kind, &**name)], read())).collect();
        let mut names: Vec<String> = Vec::new();
        for (name, _) in read.iter().flat_map(|(_, counters)| counters) {
            if !names.iter().any(|known| *known == counter_word(name)) {
                names.push(counter_word(name));
            }
        }
        for name in &names {
            let rows = read.iter().filter_map(|(labels, counters)| {
                let (_, count) = counters.iter().find(|(own, _)| counter_word(own) == *name)?;
                Some((Labels(labels), *count))
            });
            let help = format!("The counter {name} of {}.", self.kind);
            families.counters(&format!("rotor_{}_{name}", self.kind), &help, rows)?;
        }
        Ok(())
    }
}

/// Converts the name of a counter to a part of a metric's name, without the ending of counters.
fn counter_word(name: &str) -> String {
    metric_word(name.strip_suffix("_total").unwrap_or(name))
}

/// Converts text to a part of a metric's name, or to the name of a label.
fn metric_word(text: &str) -> String {
    let sign = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    let begin = if text.starts_with(|char: char| char.is_ascii_alphabetic()) { "" } else { "_" };
    begin.chars().chain(text.chars().map(sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_characters_become_underscores() {
        for (text, expected) in
            [("tls", "tls"), ("a-b c", "a_b_c"), ("2fa", "_2fa"), ("", "_"), ("\u{e4}{\"", "____")]
        {
            assert_eq!(metric_word(text), expected);
        }
    }
}
