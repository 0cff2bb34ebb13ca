//! Tables of forms, split at every point, and every limit.

use super::*;

const TYPE: &[u8] = b"multipart/form-data; boundary=x-y";

fn config() -> MultipartConfig {
    MultipartConfig::new()
}

/// The parts as text: `name|file|type=data;`, or the status.
fn summary(pieces: &[&[u8]], config: &MultipartConfig) -> String {
    let mut text = String::new();
    let read = |text: &mut String| -> Result<(), Rejection> {
        let mut reader = Multipart::new(Some(TYPE), config)?;
        for piece in pieces {
            let mut input = *piece;
            while let Some(piece) = reader.next(&mut input)? {
                match piece {
                    Piece::Begin(head) => {
                        let file = head.file_name().unwrap_or("-");
                        let kind = head.content_type().unwrap_or("-");
                        text.push_str(&format!("{}|{file}|{kind}=", head.name()));
                    }
                    Piece::Data(bytes) => {
                        assert!(!bytes.is_empty());
                        text.push_str(&bytes.escape_ascii().to_string());
                    }
                    Piece::End => text.push(';'),
                }
            }
            assert!(input.is_empty());
        }
        reader.finish()
    };
    match read(&mut text) {
        Ok(()) => text,
        Err(refused) => refused.status().code().to_string(),
    }
}

fn of(body: &[u8]) -> String {
    summary(&[body], &config())
}

/// One part with this head and data.
fn part(head: &str, data: &str) -> String {
    format!("--x-y\r\n{head}\r\n\r\n{data}\r\n--x-y--\r\n")
}

const NAMED: &str = "Content-Disposition: form-data; name=a";

/// Valid forms, and the parts in them.
const GOOD: &[(&[u8], &str)] = &[
    (b"--x-y--", ""),
    (b"--x-y--\r\nand more\r\n--x-y\r\n", ""),
    (b"\r\n--x-y--\r\n", ""),
    (b"a preamble\r\n--x-y--\r\n", ""),
    (b"--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x-y--\r\n", "a|-|-=b;"),
    (b"--x-y \t\r\nContent-Disposition:form-data;name=\"a\"\r\n\r\nb\r\n--x-y--", "a|-|-=b;"),
    (b"--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--x-y--\r\n", "a|-|-=;"),
    (b"--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\n--x-y--\r\n", "a|-|-=;"),
    (
        b"--x-y\r\nCONTENT-DISPOSITION: Form-Data; NAME=\"a b\"; filename=\"c.txt\"\r\n\
          content-type: text/plain\r\nX-Other: 1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
          \r\n--x-\r\n--\r\r\n--x\ry\r\n--x-y\r\n\
          Content-Disposition: form-data; name=d\r\n\r\n --x-y\n\r\n--x-y--\r\n",
        "a b|c.txt|text/plain=\\r\\n--x-\\r\\n--\\r\\r\\n--x\\ry;d|-|-= --x-y\\n;",
    ),
];

#[test]
fn a_form_is_read_the_same_however_it_is_split() {
    for (body, expected) in GOOD {
        assert_eq!(of(body), *expected, "{}", body.escape_ascii());
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(summary(&bytes, &config()), *expected, "octet by octet");
        for at in 0..body.len() {
            let (first, rest) = body.split_at(at);
            assert_eq!(summary(&[first, rest], &config()), *expected, "cut at {at}");
            for to in 0..rest.len() {
                let (second, third) = rest.split_at(to);
                let summary = summary(&[first, second, third], &config());
                assert_eq!(summary, *expected, "cut at {at} and {to} behind");
            }
        }
        // A truncated form is refused: there is no end before its last byte.
        let end = body.windows(7).rposition(|part| part == b"--x-y--").expect("it ends") + 7;
        for at in 0..end {
            assert_eq!(summary(&[&body[..at]], &config()), "400", "ends at {at}");
        }
    }
}

