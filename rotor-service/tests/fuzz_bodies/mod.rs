//! The body of the fuzz target on forms, as an ordinary function: `fuzz/fuzz_targets/` runs it
//! under libFuzzer, `tests/corpus.rs` calls it on every saved input.

use rotor_http::Status;
use rotor_service::{Multipart, MultipartConfig, PartHead, Piece, Rejection};

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

pub(super) const TARGETS: [Target; 1] = [("multipart", multipart)];

/// The limits that [`naive`] has to know.
struct Limits {
    parts: usize,
    part_bytes: usize,
    head_bytes: usize,
}

const PREAMBLE_BYTES_MAX: usize = 1 << 10;

/// A form of any bytes. Read whole or in pieces of any length, it gives the same parts, or the same
/// refusal, which stays. A naive reader, which has the whole form, finds the same parts.
fn multipart(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let limits = match mode & 3 {
        0 => Limits { parts: 3, part_bytes: 12, head_bytes: 64 },
        1 => Limits { parts: 1, part_bytes: 0, head_bytes: 50 },
        _ => Limits { parts: 1_000, part_bytes: 1 << 20, head_bytes: 1 << 14 },
    };
    let boundary = ["x", "-", "--x", "0123456789 '()+_,-./:=?"][usize::from(mode >> 2 & 3)];
    let whole = read(data, usize::MAX, boundary, &limits);
    for piece in [1, usize::from(mode >> 4) + 2] {
        assert_eq!(read(data, piece, boundary, &limits), whole, "in pieces of {piece}");
    }
    match (naive(data, boundary, &limits), whole) {
        (Ok(found), Ok(parts)) => {
            let parts = parts.into_iter().map(|(_, data)| data);
            assert!(parts.eq(found.into_iter().map(<[u8]>::to_vec)));
        }
        (Err(_), Err(refused)) => {
            let status = refused.status();
            assert!(matches!(status, Status::BAD_REQUEST | Status::CONTENT_TOO_LARGE), "{refused}");
        }
        // The naive reader does not check heads.
        (Ok(_), Err(_)) => {}
        (Err(status), Ok(_)) => panic!("{status} was not noticed"),
    }
}

type Parts = Vec<(PartHead, Vec<u8>)>;

fn read(data: &[u8], piece: usize, boundary: &str, limits: &Limits) -> Result<Parts, Rejection> {
    let config = MultipartConfig::new()
        .parts_max(limits.parts)
        .part_bytes_max(limits.part_bytes as u64)
        .head_bytes_max(limits.head_bytes);
    let content_type = format!("multipart/form-data; boundary=\"{boundary}\"");
    let mut form = Multipart::new(Some(content_type.as_bytes()), &config).expect("it is one");
    let (mut parts, mut is_open) = (Parts::new(), false);
    for mut input in data.chunks(piece) {
        loop {
            let found = match form.next(&mut input) {
                Ok(found) => found,
                Err(refused) => {
                    assert!(form.next(&mut &b"--x"[..]).is_err(), "it stays so");
                    assert!(form.finish().is_err());
                    return Err(refused);
                }
            };
            match found {
                Some(Piece::Begin(head)) => {
                    assert!(!is_open && parts.len() < limits.parts);
                    parts.push((head, Vec::new()));
                    is_open = true;
                }
                Some(Piece::Data(octets)) => {
                    let (_, part) = parts.last_mut().expect("it has begun");
                    part.extend_from_slice(octets);
                    assert!(is_open && !octets.is_empty() && part.len() <= limits.part_bytes);
                }
                Some(Piece::End) => assert!(std::mem::take(&mut is_open), "it has begun"),
                None => break,
            }
        }
        assert!(input.is_empty(), "all of it is taken");
    }
    form.finish().map(|()| {
        assert!(!is_open);
        parts
    })
}

/// The data of each part, or the status of the refusal. Heads are not checked.
fn naive<'a>(body: &'a [u8], boundary: &str, limits: &Limits) -> Result<Vec<&'a [u8]>, Status> {
    let delimiter = format!("\r\n--{boundary}");
    let mut parts = Vec::new();
    // A delimiter has no line end of its own if it comes first, or directly after a head.
    let (_, mut rest) = upto(body, delimiter.as_bytes(), PREAMBLE_BYTES_MAX)?;
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let padding = rest.iter().take_while(|octet| b" \t".contains(octet)).count();
        let head = rest[padding..].strip_prefix(b"\r\n").ok_or(Status::BAD_REQUEST)?;
        let ends = (1..=head.len()).find(|&len| {
            let head = &head[..len];
            head == b"\r\n" || head.ends_with(b"\r\n\r\n")
        });
        let len = ends.ok_or(Status::BAD_REQUEST)?;
        if len > limits.head_bytes || parts.len() == limits.parts {
            return Err(Status::CONTENT_TOO_LARGE);
        }
        let (data, after) = upto(&head[len..], delimiter.as_bytes(), limits.part_bytes)?;
        parts.push(data);
        rest = after;
    }
}

/// The text in front of the first delimiter, and the text behind it.
fn upto<'a>(text: &'a [u8], delimiter: &[u8], max: usize) -> Result<(&'a [u8], &'a [u8]), Status> {
    if let Some(rest) = text.strip_prefix(&delimiter[2..]) {
        return Ok((b"", rest));
    }
    let at = text.windows(delimiter.len()).position(|octets| octets == delimiter);
    match at.ok_or(Status::BAD_REQUEST)? {
        at if at > max => Err(Status::CONTENT_TOO_LARGE),
        at => Ok((&text[..at], &text[at + delimiter.len()..])),
    }
}
