//! HPACK of fifteen third-party encoders: the stories of http2jp's `hpack-test-case`.
//!
//! `ROTOR_HPACK_CASES` is the path of a clone; `tests/long/hpack-vectors` fetches one. Its README
//! describes the format of a story: the consecutive field blocks of one connection, in hexadecimal,
//! and the fields of each.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use rotor::http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use serde_json::Value;

const BOUNDS: Bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };

/// SETTINGS_HEADER_TABLE_SIZE if a story has none.
const TABLE_BYTES: u64 = 4096;

type Pairs = Vec<(String, String)>;

fn stories() -> Option<Vec<PathBuf>> {
    let Some(place) = env::var_os("ROTOR_HPACK_CASES") else {
        eprintln!("skipped: ROTOR_HPACK_CASES names no clone of http2jp/hpack-test-case");
        return None;
    };
    let entries = |place: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(place).expect("a directory that can be read");
        entries.map(|entry| entry.expect("it can be read").path()).collect()
    };
    let encoders = entries(Path::new(&place)).into_iter().filter(|path| path.is_dir());
    let files = encoders.flat_map(|encoder| entries(&encoder));
    let mut stories: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "json"))
        .collect();
    stories.sort();
    Some(stories)
}

fn pairs(case: &Value) -> Pairs {
    let headers = case["headers"].as_array().expect("fields");
    let pairs = headers.iter().flat_map(|header| header.as_object().expect("a field"));
    pairs.map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned())).collect()
}

fn octets(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    let octet = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits")
    };
    digits.map(octet).collect()
}

fn decoded(decoder: &mut HpackDecoder, block: &[u8], what: &str) -> Pairs {
    let mut list = FieldList::new();
    decoder.decode(block, &mut list, &BOUNDS).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(!list.is_truncated(), "{what}: not all was kept");
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).expect("text");
    list.fields().iter().map(|field| (field.name.to_owned(), text(field.value))).collect()
}

/// Decodes each story, and also our encoding of its fields.
#[test]
fn headers_encoded_by_others_and_by_us_are_decoded() {
    let Some(stories) = stories() else { return };
    let (mut blocks, mut of_others) = (0, 0);
    for story in &stories {
        let text = fs::read_to_string(story).expect("it can be read");
        let story = story.display();
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let cases = value["cases"].as_array().expect("cases");
        let sizes = cases.iter().filter_map(|case| case["header_table_size"].as_u64());
        let table_max = sizes.max().unwrap_or(0).max(TABLE_BYTES) as usize;
        let mut decoder = HpackDecoder::new(table_max);
        let (encoder, mut of_ours) = (HpackEncoder::new(), HpackDecoder::new(4096));
        for (at, case) in cases.iter().enumerate() {
            let expected = pairs(case);
            let what = format!("{story}, block {at}");
            if let Some(wire) = case["wire"].as_str() {
                assert_eq!(decoded(&mut decoder, &octets(wire), &what), expected, "{what}");
                of_others += 1;
            }
            let mut block = Vec::new();
            for (name, value) in &expected {
                encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
            }
            assert_eq!(decoded(&mut of_ours, &block, &what), expected, "{what}, encoded by us");
            blocks += 1;
        }
    }
    assert!(of_others > 0, "no story has a block");
    eprintln!("{} stories, {of_others} blocks of others, {blocks} of ours", stories.len());
}
