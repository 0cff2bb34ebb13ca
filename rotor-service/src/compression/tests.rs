//! What is compressed and for which clients, that decompression restores it, and the memory for it.

use std::io::Read;

use super::*;

const ALL: &[Coding] = &[
    Coding::Gzip,
    #[cfg(feature = "zstd")]
    Coding::Zstd,
];

fn decoded(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Coding::Gzip => {
            let mut reader = flate2::read::GzDecoder::new(coded);
            reader.read_to_end(&mut plain).expect("it is whole");
        }
        #[cfg(feature = "zstd")]
        Coding::Zstd => {
            plain = Vec::with_capacity(1 << 22);
            let count = zstd_safe::decompress(&mut plain, coded).expect("it is whole");
            plain.truncate(count);
        }
        #[cfg(not(feature = "zstd"))]
        Coding::Zstd => unreachable!("it is not here"),
    }
    plain
}

/// Incompressible bytes, the same in each call.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let step = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(step).collect()
}

#[test]
fn compression_depends_on_status_type_and_length() {
    let taken = Compression::new().check([("accept-encoding", &b"gzip"[..])]);
    let (ok, text) = (Status::OK, "text/html; charset=utf-8");
    let yes = (Some(Coding::Gzip), true);
    let no = (None, false);
    for (status, content_type, length, expected) in [
        (ok, text, None, yes),
        (ok, text, Some(1_023), no),
        (ok, text, Some(1_024), yes),
        (ok, text, Some(1_025), yes),
        (Status::NOT_FOUND, text, Some(5_000), yes),
        (Status::NO_CONTENT, text, None, no),
        // The response that it stands for is different for other clients.
        (Status::NOT_MODIFIED, text, None, (None, true)),
        (Status::NOT_MODIFIED, "image/png", None, no),
        (Status::PARTIAL_CONTENT, text, Some(5_000), no),
        (Status::RANGE_NOT_SATISFIABLE, text, Some(5_000), no),
        (ok, "application/json", None, yes),
        (ok, "Application/Problem+JSON", None, yes),
        (ok, "image/svg+xml", None, yes),
        (ok, "application/wasm", None, yes),
        (ok, "font/ttf", None, yes),
        (ok, "text/event-stream", None, no),
        (ok, "image/png", None, no),
        (ok, "font/woff2", None, no),
        (ok, "video/mp4", None, no),
        (ok, "application/zip", None, no),
        (ok, "application/octet-stream", None, no),
        (ok, "application/json-but-not", None, no),
        (ok, "json", None, no),
        (ok, "", None, no),
    ] {
        let encoding = taken.encoding(status, content_type, length);
        let said = (encoding.coding(), encoding.varies);
        assert_eq!(said, expected, "{status} {content_type:?} {length:?}");
    }
    let small = Compression::new().bytes_min(10).check([("Accept-Encoding", &b"gzip"[..])]);
    for (length, expected) in [(9, no), (10, yes)] {
        let encoding = small.encoding(ok, text, Some(length));
        assert_eq!((encoding.coding(), encoding.varies), expected, "{length}");
    }
}

#[test]
fn the_fields_name_the_coding_and_vary() {
    for (fields, said) in [
        (&[][..], "Vary: Accept-Encoding;"),
        (&[("Accept-Encoding", &b"gzip;q=0"[..])], "Vary: Accept-Encoding;"),
        (&[("Accept-Encoding", b"gzip")], "Content-Encoding: gzip;Vary: Accept-Encoding;"),
        (
            &[("Accept-Encoding", b"br"), ("ACCEPT-ENCODING", b"gzip")],
            "Content-Encoding: gzip;Vary: Accept-Encoding;",
        ),
        // The answer to a range request is never compressed.
        (&[("Accept-Encoding", b"gzip"), ("Range", b"bytes=0-")], ""),
        (&[("range", b"bytes=0-"), ("Accept-Encoding", b"gzip")], ""),
    ] {
        let encoding =
            Compression::new().check(fields.iter().copied()).encoding(Status::OK, "text/css", None);
        let text: String = encoding
            .fields()
            .iter()
            .map(|(name, value)| format!("{name}: {};", value.escape_ascii()))
            .collect();
        assert_eq!(text, said, "{fields:?}");
        let coding = encoding.coding();
        assert_eq!(encoding.into_encoder().map(|encoder| encoder.coding()), coding);
    }
}

