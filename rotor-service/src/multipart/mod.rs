//! `Multipart`: forms with files (RFC 7578), read piece by piece.

mod config;
mod parameters;
mod part_head;
mod refusals;
#[cfg(test)]
mod tests;

use std::fmt;

use memchr::memmem::Finder;
use memchr::memrchr;
use rotor_http::Status;

pub use self::config::MultipartConfig;
use self::parameters::Parameters;
pub use self::part_head::PartHead;
use self::refusals::{malformed, too_large};
use crate::refused::Rejection;

/// How many bytes may precede the first part. They have no meaning (RFC 2046 §5.1.1), and browsers
/// send none.
const PREAMBLE_BYTES_MAX: u64 = 1 << 10;

/// How many bytes a boundary may have (RFC 2046 §5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// Reads a form (`multipart/form-data`) piece by piece. However long the body is, only the head of
/// one part is kept in memory.
///
/// ```text
///            boundary               empty line        boundary
///  preamble ──────────▶ delimited ─────▶ head ─────▶ data ─────▶ delimited ──"--"──▶ the end
/// ```
///
/// # Examples
///
/// While the body arrives, in a handler that receives it in blocks. For a complete body, use
/// [`Multipart::read`].
///
/// ```
/// use rotor_service::{Multipart, MultipartConfig, Piece};
///
/// let content_type = Some(&b"multipart/form-data; boundary=x"[..]);
/// let mut form = Multipart::new(content_type, &MultipartConfig::new())?;
/// let mut length = 0;
/// for block in [&b"--x\r\nContent-Disposition: form-data; name=a; filename=b.txt\r\n\r\nHel"[..], b"lo!\r\n--x--\r\n"] {
///     let mut input = block;
///     while let Some(piece) = form.next(&mut input)? {
///         match piece {
///             Piece::Begin(head) => assert_eq!((head.name(), head.file_name()), ("a", Some("b.txt"))),
///             Piece::Data(octets) => length += octets.len(),
///             Piece::End => {}
///         }
///     }
/// }
/// form.finish()?;
/// assert_eq!(length, 6);
/// # Ok::<(), rotor_service::Rejection>(())
/// ```
pub struct Multipart {
    config: MultipartConfig,
    /// CR, LF, two dashes and the boundary. It has no other CR, so after a partial match that
    /// fails, no byte of it can begin another match.
    delimiter: Finder<'static>,
    state: State,
    /// How many bytes of the delimiter have matched.
    matched: usize,
    /// How many of those were only assumed: the line end in front.
    assumed: usize,
    head: Vec<u8>,
    parts: usize,
    /// Bytes of the current part, or of the preamble.
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Preamble,
    /// After a delimiter: what follows on its line.
    Delimited(LineTail),
    Head,
    Data,
    /// After the last delimiter; anything else is ignored.
    Ended,
    /// An error was returned.
    Broken,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineTail {
    Nothing,
    Dash,
    /// Spaces that a gateway added (RFC 2046 §5.1.1).
    Padding,
    LineEnd,
}

/// The pieces of a form, in this order for each part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// A part begins.
    Begin(PartHead),
    /// The next bytes of the part's data; a part without data has none.
    Data(&'a [u8]),
    /// The part is complete.
    End,
}

/// A complete part.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    head: PartHead,
    data: Vec<u8>,
}

impl Multipart {
    /// Makes a reader for the body of a request with this `Content-Type`.
    ///
    /// # Errors
    ///
    /// 415: the type is not `multipart/form-data`. 400: the type is malformed, or its boundary is
    /// missing or malformed.
    pub fn new(
        content_type: Option<&[u8]>,
        config: &MultipartConfig,
    ) -> Result<Multipart, Rejection> {
        let boundary = parse_boundary(content_type.unwrap_or_default())?;
        let delimiter = [b"\r\n--", boundary.as_slice()].concat();
        Ok(Multipart {
            config: config.clone(),
            delimiter: Finder::new(&delimiter).into_owned(),
            state: State::Preamble,
            // The first delimiter is at the beginning of a line.
            matched: 2,
            assumed: 2,
            head: Vec::new(),
            parts: 0,
            count: 0,
        })
    }

    /// Reads a complete body.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Multipart::new), [`next`](Multipart::next) and
    /// [`finish`](Multipart::finish).
    pub fn read(
        content_type: Option<&[u8]>,
        body: &[u8],
        config: &MultipartConfig,
    ) -> Result<Vec<Part>, Rejection> {
        Multipart::new(content_type, config)?.parts(body)
    }

