//! Test cases from the suites of other projects, as data. `README.md` beside this file names the
//! source of each file. A case has the input, the result of the other project, our result, and the
//! reason if the two differ.
//!
//! ```text
//! name: valid/008
//! with: an option of the other project that the case needs
//! theirs: GET /unusual_content_length HELLO
//! ours: 200 GET /unusual_content_length HELLO close
//! why: only where the two differ
//! bytes: GET /unusual_content_length HTTP/1.0\r\n
//! bytes: conTENT-Length: 5\r\n
//! bytes: \r\n
//! bytes: HELLO
//! ```
//!
//! A blank line ends a case. In `bytes`, `\r`, `
//! `, `\t`, `\\` and `\x00` to `\xff` are escape sequences.

/// One case.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The result of the other project: each request as method, path and body, or the first final
    /// answer as status and body, without trailing white space; or `refused: ..` with its reason.
    pub(crate) theirs: String,
    /// Our result, in the format of a transcript.
    pub(crate) ours: String,
    /// Our result with a `Host` added, if the case lacks a required one. Otherwise the missing
    /// `Host` would be the only result.
    pub(crate) hosted: Option<String>,
    /// Why our result differs from theirs.
    pub(crate) why: String,
    pub(crate) bytes: Vec<u8>,
}

impl Case {
    /// Whether both read the same messages, up to the one that both refuse.
    pub(crate) fn agrees(&self) -> bool {
        let ours = self.hosted.as_ref().unwrap_or(&self.ours);
        let (theirs, ours): (Vec<_>, Vec<_>) =
            (self.theirs.split(" | ").collect(), ours.split(" | ").collect());
        let is_same = |theirs: &&str, ours: &&str| match theirs
            .split_once(':')
            .map_or(*theirs, |(word, _)| word)
        {
            "refused" => is_refusal(ours),
            // Their parser waits for more; ours is told of the EOF.
            _ if theirs.ends_with("(not complete)") => is_refusal(ours),
            _ => message(ours) == *theirs || ours == theirs,
        };
        theirs.len() == ours.len()
            && theirs.iter().zip(&ours).all(|(theirs, ours)| is_same(theirs, ours))
    }
}

/// An error page, or the client's error for a fault of the server.
fn is_refusal(ours: &str) -> bool {
    ours.starts_with(['4', '5']) || ours.starts_with("Peer: ")
}

/// The message without the status of the probe's answer and without the state of the connection.
fn message(ours: &str) -> &str {
    let ours = ours.strip_suffix(" close").unwrap_or(ours);
    ours.strip_prefix("200 ").filter(|rest| !rest.is_empty()).unwrap_or(ours).trim_end()
}

/// All cases of a file.
///
/// # Panics
///
/// On a malformed line, since the data is part of the test.
pub(crate) fn read(text: &str) -> Vec<Case> {
    let mut cases = vec![Case::default()];
    for line in text.lines() {
        let case = cases.last_mut().expect("there is one from the start");
        match line.split_once(": ").or_else(|| line.split_once(':')) {
            None if line.is_empty() => cases.push(Case::default()),
            Some(("name", name)) => case.name = name.to_owned(),
            Some(("with", _)) => {}
            Some(("theirs", theirs)) => case.theirs = theirs.to_owned(),
            Some(("ours", ours)) => case.ours = ours.to_owned(),
            Some(("hosted", hosted)) => case.hosted = Some(hosted.to_owned()),
            Some(("why", why)) => case.why = why.to_owned(),
            Some(("bytes", bytes)) => case.bytes.extend(unescape(bytes)),
            _ => panic!("no line of a case: {line}"),
        }
    }
    cases.retain(|case| !case.name.is_empty());
    cases
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |digit: Option<u8>| {
            digit.and_then(|digit| char::from(digit).to_digit(16)).expect("a digit")
        };
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => (digit(rest.next()) * 16 + digit(rest.next())) as u8,
                other => panic!("no escape: {other:?} in {text}"),
            },
            byte => byte,
        });
    }
    bytes
}

/// Escaped as in the data.
pub(crate) fn escape(transcript: &str) -> String {
    let escaped = transcript.chars().map(|char| match char {
        '\r' => "\\r".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        ' '..='~' => char.to_string(),
        _ => format!("\\x{:02x}", u32::from(char)),
    });
    escaped.collect()
}
