use std::num::NonZero;

use super::{MEMBERS_MAX, STATE_BYTES_MAX, TraceContext, join_members};
use crate::semantics::fields::{Fields, Span};

const TRACE: &str = "12345678901234567890123456789012";
const PARENT: &str = "1234567890123456";

fn parse(text: &str) -> Option<String> {
    TraceContext::parse(text.as_bytes()).map(|context| context.traceparent())
}

/// Valid values of the specification, with the flags that are passed on.
#[test]
fn a_valid_parent_is_accepted() {
    let good = [
        (format!("00-{TRACE}-{PARENT}-01"), "01"),
        (format!("00-{TRACE}-{PARENT}-00"), "00"),
        // The flag of level 2 is passed on; other bits have no known meaning.
        (format!("00-{TRACE}-{PARENT}-03"), "03"),
        (format!("00-{TRACE}-{PARENT}-ff"), "03"),
        // A future version is read like this one, as far as it is the same.
        (format!("cc-{TRACE}-{PARENT}-01"), "01"),
        (format!("cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like"), "01"),
        (format!("fe-{TRACE}-{PARENT}-05-"), "01"),
    ];
    for (text, flags) in good {
        assert_eq!(parse(&text), Some(format!("00-{TRACE}-{PARENT}-{flags}")), "{text}");
    }
}

/// The invalid values of the specification and of its test suite.
#[test]
fn an_invalid_parent_is_none() {
    let zeros = |len| "0".repeat(len);
    let bad = [
        String::new(),
        // Versions.
        format!("ff-{TRACE}-{PARENT}-01"),
        format!(".0-{TRACE}-{PARENT}-01"),
        format!("0.-{TRACE}-{PARENT}-01"),
        format!("0-{TRACE}-{PARENT}-01"),
        format!("000-{TRACE}-{PARENT}-01"),
        format!("0000-{TRACE}-{PARENT}-01"),
        format!("CC-{TRACE}-{PARENT}-01"),
        // Version 00 has no further parts.
        format!("00-{TRACE}-{PARENT}-01."),
        format!("00-{TRACE}-{PARENT}-01-"),
        format!("00-{TRACE}-{PARENT}-01-what-the-future-will-be-like"),
        format!("cc-{TRACE}-{PARENT}-01.what-the-future-will-not-be-like"),
        // Trace ids.
        format!("00-{}-{PARENT}-01", zeros(32)),
        format!("00-.{}-{PARENT}-01", &TRACE[1..]),
        format!("00-{}.-{PARENT}-01", &TRACE[1..]),
        format!("00-{}A-{PARENT}-01", &TRACE[1..]),
        format!("00-{}-{PARENT}-01", &TRACE[1..]),
        format!("00-{TRACE}0-{PARENT}-01"),
        // Parent ids.
        format!("00-{TRACE}-{}-01", zeros(16)),
        format!("00-{TRACE}-.{}-01", &PARENT[1..]),
        format!("00-{TRACE}-{}F-01", &PARENT[1..]),
        format!("00-{TRACE}-{}-01", &PARENT[1..]),
        format!("00-{TRACE}-{PARENT}0-01"),
        // Flags.
        format!("00-{TRACE}-{PARENT}-.0"),
        format!("00-{TRACE}-{PARENT}-0."),
        format!("00-{TRACE}-{PARENT}-0A"),
        format!("00-{TRACE}-{PARENT}-1"),
        format!("00-{TRACE}-{PARENT}-001"),
        format!("00-{TRACE}-{PARENT}-"),
        format!("00-{TRACE}-{PARENT}"),
        // Other characters in place of the dashes.
        format!("00_{TRACE}-{PARENT}-01"),
        format!("00-{TRACE}_{PARENT}-01"),
        format!("00-{TRACE}-{PARENT}_01"),
        format!("+0-{TRACE}-{PARENT}-01"),
    ];
    for text in bad {
        assert_eq!(parse(&text), None, "{text:?}");
    }
    assert_eq!(TraceContext::parse(&[0xff; 55]), None);
}

#[test]
fn a_truncated_parent_is_none() {
    let whole = format!("00-{TRACE}-{PARENT}-01");
    for cut in 0..whole.len() {
        assert_eq!(parse(&whole[..cut]), None, "{cut}");
    }
}

fn state(lines: &[&str]) -> Option<String> {
    join_members(lines.iter().map(|line| line.as_bytes())).map(String::from)
}

#[test]
fn a_valid_state_is_joined_into_one_list_in_order() {
    let key = "z".repeat(256);
    let tenant = format!("{}@{}", "t".repeat(241), "v".repeat(14));
    let good = [
        (vec!["foo=1"], "foo=1".to_owned()),
        (vec!["foo=1,bar=2", "rojo=1,congo=2", "baz=3"], "foo=1,bar=2,rojo=1,congo=2,baz=3".into()),
        (vec!["foo=1 \t , \t bar=2, \t baz=3"], "foo=1,bar=2,baz=3".into()),
        (vec!["", "foo=1", "", " ,, ,bar=2"], "foo=1,bar=2".into()),
        (vec![""], String::new()),
        // A duplicate key is kept, since only its writers know which member is meant.
        (vec!["foo=1,foo=1"], "foo=1,foo=1".into()),
        (vec!["a_-*/0=a b!\"~"], "a_-*/0=a b!\"~".into()),
        (vec!["0t@v=1"], "0t@v=1".into()),
        (vec!["foo= 1"], "foo= 1".into()),
    ];
    for (lines, expected) in good {
        assert_eq!(state(&lines), Some(expected), "{lines:?}");
    }
    assert_eq!(state(&[&format!("{key}=1")]), Some(format!("{key}=1")));
    assert_eq!(state(&[&format!("{tenant}=1")]), Some(format!("{tenant}=1")));
    let value = "v".repeat(256);
    assert_eq!(state(&[&format!("a={value}")]), Some(format!("a={value}")));
}

