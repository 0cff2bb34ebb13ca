//! Which filter matches which topic name. Two implementations must agree.

use super::packet::Qos;
use super::reader::Malformed;
use super::session::SessionId;
use super::topic::{check_filter, check_name, literal_prefix, matches};
use super::tree::Tree;

/// A filter, names that it matches, and names that it does not match.
const CASES: &[(&str, &[&str], &[&str])] = &[
    ("a", &["a"], &["b", "a/", "/a", "a/b", "A", "aa"]),
    ("a/b", &["a/b"], &["a", "a/b/", "a/b/c", "a/c"]),
    ("+", &["a", "bc"], &["/a", "a/", "a/b", "$SYS", "/"]),
    ("a/+", &["a/b", "a/"], &["a", "a/b/c", "ab/c"]),
    ("+/+", &["a/b", "/a", "a/", "/"], &["a", "a/b/c", "$SYS/x"]),
    ("/+", &["/a", "/"], &["a", "/a/b", "a/"]),
    ("a/+/c", &["a/b/c", "a//c"], &["a/c", "a/b/d", "a/b/c/d"]),
    ("#", &["a", "a/b", "/", "/a", "a//b"], &["$SYS", "$SYS/x"]),
    ("a/#", &["a", "a/", "a/b", "a/b/c"], &["ab", "b/a", "/a"]),
    ("+/#", &["a", "a/b", "/"], &["$SYS", "$SYS/x"]),
    ("/#", &["/", "/a", "/a/b"], &["a", "a/"]),
    ("$SYS/#", &["$SYS", "$SYS/x", "$SYS/x/y"], &["SYS/x", "$SYSx"]),
    ("$SYS/+", &["$SYS/x"], &["$SYS", "$SYS/x/y"]),
    ("a/+/#", &["a/b", "a/b/c", "a/"], &["a", "b/a"]),
    ("a/$x/+", &["a/$x/b"], &["a/x/b"]),
];

#[test]
fn a_filter_matches_exactly_its_topic_names() {
    for (filter, names, others) in CASES {
        let mut tree = Tree::default();
        tree.insert(filter, SessionId(1), Qos::One);
        for (name, is_for) in
            names.iter().map(|name| (*name, true)).chain(others.iter().map(|name| (*name, false)))
        {
            assert_eq!(matches(filter, name), is_for, "{filter} {name}");
            let mut found = Vec::new();
            tree.find(name, &mut found);
            assert_eq!(found.len(), usize::from(is_for), "{filter} {name} in the tree");
            assert!(!is_for || name.starts_with(literal_prefix(filter)), "{filter} {name}");
        }
    }
}

#[test]
fn overlapping_filters_of_a_client_count_once_at_the_highest_qos() {
    let mut tree = Tree::default();
    let empty = format!("{tree:?}");
    for (filter, session, qos) in [
        ("a/b", 1, Qos::Zero),
        ("a/+", 1, Qos::Two),
        ("#", 1, Qos::One),
        ("a/#", 2, Qos::Zero),
        ("c", 2, Qos::Two),
    ] {
        tree.insert(filter, SessionId(session), qos);
    }
    let find = |tree: &Tree, name| {
        let mut found = Vec::new();
        tree.find(name, &mut found);
        found.iter().map(|(session, qos)| (session.0, *qos as u8)).collect::<Vec<_>>()
    };
    assert_eq!(find(&tree, "a/b"), [(1, 2), (2, 0)]);
    assert_eq!(find(&tree, "a"), [(1, 1), (2, 0)]);
    assert_eq!(find(&tree, "c"), [(1, 1), (2, 2)]);
    // Removing an unknown filter, or one of another session, changes nothing.
    tree.remove("a/b/c", SessionId(1));
    tree.remove("a/b", SessionId(2));
    tree.remove("a/+", SessionId(1));
    assert_eq!(find(&tree, "a/b"), [(1, 1), (2, 0)]);
    // Subscribing again to the same filter replaces its QoS.
    tree.insert("a/#", SessionId(2), Qos::One);
    assert_eq!(find(&tree, "a/b"), [(1, 1), (2, 1)]);
    for (filter, session) in [("a/b", 1), ("#", 1), ("a/#", 2), ("c", 2)] {
        tree.remove(filter, SessionId(session));
    }
    assert_eq!(format!("{tree:?}"), empty, "nothing is left of filters that are gone");
}

#[test]
fn topic_names_and_filters_are_validated() {
    let within = Err(Malformed("a wildcard within a level, or not at the end"));
    for filter in ["#/a", "a#", "a/#/b", "+a", "a+", "a/b+/c", "##", "++", "a/##"] {
        assert_eq!(check_filter(filter), within, "{filter}");
    }
    for filter in ["a", "/", "//", "+", "#", "a/+/b/#", "+/+", "$SYS/#", " ", "a b"] {
        assert_eq!(check_filter(filter), Ok(filter));
    }
    for name in ["a", "/", "//", "$SYS/x", " ", "a b", "\u{1f980}"] {
        assert_eq!(check_name(name), Ok(name));
    }
    assert!(check_name("a/+").is_err() && check_name("a#").is_err() && check_name("").is_err());
}