#[test]
fn malformed_forms_are_refused() {
    for head in [
        "",
        "Content-Type: text/plain",
        "Content-Disposition: form-data",
        "Content-Disposition: attachment; name=a",
        "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b",
        "Content-Disposition: form-data; name=a; name=b",
        "Content-Disposition: form-data; name=",
        "Content-Disposition: form-data; name=\"a",
        "Content-Disposition: form-data; name=\"a\"b",
        "Content-Disposition: form-data; =a",
        "Content-Disposition form-data; name=a",
        "Content-Disposition : form-data; name=a",
        "Content-Disposition: form-data;\r\n name=a",
        "Content-Disposition: form-data; name=\"a\u{0}\"",
        "Content-Disposition: form-data; name=\"a\rb\"",
        "Content-Disposition: form-data; name=a\r\nContent-Type: multipart/mixed; boundary=z",
        "Content-Disposition: form-data; name=a\r\nContent-Type: Multipart/Form-Data",
        "Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64",
        "Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable",
        "Content-Disposition: form-data; name=a\nContent-Type: text/plain",
        // Lines that end with LF only: another parser might see the end of the head there, or not.
        "\nContent-Disposition: form-data; name=a",
        "Content-Disposition: form-data; name=a\r\n\n\r\nContent-Type: text/plain",
    ] {
        let summary = of(part(head, "b").as_bytes());
        assert_eq!(summary, "400", "{head:?}");
    }
    for body in [
        &b""[..],
        b"--x-y",
        b"--x-yz\r\n",
        b"--x-y-\r\n",
        b"--x-y\n",
        b"--x-y\rx",
        b"--x-z--\r\n",
        b"--x-y\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\nb\r\n--x-y--\r\n",
        // The boundary is only the beginning of another line.
        b"--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x-yz\r\n--x-y--\r\n",
    ] {
        assert_eq!(of(body), "400", "{}", body.escape_ascii());
    }
}

#[test]
fn a_refused_form_stays_refused() {
    let mut reader = Multipart::new(Some(TYPE), &config()).expect("a boundary");
    let mut input = &b"--x-y\nmore"[..];
    assert!(reader.next(&mut input).is_err());
    let mut good = GOOD[4].0;
    assert_eq!(reader.next(&mut good).expect_err("broken").status(), Status::BAD_REQUEST);
    assert!(reader.finish().is_err());
}

#[test]
fn file_names_have_no_folders() {
    for (sent, expected) in [
        ("a.txt", Some("a.txt")),
        ("\"a b; c=d.txt\"", Some("a b; c=d.txt")),
        ("\"a\\\"b\\\\c\"", Some("c")),
        ("\"ä.txt\"", Some("ä.txt")),
        ("\"C:\\Users\\me\\a.txt\"", Some("a.txt")),
        ("\"../../etc/passwd\"", Some("passwd")),
        ("\"..\\..\\a\"", Some("a")),
        ("\"..\"", None),
        ("\"a/..\"", None),
        ("\"a/\"", None),
        ("\"\"", None),
        ("\"%22.txt\"", Some("%22.txt")),
    ] {
        let body = part(&format!("{NAMED}; filename={sent}; filename*=UTF-8''evil"), "b");
        let parts = Multipart::read(Some(TYPE), body.as_bytes(), &config()).expect(sent);
        let head = parts[0].head();
        assert_eq!((head.file_name(), head.is_file()), (expected, true), "{sent}");
    }
}

