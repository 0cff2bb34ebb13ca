//! A second, simple implementation of the rules: whole messages, lines split at CR LF, everything
//! copied. It is slow and does its checks in another order than the real code, so the two are
//! unlikely to be wrong in the same way.

use std::net::Ipv6Addr;

use rotor_http::h1::{Body, Form, Method, Version};

use super::input::HeadLimits;

/// The result for a whole input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// The end is missing. Whether the input can still become valid is not checked.
    Incomplete,
    Bad,
    Good(T),
}

/// A field line: name, value.
pub(super) type Line = (String, Vec<u8>);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Three words: method, target, version; or version, code, reason.
    pub(super) start: [Vec<u8>; 3],
    pub(super) version: Version,
    pub(super) lines: Vec<Line>,
    pub(super) len: usize,
}

impl Head {
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.lines
            .iter()
            .filter(move |line| line.0.eq_ignore_ascii_case(name))
            .map(|line| line.1.as_slice())
    }

    /// The elements of the lists in all lines of this name.
    pub(super) fn elements(&self, name: &str) -> Vec<String> {
        let lists = self
            .values(name)
            .map(|value| value.iter().map(|&byte| char::from(byte)).collect::<String>());
        let split = |list: String| {
            list.split(',').map(|one| trim(one).to_ascii_lowercase()).collect::<Vec<_>>()
        };
        lists.flat_map(split).collect()
    }
}

/// The field as it is read, without the whitespace around the value.
pub(super) fn as_read((name, value): Line) -> Line {
    let is_text = |byte: &u8| !b" \t".contains(byte);
    let end = value.iter().rposition(is_text).map_or(0, |last| last + 1);
    let start = value.iter().position(is_text).unwrap_or(0);
    (name, value[start..end].to_vec())
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Whether a field value may contain this text.
pub(super) fn is_value(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte == b'\t' || (byte >= 32 && byte != 127))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The lines of a text in which each line ends with CR LF.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = find(rest, b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    assert!(rest.is_empty(), "the text ends with a line end");
    lines
}

fn field(line: &[u8]) -> Option<Line> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_good = is_token(name) && is_value(value);
    is_good.then(|| as_read((String::from_utf8_lossy(name).into_owned(), value.to_vec())))
}

fn version(text: &[u8]) -> Option<Version> {
    match text.strip_prefix(b"HTTP/1.")? {
        b"0" => Some(Version::Http10),
        [minor] if minor.is_ascii_digit() => Some(Version::Http11),
        _ => None,
    }
}

/// The common part of both kinds of head: the limits on the whole, and the lines after the first.
/// `start` parses the first line.
fn head(
    input: &[u8],
    skipped: usize,
    limits: &HeadLimits,
    start: impl Fn(&[u8]) -> Option<([Vec<u8>; 3], Version)>,
) -> Verdict<Head> {
    let text = &input[skipped..];
    let Some(end) = find(text, b"\r\n\r\n") else { return Verdict::Incomplete };
    let lines = lines(&text[..end + 2]);
    let fields: Option<Vec<Line>> = lines[1..].iter().map(|line| field(line)).collect();
    let is_within = end + 4 <= limits.head
        && lines.len() - 1 <= limits.fields
        && lines[1..].iter().all(|line| line.len() <= limits.field);
    match (start(lines[0]), fields) {
        (Some((start, version)), Some(lines)) if is_within => {
            Verdict::Good(Head { start, version, lines, len: skipped + end + 4 })
        }
        _ => Verdict::Bad,
    }
}

/// The head of a request at the beginning of the input. The form of the target is not checked.
pub(super) fn request_head(input: &[u8], limits: &HeadLimits) -> Verdict<Head> {
    let mut skipped = 0;
    while input[skipped..].starts_with(b"\r\n") {
        skipped += 2;
        if skipped / 2 > usize::from(limits.empty_lines) {
            return Verdict::Bad;
        }
    }
    head(input, skipped, limits, |line| {
        let words: Vec<Vec<u8>> = line.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect();
        let [method, target, last]: [Vec<u8>; 3] = words.try_into().ok()?;
        let version = version(&last)?;
        let is_good = is_token(&method)
            && method.len() <= Method::BYTES_MAX
            && is_target_text(&target)
            && target.len() <= limits.target;
        is_good.then_some(([method, target, last], version))
    })
}

fn is_target_text(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !b"\"#<>".contains(byte))
}

