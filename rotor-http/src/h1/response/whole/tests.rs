//! A whole response has exactly the bytes that the single steps write.

use super::*;
use crate::h1::response::{Ending, ReplyTo};

fn written_in_steps(
    mut state: ResponseState,
    status: Status,
    content_type: &str,
    body: &[u8],
) -> Option<Vec<u8>> {
    let (mut out, date) = (Vec::new(), DateCache::new(784_111_777));
    let steps = |state: &mut ResponseState, out: &mut Vec<u8>| {
        state.status(out, status)?;
        state.add_header(out, "Content-Type", content_type.as_bytes())?;
        state.add_length(out, body.len() as u64)?;
        state.done_headers(out, Some(&date), None)?;
        state.write_body(out, body)?;
        state.done(out)
    };
    steps(&mut state, &mut out).ok()?;
    (state.ending() == Ending::KeepAlive).then_some(out)
}

#[test]
fn a_response_written_at_once_equals_that_of_separate_calls() {
    let usual = ReplyTo { keep_alive: true, ..ReplyTo::unreadable() };
    let replies = [
        usual,
        ReplyTo { wants_upgrade: true, ..usual },
        ReplyTo { is_head: true, ..usual },
        ReplyTo { is_connect: true, ..usual },
        ReplyTo { keep_alive: false, ..usual },
        ReplyTo { version: Version::Http10, ..usual },
    ];
    let mut whole = 0;
    for reply in replies {
        for status in (100..=999).filter_map(Status::new) {
            for content_type in ["text/plain", "", "a\tb", "a\r\nb: c", "text/html; charset=utf-8"]
            {
                for body in [&b""[..], b"Hello, World!"] {
                    let (mut state, mut out) = (ResponseState::new(reply), Vec::new());
                    let date = DateCache::new(784_111_777);
                    if state.try_put_whole(&mut out, status, content_type, body, &date) {
                        assert_eq!(
                            Some(out),
                            written_in_steps(ResponseState::new(reply), status, content_type, body)
                        );
                        assert_eq!(
                            (state.ending(), state.final_status()),
                            (Ending::KeepAlive, Some(status))
                        );
                        assert!(state.done(&mut Vec::new()).is_err() && state.is_head_done());
                        whole += 1;
                    } else {
                        assert!(out.is_empty() && state.ending() == Ending::Unstarted);
                    }
                }
            }
        }
    }
    // Two replies, four content types, two bodies.
    assert!(whole >= 30 * 16, "{whole}");
    let mut started = ResponseState::new(usual);
    started.status(&mut Vec::new(), Status::OK).expect("the first status");
    assert!(!started.try_put_whole(&mut Vec::new(), Status::OK, "a/b", b"", &DateCache::new(0)));
}