    /// Reads a complete body. This reader must not have read anything yet.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Multipart::next) and [`finish`](Multipart::finish).
    pub fn parts(mut self, body: &[u8]) -> Result<Vec<Part>, Rejection> {
        let (mut parts, mut input) = (Vec::<Part>::new(), body);
        while let Some(piece) = self.next(&mut input)? {
            match (piece, parts.last_mut()) {
                (Piece::Begin(head), _) => parts.push(Part { head, data: Vec::new() }),
                (Piece::Data(bytes), Some(part)) => part.data.extend_from_slice(bytes),
                (Piece::Data(_) | Piece::End, _) => {}
            }
        }
        self.finish()?;
        Ok(parts)
    }

    /// Takes the next piece from the front of `input`; returns `None` once all of `input` is taken.
    /// The pieces do not depend on how the body is cut into inputs, except that data is cut there
    /// too.
    ///
    /// # Errors
    ///
    /// The peer's mistake. Nothing can be read after an error. 400: a malformed boundary or head; a
    /// part without a name, or with two; names that are not UTF-8 or have control characters; forms
    /// within forms (`multipart/mixed`); a `Content-Transfer-Encoding` that changes the data.
    /// Browsers send none of these (RFC 7578 §4). 413: more than the limits of the configuration,
    /// or more than 1 KiB before the first part.
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        input: &mut &'b [u8],
    ) -> Result<Option<Piece<'a>>, Rejection> {
        // It stays broken if a step fails.
        let state = std::mem::replace(&mut self.state, State::Broken);
        let (state, found) = self.next_piece(state, input)?;
        self.state = state;
        Ok(found.map(|found| match found {
            FoundPiece::Begin(head) => Piece::Begin(head),
            FoundPiece::Input(bytes) => Piece::Data(bytes),
            FoundPiece::Delimiter(from, to) => Piece::Data(&self.delimiter.needle()[from..to]),
            FoundPiece::End => Piece::End,
        }))
    }

    /// Checks that the form is complete, after the end of the body.
    ///
    /// # Errors
    ///
    /// 400: the form is not complete.
    pub fn finish(self) -> Result<(), Rejection> {
        match self.state {
            State::Ended => Ok(()),
            _ => Err(malformed("the form is cut short")),
        }
    }

    /// Reads until a piece is found, or all of the input is taken.
    fn next_piece<'b>(
        &mut self,
        mut state: State,
        input: &mut &'b [u8],
    ) -> Result<(State, Option<FoundPiece<'b>>), Rejection> {
        while !input.is_empty() {
            match state {
                State::Preamble => match self.scan_data(input) {
                    ScanOutcome::Delimiter => state = State::Delimited(LineTail::Nothing),
                    ScanOutcome::Data(data) => self.count_bytes(&data, PREAMBLE_BYTES_MAX)?,
                    ScanOutcome::Consumed => {}
                },
                State::Delimited(tail) => {
                    state = after_delimiter(tail, input[0])?;
                    *input = &input[1..];
                }
                State::Head => {
                    if let Some(head) = self.take_head(input)? {
                        return Ok((State::Data, Some(FoundPiece::Begin(head))));
                    }
                }
                State::Data => match self.scan_data(input) {
                    ScanOutcome::Delimiter => {
                        return Ok((State::Delimited(LineTail::Nothing), Some(FoundPiece::End)));
                    }
                    ScanOutcome::Data(data) => {
                        self.count_bytes(&data, self.config.part_bytes_max)?;
                        return Ok((State::Data, Some(data)));
                    }
                    ScanOutcome::Consumed => {}
                },
                State::Ended => *input = &[],
                State::Broken => return Err(malformed("the form is broken")),
            }
        }
        Ok((state, None))
    }

    /// Takes the bytes before the next delimiter, or the delimiter itself.
    fn scan_data<'b>(&mut self, input: &mut &'b [u8]) -> ScanOutcome<'b> {
        let delimiter = self.delimiter.needle();
        if self.matched > 0 {
            let more = input.iter().zip(&delimiter[self.matched..]);
            let count = more.take_while(|(own, its)| own == its).count();
            *input = &input[count..];
            self.matched += count;
            if self.matched == delimiter.len() {
                (self.matched, self.assumed) = (0, 0);
                return ScanOutcome::Delimiter;
            }
            if input.is_empty() {
                return ScanOutcome::Consumed;
            }
            // It was not a delimiter: what has matched is data.
            let found = FoundPiece::Delimiter(self.assumed, self.matched);
            let is_empty = self.assumed == self.matched;
            (self.matched, self.assumed) = (0, 0);
            return if is_empty { ScanOutcome::Consumed } else { ScanOutcome::Data(found) };
        }
        let (count, is_delimiter) = match self.delimiter.find(input) {
            Some(0) => {
                *input = &input[delimiter.len()..];
                return ScanOutcome::Delimiter;
            }
            Some(at) => (at, false),
            None => (input.len() - partial_delimiter_len(input, delimiter), true),
        };
        let (data, rest) = input.split_at(count);
        *input = rest;
        if is_delimiter && !rest.is_empty() {
            // The delimiter may continue in the next input.
            self.matched = rest.len();
            *input = &[];
        }
        if data.is_empty() {
            ScanOutcome::Consumed
        } else {
            ScanOutcome::Data(FoundPiece::Input(data))
        }
    }

    fn count_bytes(&mut self, data: &FoundPiece<'_>, max: u64) -> Result<(), Rejection> {
        self.count += match data {
            FoundPiece::Input(bytes) => bytes.len() as u64,
            FoundPiece::Delimiter(from, to) => (to - from) as u64,
            FoundPiece::Begin(_) | FoundPiece::End => 0,
        };
        if self.count > max {
            return Err(too_large(format!("more than {max} bytes in a part of the form")));
        }
        Ok(())
    }

    /// Collects the head of a part, and reads it once it is complete.
    fn take_head(&mut self, input: &mut &[u8]) -> Result<Option<PartHead>, Rejection> {
        let line = memchr::memchr(b'\n', input).map_or(input.len(), |at| at + 1);
        if self.head.len() + line > self.config.head_bytes_max {
            return Err(too_large("the head of a part is too long"));
        }
        self.head.extend_from_slice(&input[..line]);
        *input = &input[line..];
        if self.head != b"\r\n" && !self.head.ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        if self.parts == self.config.parts_max {
            return Err(too_large(format!("more than {} parts", self.config.parts_max)));
        }
        let head = PartHead::parse(&self.head, self.config.name_bytes_max)?;
        self.head.clear();
        self.parts += 1;
        self.count = 0;
        // A part may be without data. Then the end of its head's last line is also the beginning of
        // the delimiter (RFC 2046 §5.1.1, `body-part`).
        (self.matched, self.assumed) = (2, 2);
        Ok(Some(head))
    }
}

