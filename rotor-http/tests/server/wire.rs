//! A strict reader of the server's output. It shares no code with the crate.

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let first = values.next();
        assert!(values.next().is_none(), "{name} twice in {self:?}");
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn closes(&self) -> bool {
        self.field("Connection").is_some_and(|value| value.contains("close"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// Takes one answer off the front. An answer to HEAD identifies itself in `X-Method`.
///
/// # Errors
///
/// A description of the defect; `"cut"` for a truncated valid answer.
pub(crate) fn take(bytes: &mut &[u8]) -> Result<Answer, String> {
    let (head, rest) = split(bytes, b"\r\n\r\n").ok_or("cut")?;
    let text = std::str::from_utf8(head).map_err(|error| error.to_string())?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status =
        line.strip_prefix("HTTP/1.1 ").filter(|line| line.as_bytes().get(3) == Some(&b' '));
    let status =
        status.and_then(|line| line[..3].parse().ok()).ok_or(format!("status line {line:?}"))?;
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or(format!("field line {line:?}"))?;
        let is_token = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_token || value.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(format!("field line {line:?}"));
        }
        fields.push((name.to_owned(), value.to_owned()));
    }
    let mut answer = Answer { status, fields, body: Vec::new() };
    *bytes = take_body(&mut answer, rest)?;
    Ok(answer)
}

fn take_body<'a>(answer: &mut Answer, rest: &'a [u8]) -> Result<&'a [u8], String> {
    let length =
        answer.field("Content-Length").map(|length| length.parse::<usize>().expect("a number"));
    let coding = answer.field("Transfer-Encoding");
    let is_bodyless = matches!(answer.status, 100..=199 | 204);
    if length.is_some() && coding.is_some() || is_bodyless && (length.is_some() || coding.is_some())
    {
        return Err(format!("framing of {answer:?}"));
    }
    if is_bodyless || answer.status == 304 || answer.field("X-Method") == Some("HEAD") {
        return Ok(rest);
    }
    match (length, coding) {
        (Some(length), _) if rest.len() < length => Err("cut".into()),
        (Some(length), _) => {
            answer.body = rest[..length].to_vec();
            Ok(&rest[length..])
        }
        (None, Some("chunked")) => take_chunks(answer, rest),
        (None, None) if answer.closes() => {
            answer.body = rest.to_vec();
            Ok(&[])
        }
        _ => Err(format!("no framing: {answer:?}")),
    }
}

fn take_chunks<'a>(answer: &mut Answer, mut rest: &'a [u8]) -> Result<&'a [u8], String> {
    loop {
        let (size, after) = split(rest, b"\r\n").ok_or("cut")?;
        let size =
            std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or("chunk size")?;
        if size == 0 {
            return trailers(answer, after);
        }
        let data = after.get(..size).ok_or("cut")?;
        answer.body.extend_from_slice(data);
        rest = match after[size..].get(..2) {
            Some(b"\r\n") => &after[size + 2..],
            Some(_) => return Err("chunk end".into()),
            None => return Err("cut".into()),
        };
    }
}

fn trailers<'a>(answer: &mut Answer, mut rest: &'a [u8]) -> Result<&'a [u8], String> {
    loop {
        let (line, after) = split(rest, b"\r\n").ok_or("cut")?;
        rest = after;
        if line.is_empty() {
            return Ok(rest);
        }
        let line = String::from_utf8_lossy(line).into_owned();
        let (name, value) = line.split_once(": ").ok_or(format!("trailer {line:?}"))?;
        answer.fields.push((name.to_owned(), value.to_owned()));
    }
}

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..found], &bytes[found + at.len()..]))
}

/// All answers in the output.
///
/// # Panics
///
/// On malformed or truncated answers.
pub(crate) fn answers(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let at = bytes;
        answers.push(
            take(&mut bytes).unwrap_or_else(|error| panic!("{error}: {}", at.escape_ascii())),
        );
    }
    answers
}

/// The answers in one line: status, body unless it is an error page, and whether the connection
/// closes.
pub(crate) fn transcript(bytes: &[u8]) -> String {
    let line = |answer: &Answer| {
        let body = if answer.status < 400 { format!(" {}", answer.text()) } else { String::new() };
        let close = if answer.closes() { " close" } else { "" };
        format!("{}{}{close}", answer.status, body.trim_end())
    };
    let answers = answers(bytes);
    answers.iter().filter(|answer| answer.status != 100).map(line).collect::<Vec<_>>().join(" | ")
}