#[test]
fn each_limit_is_exact() {
    let one = part(NAMED, "12345");
    for (max, status) in [(4, "413"), (5, "a|-|-=12345;"), (6, "a|-|-=12345;")] {
        let config = config().part_bytes_max(max);
        let bytes: Vec<&[u8]> = one.as_bytes().chunks(1).collect();
        assert_eq!(summary(&bytes, &config), status, "part_bytes_max {max}");
        // The limit applies to each part separately.
        let two = format!("--x-y\r\n{NAMED}\r\n\r\n12345\r\n{one}");
        let status = if max < 5 { "413".to_owned() } else { status.repeat(2) };
        assert_eq!(summary(&[two.as_bytes()], &config), status, "part_bytes_max {max}, twice");
        // Bytes that look like a boundary count as well.
        let mark = part(NAMED, "\r\n--x");
        let is_read = summary(&[mark.as_bytes()], &config) != "413";
        assert_eq!(is_read, max >= 5, "part_bytes_max {max}");
    }
    let head = NAMED.len() + 4;
    for (max, is_read) in [(head - 1, false), (head, true), (head + 1, true)] {
        let summary = summary(&[one.as_bytes()], &config().head_bytes_max(max));
        assert_eq!(summary != "413", is_read, "head_bytes_max {max}");
    }
    for (length, is_read) in [(254, true), (255, true), (256, false)] {
        for named in [
            format!("Content-Disposition: form-data; name={}", "n".repeat(length)),
            format!("{NAMED}; filename={}", "n".repeat(length)),
        ] {
            assert_eq!(of(part(&named, "b").as_bytes()) != "413", is_read, "{length}");
        }
    }
    let piece = format!("--x-y\r\n{NAMED}\r\n\r\nb\r\n");
    for (count, is_read) in [(99, true), (100, true), (101, false)] {
        let body = piece.repeat(count) + "--x-y--";
        assert_eq!(of(body.as_bytes()) != "413", is_read, "{count} parts");
    }
    // A line end counts towards the preamble, except the one in front of the boundary.
    for (length, is_read) in [(1_023, true), (1_024, true), (1_025, false)] {
        let body = "p".repeat(length) + "\r\n--x-y--";
        assert_eq!(of(body.as_bytes()) != "413", is_read, "a preamble of {length}");
    }
}

#[test]
fn the_number_of_parameters_is_limited() {
    for (count, is_read) in [(15, true), (16, true), (17, false)] {
        // In addition to the one that each of them has.
        let more: String = (1..count).map(|number| format!(";p{number}=x")).collect();
        let content_type = format!("multipart/form-data; boundary=a{more}");
        let made = Multipart::new(Some(content_type.as_bytes()), &config());
        assert_eq!(made.is_ok(), is_read, "{count} of Content-Type");
        let summary = of(part(&format!("{NAMED}{more}"), "b").as_bytes());
        assert_eq!(summary != "400", is_read, "{count} of a part");
    }
}

#[test]
fn the_boundary_comes_from_the_content_type() {
    let longest = format!("multipart/form-data; boundary={}", "b".repeat(70));
    let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
    for (content_type, status) in [
        ("multipart/form-data; boundary=a", None),
        ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b'()+_,-./:=?c\"", None),
        ("multipart/form-data;boundary=a;", None),
        (longest.as_str(), None),
        ("", Some(415)),
        ("multipart/mixed; boundary=a", Some(415)),
        ("application/x-www-form-urlencoded", Some(415)),
        ("multipart/form-data", Some(400)),
        ("multipart/form-data; boundary=", Some(400)),
        ("multipart/form-data; boundary=\"\"", Some(400)),
        ("multipart/form-data; boundary=\"a \"", Some(400)),
        ("multipart/form-data; boundary=\"a\rb\"", Some(400)),
        ("multipart/form-data; boundary=a; boundary=b", Some(400)),
        ("multipart/form-data; boundary=ä", Some(400)),
        (long.as_str(), Some(400)),
    ] {
        let made = Multipart::new(Some(content_type.as_bytes()), &config());
        let refused = made.err().map(|refused| refused.status().code());
        assert_eq!(refused, status, "{content_type:?}");
    }
    let none = Multipart::new(None, &config()).expect_err("no type");
    assert_eq!(none.status(), Status::UNSUPPORTED_MEDIA_TYPE);
}

#[test]
fn a_complete_form_is_returned_as_parts() {
    let body = format!("--x-y\r\n{NAMED}\r\n\r\nä\r\n{}", part(NAMED, "\u{1}"));
    let parts = Multipart::read(Some(TYPE), body.as_bytes(), &config()).expect("a form");
    assert_eq!(parts[0].text(), Ok("ä"));
    assert_eq!((parts[1].data(), parts.len()), (&b"\x01"[..], 2));
    let raw = [b"--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\n", &b"\xff\r\n--x-y--"[..]];
    let parts = Multipart::read(Some(TYPE), &raw.concat(), &config()).expect("a form");
    assert_eq!(parts[0].text().expect_err("not UTF-8").reason(), "\"a\" is not UTF-8");
    assert!(format!("{:?}", parts[0]).contains("data: 1"));
}
