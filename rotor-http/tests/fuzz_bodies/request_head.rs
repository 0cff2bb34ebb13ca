//! Request heads: any cut gives the same result, which is that of the naive reader.

use rotor_http::h1::{
    FieldStorage, HeadReader, Limits, RequestError, RequestHead, RequestSemantics,
};

use super::input::{Cuts, HeadLimits, Input};
use super::naive::{self, Verdict};

/// Limits, cuts, then the head and the bytes after it.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let head_limits = HeadLimits::choose(&mut choices);
    let cuts = Cuts::choose(&mut choices);
    let input = choices.rest();
    let limits = head_limits.limits();

    let whole = cuts.read_each_way(input, |prefixes| read(input, prefixes, &limits));
    match naive::request_head(input, &head_limits) {
        Verdict::Incomplete => {
            assert!(!matches!(whole, Ok(Some(_))), "no end: {}", input.escape_ascii())
        }
        Verdict::Bad => assert!(whole.is_err(), "bad: {}", input.escape_ascii()),
        Verdict::Good(head) => match naive::target(&head.start[0], &head.start[1]) {
            None => assert_eq!(whole, Err(RequestError::TargetForm), "{}", input.escape_ascii()),
            Some(target) => {
                assert_eq!(whole, Ok(Some(head.len)), "good: {}", input.escape_ascii());
                compare(input, &limits, &head, &target);
            }
        },
    }
    if whole == Ok(None) {
        let without_empty_lines =
            input.len() - input.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        assert!(without_empty_lines < head_limits.head, "what waits is within the limit");
    }
}

/// The length of the head, read from growing prefixes.
fn read(
    input: &[u8],
    prefixes: Vec<usize>,
    limits: &Limits,
) -> Result<Option<usize>, RequestError> {
    let mut reader = HeadReader::new();
    assert!(reader.is_idle());
    for len in prefixes {
        let prefix = &input[..len];
        let mut storage = FieldStorage::new();
        match reader.read_request(prefix, &mut storage, limits) {
            Ok(None) => {
                let is_blank = prefix.chunks(2).all(|pair| b"\r\n".starts_with(pair));
                assert_eq!(reader.is_idle(), is_blank, "idle: {}", prefix.escape_ascii());
            }
            Ok(Some(head)) => {
                assert!(reader.is_idle(), "ready for the next head");
                return Ok(Some(head.input_len()));
            }
            Err(error) => {
                stays_refused(&mut reader, prefix, limits);
                return Err(error);
            }
        }
    }
    Ok(None)
}

/// "After an error, the reader returns the same or another error again", with or without more
/// input.
fn stays_refused(reader: &mut HeadReader, input: &[u8], limits: &Limits) {
    for more in [&b""[..], b"\n", b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let again = [input, more].concat();
        let mut storage = FieldStorage::new();
        let answer = reader.read_request(&again, &mut storage, limits).map(|head| head.is_some());
        assert!(answer.is_err(), "an error is final: {answer:?} after {}", again.escape_ascii());
    }
}

/// The fast and the slow path find the same parts of the head as the naive reader.
fn compare(input: &[u8], limits: &Limits, expected: &naive::Head, target: &naive::Target) {
    let mut storage = FieldStorage::new();
    let mut reader = HeadReader::new();
    let head = reader.read_request(input, &mut storage, limits);
    compare_head(&head.expect("a good head").expect("a whole head"), expected, target);
    let mut storage = FieldStorage::new();
    assert!(matches!(reader.read_request(&input[..1], &mut storage, limits), Ok(None)));
    let mut storage = FieldStorage::new();
    let head = reader.read_request(input, &mut storage, limits);
    compare_head(&head.expect("a good head").expect("a whole head"), expected, target);
}

fn compare_head(head: &RequestHead<'_>, expected: &naive::Head, target: &naive::Target) {
    let [method, text, _] = &expected.start;
    assert_eq!(head.method().as_str().as_bytes(), method);
    assert_eq!(head.target().as_str().as_bytes(), text);
    assert_eq!(head.version(), expected.version);
    assert_eq!(head.input_len(), expected.len);
    assert_eq!(super::targets::parts(head), *target);
    assert_eq!(head.fields().len(), expected.lines.len());
    for (field, (name, value)) in head.fields().iter().zip(&expected.lines) {
        assert_eq!((field.name, field.value), (name.as_str(), value.as_slice()));
        assert_eq!(head.field(name), expected.values(name).next());
        let all: Vec<&[u8]> = head.fields().get_all(name).collect();
        assert_eq!(all, expected.values(name).collect::<Vec<_>>());
        let elements: Vec<String> =
            head.fields().list(name).map(|one| latin1(one).to_ascii_lowercase()).collect();
        assert_eq!(
            elements,
            expected.elements(name).into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>()
        );
        assert_eq!(
            head.fields().get_str(name),
            head.field(name).and_then(|value| std::str::from_utf8(value).ok())
        );
    }
    assert_eq!(head.fields().get_all("no such field").next(), None);
    compare_terms(RequestSemantics::from_head(head), expected, target);
}

/// Each byte as a character.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn compare_terms(
    terms: Result<RequestSemantics<'_>, RequestError>,
    head: &naive::Head,
    target: &naive::Target,
) {
    let naive = naive::terms(head);
    let (Ok(terms), Some(naive)) = (&terms, &naive) else {
        assert!(terms.is_err() && naive.is_none(), "{terms:?}, not {naive:?}");
        return;
    };
    assert_eq!(terms.body, naive.body);
    assert_eq!(terms.keep_alive, naive::persists(head));
    assert_eq!(terms.expects_continue, naive.expects_continue);
    assert_eq!(terms.wants_upgrade, naive.wants_upgrade);
    let expected = target.authority.clone().or(naive.host.clone());
    assert_eq!(terms.authority.map(|one| (one.host().to_owned(), one.port())), expected);
    let reply = terms.reply_to();
    assert_eq!(
        (reply.is_head, reply.is_connect),
        (head.start[0] == b"HEAD", head.start[0] == b"CONNECT")
    );
}
