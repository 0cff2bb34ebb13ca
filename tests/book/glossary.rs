//! Checks the glossary: it is sorted, says where each term is defined, and uses names that exist in
//! the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::{files, read, root};
use crate::tokens::{Token, tokens};

/// Terms that newcomers look up, common ones and our own. Each must have an entry.
const WORDS: [&str; 32] = [
    "abort",
    "backpressure",
    "buffer pool",
    "close code",
    "core",
    "deferred spawn",
    "dispatch",
    "due work",
    "edge",
    "exchange",
    "flow",
    "foreign source",
    "future, port",
    "generation",
    "happy eyeballs",
    "high-water mark",
    "inherited listener",
    "least rate",
    "linger",
    "mailbox, sender",
    "masking",
    "notifier",
    "pending",
    "permessage-deflate",
    "poll",
    "run queue",
    "scheduler",
    "semantics",
    "stub resolver",
    "swar",
    "token",
    "wake queue",
];

/// Common terms that are explained in an entry of another name.
const EXPLAINED: [(&str, &str); 8] = [
    ("aba problem", "generation"),
    ("graceful shutdown", "drain"),
    ("handshake", "wrapping socket"),
    ("lock-free", "wake queue"),
    ("middleware", "event"),
    ("one-shot", "future, port"),
    ("reactor", "backend"),
    ("waker", "notifier"),
];

/// Names in the glossary that no source defines: those of the standard library, and of a package.
const OTHERS: [&str; 4] = ["std", "mut", "WouldBlock", "rotor"];

/// A term, its meaning, and the crate that defines it, perhaps with a module.
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

/// All names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_alphanumeric() && sign != '_')
}

/// The names that a source defines: its items, methods, fields and variants. Names that it only
/// uses, local variables, parameters and strings do not count.
fn defined(source: &str) -> BTreeSet<String> {
    const DEFINING: [&str; 9] =
        ["struct", "enum", "trait", "union", "fn", "mod", "type", "const", "static"];
    let tokens = tokens(source);
    let mut found = BTreeSet::new();
    // The open brackets, and how many were open where the current type began.
    let (mut open, mut outside) = (Vec::new(), None);
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        match *token {
            Token::Mark(mark @ ('{' | '(' | '[')) => open.push(mark),
            Token::Mark('<') if outside.is_some() => open.push('<'),
            // Not the `>` of an arrow.
            Token::Mark('>') if open.last() == Some(&'<') && before != Some(Token::Mark('-')) => {
                open.pop();
            }
            Token::Mark('}' | ')' | ']') => {
                open.pop();
                outside = outside.filter(|len| *len < open.len());
            }
            Token::Name(name) => {
                if matches!(before, Some(Token::Name("struct" | "enum"))) {
                    outside = Some(open.len());
                }
                let is_item = matches!(before, Some(Token::Name(word)) if DEFINING.contains(&word))
                    || tokens[..at].ends_with(&[Token::Name("macro_rules"), Token::Mark('!')]);
                let is_in_type =
                    open.last() == Some(&'{') && outside.is_some_and(|len| len < open.len());
                if is_item || is_in_type && is_member(before, name, tokens.get(at + 1)) {
                    found.insert(name.to_string());
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether a name inside the braces of a type is a field or a variant.
fn is_member(before: Option<Token<'_>>, name: &str, behind: Option<&Token<'_>>) -> bool {
    let begins =
        matches!(before, Some(Token::Mark('{' | ',' | '}' | ']' | ')') | Token::Name("pub")));
    let is_variant = name.starts_with(char::is_uppercase);
    begins && (is_variant || matches!(behind, Some(Token::Mark(':' | ',' | '}'))))
}

fn names_of(crates: &[&str]) -> BTreeSet<String> {
    let sources = crates.iter().flat_map(|name| files(&format!("{name}/src"), ".rs"));
    sources.flat_map(|path| defined(&read(path))).collect()
}

/// The code spans of a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The forms of a term in code: `event_set`, `EventSet` and `EVENT_SET`.
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
fn each_word_is_defined_where_its_entry_says() {
    let mut known_of = BTreeMap::new();
    for Entry { words, meaning, place: (name, module) } in entries() {
        let source = root().join(&name).join("src");
        assert!(source.is_dir(), "{words}: there is no crate {name}");
        if let Some(module) = module {
            let is_there = source.join(format!("{module}.rs")).exists()
                || source.join(&module).join("mod.rs").exists();
            assert!(is_there, "{words}: there is no module {module} in {name}");
        }
        // Either by its own name, or by a name in its meaning.
        let known = known_of.entry(name.clone()).or_insert_with(|| names_of(&[&name]));
        let own = words.split(", ").flat_map(forms);
        let behind = quoted(&meaning).flat_map(names).map(str::to_string);
        let is_used = own.chain(behind).any(|form| !form.is_empty() && known.contains(&form));
        assert!(is_used, "{words}: nothing in {name} is called so");
    }
}

#[test]
fn each_name_in_the_glossary_exists_in_the_sources() {
    let known = names_of(&[
        "rotor-core",
        "rotor-stream",
        "rotor-body",
        "rotor-http",
        "rotor-websocket",
        "rotor-dns",
        "rotor-tls",
        "rotor-proxy-protocol",
        "rotor-async",
        "rotor-tower",
        "rotor-sim",
    ]);
    for Entry { words, meaning, .. } in entries() {
        for name in quoted(&meaning).flat_map(names).filter(|name| !name.is_empty()) {
            let is_known = known.contains(name) || OTHERS.contains(&name);
            assert!(is_known, "{words}: nothing is called `{name}`");
        }
    }
}

#[test]
fn common_technical_words_have_entries() {
    let entries = entries();
    for word in WORDS {
        let is_there = entries.iter().any(|entry| entry.words.to_lowercase() == word);
        assert!(is_there, "no entry for {word:?}");
    }
    for (word, at) in EXPLAINED {
        let entry = entries.iter().find(|entry| entry.words.to_lowercase() == at);
        let explains = entry.is_some_and(|entry| entry.meaning.to_lowercase().contains(word));
        assert!(explains, "the entry {at:?} does not say {word:?}");
    }
}

#[test]
fn defined_names_are_those_of_items_fields_and_variants() {
    for (source, expected) in [
        ("struct A { b: C, #[x] pub d: E }", "A b d"),
        ("pub enum A { B, C(D), E { f: G } }", "A B C E f"),
        (
            "struct A(B, pub(crate) C); impl A { fn f<T>(x: U) { let y = 1; Z { w, v: y }; } }",
            "A f",
        ),
        ("macro_rules! m { () => {} } mod n { type T = U; const C: D = e(); }", "C T m n"),
        ("// struct A\nconst B: &str = \"fn c\";", "B"),
    ] {
        let found: Vec<String> = defined(source).into_iter().collect();
        assert_eq!(found.join(" "), expected, "{source}");
    }
}
