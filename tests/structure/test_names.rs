//! Names of tests: a sentence about behaviour whose subject is a noun.

use super::tokens::{Token, tokens};

/// Words that begin a clause without a noun ("what was lent comes back"). The name of a test must
/// be clear without reading its body.
const HEADLESS: [&str; 6] = ["what", "whatever", "who", "whoever", "those", "whichever"];
/// The maximum length of a name, in bytes: rustfmt keeps its line within 100 columns.
const NAME_BYTES_MAX: usize = 80;

/// Returns the names of the tests in a source, in order.
pub(crate) fn test_names(source: &str) -> Vec<String> {
    let all = tokens(source);
    let mut found = Vec::new();
    let is_attribute = [Token::Mark('#'), Token::Mark('['), Token::Name("test"), Token::Mark(']')];
    for at in 0..all.len() {
        if !all[at..].starts_with(&is_attribute) {
            continue;
        }
        let mut rest = all[at..].windows(2);
        let name = rest.find_map(|two| match two {
            [Token::Name("fn"), Token::Name(name)] => Some(name.to_string()),
            _ => None,
        });
        found.extend(name);
    }
    found
}

/// Returns the objection to a test's name, if there is one.
pub(crate) fn objection(name: &str) -> Option<&'static str> {
    let first = name.split('_').next().unwrap_or_default();
    if HEADLESS.contains(&first) {
        Some("begins without a noun: say which thing behaves so")
    } else if name.len() > NAME_BYTES_MAX {
        Some("is too long")
    } else {
        None
    }
}

#[test]
fn a_test_name_without_a_noun_or_of_great_length_is_rejected() {
    for (name, is_good) in [
        ("a_block_is_returned_to_the_pool", true),
        ("whole_blocks_are_returned", true),
        ("what_was_lent_comes_back", false),
        ("who_waits_is_notified", false),
        ("those_that_wait_are_notified", false),
        (&"a".repeat(NAME_BYTES_MAX), true),
        (&"a".repeat(NAME_BYTES_MAX + 1), false),
    ] {
        assert_eq!(objection(name).is_none(), is_good, "{name}");
    }
}

#[test]
fn only_functions_with_the_attribute_are_tests() {
    let source = "#[test]\n#[ignore]\nfn one() {}\nfn two() {}\n// #[test]\nfn three() {}\n#[test] fn four() {}";
    assert_eq!(test_names(source), ["one", "four"]);
}
