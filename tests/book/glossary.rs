//! The glossary: that it is in order, says where each word lives, and that the names in it are
//! those of the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::{files, read, root};

/// A word, what it means, and where it lives: a crate, and perhaps a module of it.
struct Entry {
    words: String,
    meaning: String,
    place: (String, Option<String>),
}

fn entries() -> Vec<Entry> {
    let text = read("doc/glossary.md");
    let paragraphs = text.split("\n\n").filter(|paragraph| paragraph.starts_with("**"));
    paragraphs.map(entry).collect()
}

fn entry(paragraph: &str) -> Entry {
    let paragraph = paragraph.trim_end();
    let (words, rest) =
        paragraph[2..].split_once(".** ").unwrap_or_else(|| panic!("no word: {paragraph}"));
    let (meaning, place) =
        rest.rsplit_once("\n*").unwrap_or_else(|| panic!("{words}: where does it live?"));
    let place = place.strip_suffix('*').unwrap_or_else(|| panic!("{words}: {place}"));
    let place = match place.split_once(", ") {
        None => (place.to_string(), None),
        Some((name, module)) => (name.to_string(), Some(module.trim_matches('`').to_string())),
    };
    Entry { words: words.to_string(), meaning: meaning.to_string(), place }
}

/// All names in a text, but for those in comments.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|sign: char| !sign.is_alphanumeric() && sign != '_'))
}

fn names_of(crates: &[&str]) -> BTreeSet<String> {
    let sources = crates.iter().flat_map(|name| files(&format!("{name}/src"), ".rs"));
    let mut all = BTreeSet::new();
    for path in sources {
        all.extend(names(&read(path)).map(str::to_string));
    }
    all
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A word as names are made of it: `event_set`, `EventSet` and `EVENT_SET`.
fn forms(word: &str) -> [String; 3] {
    let parts: Vec<String> = word.split([' ', '-']).map(str::to_lowercase).collect();
    let capital = |part: &String| part[..1].to_uppercase() + &part[1..];
    let snake = parts.join("_");
    [snake.clone(), parts.iter().map(capital).collect(), snake.to_uppercase()]
}

#[test]
fn the_words_are_in_alphabetical_order() {
    let sorted_by = |words: &str| {
        words.to_lowercase().chars().filter(|sign| sign.is_alphabetic() || *sign == ' ').collect()
    };
    let order: Vec<String> = entries().iter().map(|entry| sorted_by(&entry.words)).collect();
    assert!(order.len() > 50, "{}", order.len());
    assert!(order.is_sorted(), "{order:#?}");
}

#[test]
fn each_word_lives_where_its_entry_says() {
    let mut known_of = BTreeMap::new();
    for Entry { words, meaning, place: (name, module) } in entries() {
        let source = root().join(&name).join("src");
        assert!(source.is_dir(), "{words}: there is no crate {name}");
        if let Some(module) = module {
            let is_there = source.join(format!("{module}.rs")).exists()
                || source.join(&module).join("mod.rs").exists();
            assert!(is_there, "{words}: there is no module {module} in {name}");
        }
        // By its own name, or by one that stands behind it.
        let known = known_of.entry(name.clone()).or_insert_with(|| names_of(&[&name]));
        let own = words.split(", ").flat_map(forms);
        let behind = quoted(&meaning).flat_map(names).map(str::to_string);
        let is_used = own.chain(behind).any(|form| !form.is_empty() && known.contains(&form));
        assert!(is_used, "{words}: nothing in {name} is called so");
    }
}

#[test]
fn each_name_in_the_glossary_is_in_the_sources() {
    let known = names_of(&["rotor-core", "rotor-stream", "rotor-http", "rotor-dns", "rotor-sim"]);
    for Entry { words, meaning, .. } in entries() {
        for name in quoted(&meaning).flat_map(names).filter(|name| !name.is_empty()) {
            assert!(known.contains(name), "{words}: nothing is called `{name}`");
        }
    }
}
