//! Response heads as a client reads them: any cut gives the same result, which is that of the naive
//! reader.

use rotor_http::h1::{
    Body, FieldStorage, HeadReader, Limits, Method, ResponseHead, ResponseHeadError,
    ResponseSemantics,
};

use super::input::{Cuts, HeadLimits, Input, METHODS};
use super::naive::{self, Verdict};

/// The request, limits, cuts, then the head and the bytes after it.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let method = choices.pick(&METHODS);
    let offered_upgrade = choices.flag();
    let head_limits = HeadLimits::choose(&mut choices);
    let cuts = Cuts::choose(&mut choices);
    let input = choices.rest();
    let limits = head_limits.limits();

    let whole = cuts.read_each_way(input, |prefixes| read(input, prefixes, &limits));
    match naive::response_head(input, &head_limits) {
        Verdict::Incomplete => {
            assert!(!matches!(whole, Ok(Some(_))), "no end: {}", input.escape_ascii())
        }
        Verdict::Bad => assert!(whole.is_err(), "bad: {}", input.escape_ascii()),
        Verdict::Good(expected) => {
            assert_eq!(whole, Ok(Some(expected.len)), "good: {}", input.escape_ascii());
            for first in [input.len(), 1] {
                let mut reader = HeadReader::new();
                let mut storage = FieldStorage::new();
                if first < input.len() {
                    assert!(matches!(
                        reader.read_response(&input[..first], &mut storage, &limits),
                        Ok(None)
                    ));
                }
                let mut storage = FieldStorage::new();
                let head = reader.read_response(input, &mut storage, &limits);
                let head = head.expect("a good head").expect("a whole head");
                compare(&head, &expected);
                compare_terms(&head, &expected, method, offered_upgrade);
            }
        }
    }
    if whole == Ok(None) {
        assert!(input.len() < head_limits.head, "what waits is within the limit");
    }
}

/// The length of the head, read from growing prefixes.
fn read(
    input: &[u8],
    prefixes: Vec<usize>,
    limits: &Limits,
) -> Result<Option<usize>, ResponseHeadError> {
    let mut reader = HeadReader::new();
    for len in prefixes {
        let mut storage = FieldStorage::new();
        match reader.read_response(&input[..len], &mut storage, limits) {
            Ok(None) => assert_eq!(reader.is_idle(), len == 0),
            Ok(Some(head)) => return Ok(Some(head.input_len())),
            Err(error) => {
                for more in [&b""[..], b"\n", b"\r\n\r\n"] {
                    let again = [&input[..len], more].concat();
                    let mut storage = FieldStorage::new();
                    let answer = reader
                        .read_response(&again, &mut storage, limits)
                        .map(|head| head.is_some());
                    assert!(
                        answer.is_err(),
                        "an error is final: {answer:?} after {}",
                        again.escape_ascii()
                    );
                }
                return Err(error);
            }
        }
    }
    Ok(None)
}

fn compare(head: &ResponseHead<'_>, expected: &naive::Head) {
    let [_, code, reason] = &expected.start;
    assert_eq!(head.status().code().to_string().as_bytes(), code);
    let reason =
        std::str::from_utf8(reason).ok().filter(|reason| reason.is_ascii()).unwrap_or_default();
    assert_eq!(head.reason(), reason);
    assert_eq!(head.version(), expected.version);
    let fields: Vec<_> =
        head.fields().iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
    assert_eq!(fields, expected.lines);
    assert_eq!(head.input_len(), expected.len);
}

fn compare_terms(
    head: &ResponseHead<'_>,
    expected: &naive::Head,
    method: Method<'_>,
    offered_upgrade: bool,
) {
    let terms = ResponseSemantics::from_head(head, method, offered_upgrade);
    let code = head.status().code();
    let is_switch = code == 101;
    if is_switch && !offered_upgrade {
        assert_eq!(terms, Err(ResponseHeadError::UnexpectedSwitch));
        return;
    }
    let is_tunnel = method.as_str() == "CONNECT" && (200..300).contains(&code);
    let has_no_body =
        method.as_str() == "HEAD" || code < 200 || code == 204 || code == 304 || is_tunnel;
    let announced = naive::framing(expected, Body::UntilClose);
    let body = match (is_tunnel, has_no_body) {
        (true, _) => Some(Body::Empty),
        (_, true) => announced.map(|_| Body::Empty),
        _ => announced,
    };
    let (Ok(terms), Some(body)) = (&terms, body) else {
        assert!(terms.is_err() && body.is_none(), "{terms:?}, not {body:?}");
        return;
    };
    assert_eq!(terms.body, body);
    assert_eq!(terms.is_interim, code < 200 && !is_switch);
    let announces = ["Content-Length", "Transfer-Encoding"]
        .iter()
        .any(|name| expected.values(name).next().is_some());
    // A length of 0 announces no body.
    let is_impossible = announces && announced != Some(Body::Empty) && (code < 200 || code == 204);
    let can_go_on = body != Body::UntilClose && !is_switch && !is_tunnel && !is_impossible;
    assert_eq!(terms.keep_alive, naive::persists(expected) && can_go_on);
}
