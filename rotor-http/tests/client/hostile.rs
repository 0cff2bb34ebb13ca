//! A server that misbehaves, one transcript at a time. Each transcript ends its own exchange with
//! an error that names the side at fault, or is harmless; such a connection is never used again.

use rotor_http::client::RecvMode;

use crate::probe::Probe;
use crate::script::{connection, is_reusable, outcome};
use crate::transcripts::{ConnectionAfter, NextAction, Row, limits, rows};
use ConnectionAfter::*;
use NextAction::*;

/// Sends the transcript in pieces of this size. Returns the outcome of the request and the state of
/// the connection.
fn run_split(row: &Row, piece: usize, mode: RecvMode) -> (Option<String>, ConnectionAfter) {
    run(row, row.sends.chunks(piece.max(1)), mode)
}

/// The same with these pieces.
pub(crate) fn run<'a>(
    row: &Row,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    mode: RecvMode,
) -> (Option<String>, ConnectionAfter) {
    let probe = Probe { method: row.method, mode, ..Probe::get("/") };
    let mut driver = connection(limits(), [probe]);
    assert!(!driver.take_received().is_empty(), "the request goes first");
    for piece in pieces {
        driver.send(piece);
    }
    match row.then {
        Nothing => {}
        Ends => driver.end(),
        Resets => driver.reset(),
        WaitsForEver => {
            while driver.context().futures.front().is_some_and(|future| !future.is_ready()) {
                driver.advance_to_deadline().expect("a request is never left without a deadline");
            }
        }
    }
    let left = if is_reusable(&mut driver) { Reusable } else { Closed };
    let outcome = outcome(&mut driver);
    assert!(outcome.is_some() || left == Reusable, "{}: an outcome, whatever happens", row.name);
    (outcome, left)
}

#[test]
fn each_misbehaviour_fails_its_own_exchange_and_names_the_fault() {
    let rows = rows();
    assert!(rows.len() >= 40, "{}", rows.len());
    for row in &rows {
        let (outcome, left) = run_split(row, usize::MAX, RecvMode::Buffered(10_000));
        assert_eq!(outcome.as_deref(), Some(row.expected), "{}", row.name);
        assert_eq!(left, row.left, "{}", row.name);
    }
}

#[test]
fn a_transcript_has_the_same_outcome_however_it_is_split() {
    for row in rows() {
        let whole = run_split(&row, usize::MAX, RecvMode::Buffered(10_000));
        for piece in [1, 2, 3, 7] {
            let cut = run_split(&row, piece, RecvMode::Buffered(10_000));
            assert_eq!(cut.0, whole.0, "{} in pieces of {piece}", row.name);
            // Bytes after the answer may arrive when the connection is already idle; then they end
            // it.
            assert_eq!(cut.1, whole.1, "{} in pieces of {piece}", row.name);
        }
    }
}

#[test]
fn a_streaming_handler_sees_the_same_and_no_end_of_a_truncated_body() {
    for row in rows() {
        for (piece, mode) in [1, 5, usize::MAX]
            .into_iter()
            .flat_map(|piece| [(piece, RecvMode::Progressive(2)), (piece, RecvMode::Blocks)])
        {
            let (outcome, left) = run_split(&row, piece, mode);
            let has_no_limit = row.expected == "Peer: Body(TooLarge)";
            if has_no_limit {
                continue;
            }
            let outcome = outcome.expect("every row ends");
            assert!(
                outcome.starts_with(row.expected),
                "{} in pieces of {piece}: {outcome}",
                row.name
            );
            assert_eq!(left, row.left, "{} {mode:?}", row.name);
        }
    }
}