#[test]
fn one_invalid_member_invalidates_the_whole_state() {
    let long_key = format!("{}=1", "z".repeat(257));
    let long_tenant = format!("{}@v=1", "t".repeat(242));
    let long_system = format!("t@{}=1", "v".repeat(15));
    let long_value = format!("a={}", "v".repeat(257));
    let bad = [
        "foo",
        "foo=",
        "foo= ",
        "=1",
        "foo =1",
        "FOO=1",
        "foo.bar=1",
        "foo@=1,bar=2",
        "@foo=1,bar=2",
        "foo@@bar=1,bar=2",
        "foo@bar@baz=1,bar=2",
        "foo@0=1",
        "0foo=1",
        "foo=bar=baz",
        "foo=,bar=3",
        "foo=\u{7f}",
        "foo=a\tb",
        "foo=ä",
        &long_key,
        &long_tenant,
        &long_system,
        &long_value,
    ];
    for line in bad {
        assert_eq!(state(&[line]), None, "{line:?}");
        assert_eq!(state(&["good=1", line]), None, "{line:?}");
    }
}

#[test]
fn the_number_of_members_is_limited() {
    let members = |count: usize| {
        let members: Vec<_> =
            (0..count).map(|number| format!("bar{number:02}={number:02}")).collect();
        members.join(",")
    };
    for count in [MEMBERS_MAX - 1, MEMBERS_MAX] {
        assert_eq!(state(&[&members(count)]), Some(members(count)));
    }
    assert_eq!(state(&[&members(MEMBERS_MAX + 1)]), None);
    // Empty members do not count.
    assert!(state(&[&",".repeat(100), &members(MEMBERS_MAX)]).is_some());
}

#[test]
fn a_long_state_drops_large_members_first_and_then_the_last() {
    let large = format!("large={}", "v".repeat(123));
    let at_the_mark = format!("mark={}", "v".repeat(123));
    assert_eq!((large.len(), at_the_mark.len()), (129, 128));
    // All members are kept if they fit: 129 + 3 * 128 is too much.
    let lines = [&large[..], &at_the_mark, &at_the_mark];
    assert_eq!(state(&lines), Some(lines.join(",")));
    let lines = [&large[..], &at_the_mark, &at_the_mark, &at_the_mark];
    assert_eq!(state(&lines), Some(lines[1..].join(",")));
    // n − 1, n and n + 1 bytes, with members none of which is large.
    for (last, is_retained) in
        [("a=23456789", true), ("a=234567890", true), ("a=2345678901", false)]
    {
        let hundred = format!("b={}", "v".repeat(98));
        let mut members = vec![&hundred[..]; 4];
        let padding = format!("c={}", "v".repeat(STATE_BYTES_MAX - 4 * 101 - 12 - 2));
        members.push(&padding);
        let before = members.join(",");
        members.push(last);
        let whole = members.join(",");
        assert_eq!(whole.len() <= STATE_BYTES_MAX, is_retained, "{}", whole.len());
        assert_eq!(state(&members), Some(if is_retained { whole } else { before }));
    }
}

/// The trace context of a head with these fields.
fn read_context(fields: &[(&str, &str)]) -> Option<TraceContext> {
    let (mut head, mut spans) = (Vec::new(), Vec::new());
    for (name, value) in fields {
        let at = head.len();
        head.extend(format!("{name}: {value}\r\n").bytes());
        let value_at = at + name.len() + 2;
        spans.push(Span::new(at..at + name.len(), value_at..value_at + value.len()));
    }
    TraceContext::of(Fields::new(&head, &spans))
}

#[test]
fn a_state_needs_exactly_one_valid_parent() {
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let context =
        read_context(&[("tracestate", "a=1"), ("TraceParent", &parent), ("TRACESTATE", "b=2")]);
    assert_eq!(context.expect("a good one").tracestate(), "a=1,b=2");
    let context =
        read_context(&[("traceparent", &parent), ("tracestate", "a=1"), ("tracestate", "B=2")]);
    assert_eq!(context.expect("a good parent").tracestate(), "");
    assert_eq!(read_context(&[("tracestate", "a=1")]), None);
    assert_eq!(read_context(&[("traceparent", &parent), ("traceparent", &parent)]), None);
    assert_eq!(read_context(&[("traceparent", "00"), ("traceparent", &parent)]), None);
    assert_eq!(read_context(&[("trace-parent", &parent)]), None);
    assert_eq!(read_context(&[]), None);
}

#[test]
fn a_child_shares_its_trace_and_a_new_trace_is_marked_random() {
    let (trace, here) =
        (NonZero::new(0xa).expect("not zero"), NonZero::new(0xb).expect("not zero"));
    let started = TraceContext::begin(trace, here, true);
    let expected = "00-0000000000000000000000000000000a-000000000000000b-03";
    assert_eq!(started.traceparent(), expected);
    assert_eq!(TraceContext::parse(expected.as_bytes()), Some(started.clone()));
    let unsampled = started.sampled(false);
    assert!(!unsampled.is_sampled() && unsampled.clone().sampled(true).is_sampled());
    assert!(unsampled.traceparent().ends_with("-02"));
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let received =
        read_context(&[("traceparent", &parent), ("tracestate", "a=1")]).expect("a good one");
    let child = received.child(here);
    assert_eq!(child.traceparent(), format!("00-{TRACE}-000000000000000b-01"));
    assert_eq!((child.tracestate(), child.trace_id()), ("a=1", received.trace_id()));
    assert_eq!(format!("{:016x}", received.parent_id()), PARENT);
}