#[test]
fn encoded_bytes_decode_to_the_input_however_it_is_split() {
    let text = b"All work and no play. ".repeat(4_000);
    for body in [Vec::new(), b"a".to_vec(), text, noise(70_000)] {
        for &coding in ALL {
            for piece in [1_usize, 7, 4_096, usize::MAX] {
                let mut encoder = Encoder::new(coding).expect("it is here");
                let mut coded = Vec::new();
                // Byte by byte through the first hundreds is enough.
                let body = if piece < 100 { &body[..body.len().min(600)] } else { &body };
                for (at, piece) in body.chunks(piece.min(body.len().max(1))).enumerate() {
                    coded.extend(encoder.write(piece).expect("there is memory"));
                    if at % 5 == 0 {
                        coded.extend(encoder.flush().expect("there is memory"));
                    }
                }
                coded.extend(encoder.finish().expect("there is memory"));
                assert_eq!(decoded(coding, &coded), body, "{coding:?} in pieces of {piece}");
            }
        }
    }
}

#[test]
fn flushed_output_can_be_decoded_before_the_end() {
    let mut encoder = Encoder::new(Coding::Gzip).expect("it is here");
    let mut coded = encoder.write(b"the first line\n").expect("there is memory").to_vec();
    coded.extend(encoder.flush().expect("there is memory"));
    let mut first = [0; 15];
    flate2::read::GzDecoder::new(coded.as_slice()).read_exact(&mut first).expect("it is there");
    assert_eq!(&first, b"the first line\n");
}

#[test]
fn a_whole_body_is_compressed_within_the_limit_and_if_it_shrinks() {
    let taken = Compression::new().check([("Accept-Encoding", &b"gzip"[..])]);
    let text = "text/plain";
    for (body, is_coded, varies) in [
        (vec![b'a'; WHOLE_BYTES_MAX], true, true),
        (vec![b'a'; WHOLE_BYTES_MAX + 1], false, false),
        (noise(2_000), false, true),
        (vec![b'a'; 1_023], false, false),
    ] {
        let whole = taken.compress_whole(Status::OK, text, &body);
        let length = body.len();
        assert_eq!(matches!(whole.body, Cow::Owned(_)), is_coded, "{length}");
        assert_eq!(
            whole.fields,
            encoding_fields(is_coded.then_some(Coding::Gzip), varies),
            "{length}"
        );
        assert_eq!(whole.body.len() < length, is_coded, "{length}");
        if is_coded {
            assert_eq!(decoded(Coding::Gzip, &whole.body), body);
        }
    }
    let whole = taken.compress_whole(Status::NOT_MODIFIED, text, b"");
    assert_eq!((whole.body.len(), whole.fields), (0, encoding_fields(None, true)));
}

#[test]
fn the_head_declares_a_plain_body_if_an_encoder_cannot_be_made() {
    let taken = Compression::new().check([("Accept-Encoding", &b"gzip"[..])]);
    let refuse = |_| Err(io::Error::from(io::ErrorKind::OutOfMemory));
    let encoding = taken.encoding_with(refuse, Status::OK, "text/plain", None);
    assert_eq!((encoding.coding(), encoding.fields()), (None, encoding_fields(None, true)));
    assert!(encoding.into_encoder().is_none());
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_encoder_stays_within_its_memory_limit() {
    let mut encoder = zstd::Zstd::new().expect("there is memory");
    let piece = noise(64 << 10);
    for _ in 0..16 {
        encoder.write(&piece).expect("there is memory");
        encoder.flush().expect("there is memory");
        let held = encoder.held();
        assert!(held <= ENCODER_BYTES_MAX, "{held}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_is_preferred_over_gzip_at_equal_weight() {
    let taken = Compression::new().check([("Accept-Encoding", &b"gzip, zstd"[..])]);
    let encoding = taken.encoding(Status::OK, "text/css", None);
    assert_eq!(encoding.fields()[0], ("Content-Encoding", &b"zstd"[..]));
    let coded = encoding.compress_whole(&[b'a'; 5_000]).expect("it is shorter");
    assert_eq!(decoded(Coding::Zstd, &coded), [b'a'; 5_000]);
}