/// The head of a response at the beginning of the input.
pub(super) fn response_head(input: &[u8], limits: &HeadLimits) -> Verdict<Head> {
    head(input, 0, limits, |line| {
        let (first, rest) = (line.get(..9)?, line.get(9..)?);
        let version = version(first.strip_suffix(b" ")?)?;
        let (code, reason) = (rest.get(..3)?, &rest[3..]);
        let is_code = code.iter().all(u8::is_ascii_digit) && code[0] != b'0';
        let phrase = reason.strip_prefix(b" ").unwrap_or_default();
        let is_good = is_code && (reason.is_empty() || reason[0] == b' ') && is_value(phrase);
        is_good.then(|| ([first[..8].to_vec(), code.to_vec(), phrase.to_vec()], version))
    })
}

/// Host and port of an authority.
pub(super) fn authority(text: &[u8]) -> Option<(String, Option<u16>)> {
    let text = std::str::from_utf8(text).ok()?;
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        (format!("[{address}]"), port)
    } else {
        let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
        let mut parts = host.split('%');
        let is_plain = |part: &str| {
            part.chars().all(|char| char.is_ascii_alphanumeric() || "-._~!$&'()*+;=".contains(char))
        };
        let is_encoded = |part: &str| {
            part.chars().take(2).filter(char::is_ascii_hexdigit).count() == 2
                && is_plain(&part[2..])
        };
        if host.is_empty() || !parts.next().is_some_and(is_plain) || !parts.all(is_encoded) {
            return None;
        }
        (host.to_owned(), port)
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Some((host, None)),
        None => None,
        Some("") => Some((host, None)),
        Some(digits) => {
            let number = number(digits.as_bytes(), 10)?;
            (1..=65535).contains(&number).then_some((host, Some(number as u16)))
        }
    }
}

/// A number of digits only; a value that is too large stays too large.
fn number(digits: &[u8], radix: u32) -> Option<u128> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u128, |number, &digit| {
        let digit = char::from(digit).to_digit(radix)?;
        Some((number * u128::from(radix) + u128::from(digit)).min(1 << 100))
    })
}

/// The parts of a request target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) form: Form,
    pub(super) authority: Option<(String, Option<u16>)>,
    pub(super) path: String,
    pub(super) query: Option<String>,
}

/// The target, if its form is allowed for the method.
pub(super) fn target(method: &[u8], text: &[u8]) -> Option<Target> {
    if !is_target_text(text) {
        return None;
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let path_and_query = |text: &str| {
        let mut parts = text.splitn(2, '?').map(str::to_owned);
        (parts.next().unwrap_or_default(), parts.next())
    };
    if method == b"CONNECT" {
        let authority = authority(text.as_bytes()).filter(|(_, port)| port.is_some())?;
        let (path, query) = Default::default();
        return Some(Target { form: Form::Authority, authority: Some(authority), path, query });
    }
    if text.starts_with('/') {
        let (path, query) = path_and_query(&text);
        return Some(Target { form: Form::Origin, authority: None, path, query });
    }
    if text == "*" {
        let asterisk = Target { form: Form::Asterisk, authority: None, path: text, query: None };
        return (method == b"OPTIONS").then_some(asterisk);
    }
    let lower = text.to_ascii_lowercase();
    let scheme = ["http://", "https://"].into_iter().find(|scheme| lower.starts_with(scheme))?;
    let rest = &text[scheme.len()..];
    let end = rest.chars().position(|char| char == '/' || char == '?').unwrap_or(rest.len());
    let authority = authority(&rest.as_bytes()[..end])?;
    let (path, query) = path_and_query(&rest[end..]);
    let path = if path.is_empty() { "/".to_owned() } else { path };
    Some(Target { form: Form::Absolute, authority: Some(authority), path, query })
}

/// The framing of a message without special cases. Without any framing field the result is
/// `absent`: `Empty` for a request, `UntilClose` for a response.
pub(super) fn framing(head: &Head, absent: Body) -> Option<Body> {
    let lengths: Vec<&[u8]> = head.values("Content-Length").collect();
    let codings = head.elements("Transfer-Encoding");
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Some(absent),
        ([length], []) => {
            let length = u64::try_from(number(length, 10)?).ok()?;
            Some(if length == 0 { Body::Empty } else { Body::Length(length) })
        }
        ([], [coding]) if coding == "chunked" && head.version == Version::Http11 => {
            Some(Body::Chunked)
        }
        _ => None,
    }
}

/// The meaning of a request's fields for its connection.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) body: Body,
    pub(super) expects_continue: bool,
    pub(super) wants_upgrade: bool,
    /// The content of `Host`.
    pub(super) host: Option<(String, Option<u16>)>,
}