/// What was found, without a borrow of the reader.
enum FoundPiece<'b> {
    Begin(PartHead),
    Input(&'b [u8]),
    /// Bytes of the delimiter that turned out to be data.
    Delimiter(usize, usize),
    End,
}

enum ScanOutcome<'b> {
    Data(FoundPiece<'b>),
    Delimiter,
    /// The input was taken, but nothing was found yet.
    Consumed,
}

/// Returns how many bytes at the end of `input` may begin the delimiter. `input` does not contain a
/// whole delimiter.
fn partial_delimiter_len(input: &[u8], delimiter: &[u8]) -> usize {
    let tail = &input[input.len().saturating_sub(delimiter.len() - 1)..];
    match memrchr(b'\r', tail) {
        Some(at) if delimiter.starts_with(&tail[at..]) => tail.len() - at,
        _ => 0,
    }
}

fn after_delimiter(tail: LineTail, byte: u8) -> Result<State, Rejection> {
    Ok(match (tail, byte) {
        (LineTail::Nothing, b'-') => State::Delimited(LineTail::Dash),
        (LineTail::Dash, b'-') => State::Ended,
        (LineTail::Nothing | LineTail::Padding, b' ' | b'\t') => {
            State::Delimited(LineTail::Padding)
        }
        (LineTail::Nothing | LineTail::Padding, b'\r') => State::Delimited(LineTail::LineEnd),
        (LineTail::LineEnd, b'\n') => State::Head,
        _ => return Err(malformed("the boundary is a part of another line")),
    })
}

fn parse_boundary(content_type: &[u8]) -> Result<Vec<u8>, Rejection> {
    let Some(parameters) = Parameters::parse(content_type) else {
        return Err(malformed("Content-Type is malformed"));
    };
    if !parameters.kind.eq_ignore_ascii_case(b"multipart/form-data") {
        let status = Status::UNSUPPORTED_MEDIA_TYPE;
        return Err(Rejection::new(status, "a form of the type multipart/form-data is expected"));
    }
    let boundary = parameters.take(b"boundary").filter(|boundary| {
        (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len())
            && boundary.last() != Some(&b' ')
            && boundary
                .iter()
                .all(|&byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte))
    });
    boundary.ok_or_else(|| malformed("the form has no boundary that can be one"))
}

impl Part {
    /// Returns the head of the part.
    pub fn head(&self) -> &PartHead {
        &self.head
    }

    /// Returns the data of the part.
    #[doc(alias = "bytes")]
    #[doc(alias = "body")]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the data as text.
    ///
    /// # Errors
    ///
    /// 400, naming the part: the data is not UTF-8.
    pub fn text(&self) -> Result<&str, Rejection> {
        let name = self.head.name();
        str::from_utf8(&self.data).map_err(|_| malformed(format!("{name:?} is not UTF-8")))
    }
}

/// Omits the data, which may be secret.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("head", &self.head).field("data", &self.data.len()).finish()
    }
}

impl fmt::Debug for Multipart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Multipart { state, parts, .. } = self;
        f.debug_struct("Multipart")
            .field("state", state)
            .field("parts", parts)
            .finish_non_exhaustive()
    }
}
