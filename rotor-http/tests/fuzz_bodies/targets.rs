//! Targets, authorities, methods and comma lists, each tested alone.

use rotor_http::h1::{
    Authority, FieldStorage, HeadReader, Limits, MessageError, Method, RequestError, RequestHead,
    RequestState, elements, has_token,
};

use super::input::{Input, METHODS};
use super::naive;

/// A method, then a text that is parsed as each of these in turn.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let method = choices.pick(&METHODS);
    let text = choices.rest();
    check_authority(text);
    check_target(method, text);
    check_list(text);
    if let Ok(text) = std::str::from_utf8(text) {
        let named = Method::new(text);
        assert_eq!(
            named.map(|method| method.as_str()),
            naive::is_token(text.as_bytes()).then_some(text)
        );
        assert_eq!(Method::new(text), named);
    }
}

fn check_authority(text: &[u8]) {
    let parsed = Authority::parse(text);
    assert_eq!(parsed.map(|one| (one.host().to_owned(), one.port())), naive::authority(text));
    if let Some(authority) = parsed {
        assert_eq!(authority.as_str().as_bytes(), text);
        assert!(authority.as_str().starts_with(authority.host()));
    }
}

/// The reader reads back what the writer of requests writes, and refuses what the writer refuses.
fn check_target(method: Method<'_>, text: &[u8]) {
    let expected = naive::target(method.as_str().as_bytes(), text);
    let input = [method.as_str().as_bytes(), b" ", text, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    let limits = Limits::new().target_bytes_max(1 << 20).head_bytes_max(16 << 20);
    let mut storage = FieldStorage::new();
    let read = HeadReader::new().read_request(&input, &mut storage, &limits);
    match (&read, &expected) {
        (Ok(Some(head)), Some(expected)) => assert_eq!(parts(head), *expected),
        (Err(RequestError::Head(_) | RequestError::TargetForm), None) => {}
        // A space ends the target; the text after it may happen to be the rest of a valid head.
        (Ok(_), None) if text.contains(&b' ') => {}
        _ => panic!("{read:?}, not {expected:?}"),
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut out = Vec::new();
    let written = RequestState::new().request_line(&mut out, method, text);
    assert_eq!(written, if expected.is_some() { Ok(()) } else { Err(MessageError::StartLine) });
    assert_eq!(out.is_empty(), expected.is_none());
    assert!(input.starts_with(&out), "the line as it was read");
}

/// The parts of a target that was read.
pub(super) fn parts(head: &RequestHead<'_>) -> naive::Target {
    let target = head.target();
    assert_eq!(head.path(), target.path());
    naive::Target {
        form: target.form(),
        authority: target.authority().map(|one| (one.host().to_owned(), one.port())),
        path: target.path().to_owned(),
        query: target.query().map(str::to_owned),
    }
}

fn check_list(text: &[u8]) {
    let found: Vec<&[u8]> = elements(text).collect();
    assert_eq!(found.len(), text.iter().filter(|byte| **byte == b',').count() + 1);
    for element in found {
        let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        assert!(
            !is_space(element.first()) && !is_space(element.last()) && !element.contains(&b',')
        );
        if let Ok(token) = std::str::from_utf8(element) {
            assert!(has_token(text, token) && has_token(text, &token.to_ascii_uppercase()));
        }
    }
}