/// The terms of a request, if its framing, its `Host` and its expectations are valid.
pub(super) fn terms(head: &Head) -> Option<Terms> {
    let is_http11 = head.version == Version::Http11;
    let hosts: Vec<_> = head.values("Host").map(authority).collect();
    let host = match hosts.as_slice() {
        [] if is_http11 => return None,
        [] => None,
        [host] => Some(host.clone()?),
        _ => return None,
    };
    let expectations: Vec<_> =
        head.elements("Expect").into_iter().filter(|one| !one.is_empty()).collect();
    if !expectations.iter().all(|expectation| expectation == "100-continue") {
        return None;
    }
    let body = framing(head, Body::Empty)?;
    let offers = head.elements("Connection").iter().any(|option| option == "upgrade");
    Some(Terms {
        expects_continue: !expectations.is_empty() && is_http11 && body != Body::Empty,
        wants_upgrade: offers && is_http11 && head.values("Upgrade").next().is_some(),
        body,
        host,
    })
}

/// Whether the peer keeps the connection open.
pub(super) fn persists(head: &Head) -> bool {
    let options = head.elements("Connection");
    let has = |option: &str| options.iter().any(|found| found == option);
    !has("close") && (head.version == Version::Http11 || has("keep-alive"))
}

/// The limits of a chunked body, with public fields.
#[derive(Clone, Copy)]
pub(super) struct ChunkLimits {
    pub(super) body: u64,
    pub(super) line: usize,
    pub(super) extensions: usize,
    pub(super) trailer: usize,
    pub(super) trailers: usize,
}

/// A body that was decoded, as far as it is valid.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) data: Vec<u8>,
    pub(super) trailers: Vec<Line>,
    pub(super) consumed: usize,
}

/// Decodes a chunked body. The data before an invalid or missing part is valid.
pub(super) fn chunked(input: &[u8], limits: &ChunkLimits) -> (Verdict<()>, Decoded) {
    let mut done = Decoded::default();
    let verdict = chunks(input, limits, &mut done);
    (verdict, done)
}

fn chunks(input: &[u8], limits: &ChunkLimits, done: &mut Decoded) -> Verdict<()> {
    let mut announced = 0;
    let mut extensions = 0;
    loop {
        let rest = &input[done.consumed..];
        let Some(end) = find(rest, b"\r\n") else { return Verdict::Incomplete };
        let line = &rest[..end];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let Some(size) = number(&line[..digits], 16) else { return Verdict::Bad };
        extensions += line.len() - digits;
        announced += size;
        let is_within = size <= u128::from(u64::MAX)
            && announced <= u128::from(limits.body)
            && extensions <= limits.extensions
            && line.len() <= limits.line;
        if !is_within || !are_extensions(&line[digits..]) {
            return Verdict::Bad;
        }
        done.consumed += end + 2;
        if size == 0 {
            return trailers(&input[done.consumed..], limits, done);
        }
        let rest = &input[done.consumed..];
        let len = size.min(rest.len() as u128) as usize;
        done.data.extend_from_slice(&rest[..len]);
        done.consumed += len;
        match &rest[len..] {
            [] | [b'\r'] => return Verdict::Incomplete,
            [b'\r', b'\n', ..] => done.consumed += 2,
            _ => return Verdict::Bad,
        }
    }
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`
fn are_extensions(text: &[u8]) -> bool {
    let token = |text: &[u8]| text.iter().take_while(|byte| is_token(&[**byte])).count();
    let mut rest = text;
    while let Some(after) = skip_space(rest).strip_prefix(b";") {
        let after = skip_space(after);
        let name = token(after);
        if name == 0 {
            return false;
        }
        rest = &after[name..];
        let Some(value) = skip_space(rest).strip_prefix(b"=") else { continue };
        let value = skip_space(value);
        let len = if value.first() == Some(&b'"') { quoted(value) } else { token(value) };
        if len == 0 {
            return false;
        }
        rest = &value[len..];
    }
    rest.is_empty()
}

/// The text after leading spaces and tabs.
fn skip_space(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..]
}

/// The length of the quoted string at the beginning, 0 if there is none.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match text.get(at..).unwrap_or_default() {
            [b'"', ..] => return at + 1,
            [b'\\', byte, ..] if is_value(&[*byte]) => at += 2,
            [b'\\', ..] | [] => return 0,
            [byte, ..] if is_value(&[*byte]) => at += 1,
            _ => return 0,
        }
    }
}

fn trailers(text: &[u8], limits: &ChunkLimits, done: &mut Decoded) -> Verdict<()> {
    let end = match find(text, b"\r\n\r\n") {
        _ if text.starts_with(b"\r\n") => 0,
        Some(end) => end + 2,
        None => return Verdict::Incomplete,
    };
    let fields: Option<Vec<Line>> = lines(&text[..end]).into_iter().map(field).collect();
    match fields {
        Some(fields) if end + 2 <= limits.trailer && fields.len() <= limits.trailers => {
            done.trailers = fields;
            done.consumed += end + 2;
            Verdict::Good(())
        }
        _ => Verdict::Bad,
    }
}
