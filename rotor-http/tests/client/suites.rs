//! Server input from the test suite of another project: each whole, byte by byte and cut at every
//! place.

use rotor_http::client::RecvMode;

use crate::corpora::{Case, escape, read};
use crate::hostile::run;
use crate::transcripts::{ConnectionAfter, NextAction, Row};

const LLHTTP: &str = include_str!("../corpora/llhttp.responses");

/// The outcome of a GET that is answered in these pieces, followed by EOF.
fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let row = Row {
        name: "",
        method: "GET",
        sends: Vec::new(),
        then: NextAction::Ends,
        expected: "",
        left: ConnectionAfter::Closed,
    };
    let (outcome, left) = run(&row, pieces, RecvMode::Buffered(10_000));
    assert_eq!(left, ConnectionAfter::Closed, "its stream has ended");
    escape(outcome.expect("an outcome").trim_end())
}

#[test]
fn every_suite_case_has_the_same_outcome_however_it_is_split() {
    let cases = read(LLHTTP);
    assert!(cases.len() > 50, "{}", cases.len());
    let mut wrong = Vec::new();
    for Case { name, ours, bytes, .. } in &cases {
        let whole = outcome([&bytes[..]]);
        assert_eq!(outcome(bytes.chunks(1)), whole, "{name}, byte by byte");
        for cut in 1..bytes.len() {
            assert_eq!(outcome([&bytes[..cut], &bytes[cut..]]), whole, "{name}, cut at {cut}");
        }
        if &whole != ours {
            wrong.push(format!("name: {name}\nours: {whole}\n"));
        }
    }
    assert!(wrong.is_empty(), "{} came out otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_case_that_differs_from_its_suite_gives_a_reason() {
    for case in read(LLHTTP) {
        assert_eq!(case.agrees(), case.why.is_empty(), "{case:?}");
    }
}
