use super::*;

const BOUNDS: Bounds = Bounds { list_bytes_max: 16 << 10, decoded_bytes_max: 64 << 10 };

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(text, 16).expect("digits")
    };
    digits.chunks(2).map(value).collect()
}

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<String, HpackError> {
    let mut list = FieldList::new();
    decoder.decode(block, &mut list, &BOUNDS)?;
    let line =
        |field: crate::Field<'_>| format!("{}: {}\n", field.name, field.value.escape_ascii());
    Ok(list.fields().iter().map(line).collect())
}

/// RFC 7541 §C.3 and §C.4: the same requests, without and with Huffman codes.
#[test]
fn the_requests_of_the_rfc_are_decoded() {
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        let mut decoder = HpackDecoder::new(4096);
        let expected = [
            (":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n", 57),
            (
                ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache\n",
                110,
            ),
            (
                ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value\n",
                164,
            ),
        ];
        for (block, (fields, size)) in blocks.iter().zip(expected) {
            assert_eq!(decode(&mut decoder, &from_hex(block)).as_deref(), Ok(fields));
            assert_eq!(decoder.table().size(), size);
        }
    }
}

/// RFC 7541 §C.5 and §C.6: responses, with a table of 256 bytes, from which entries are evicted.
#[test]
fn the_responses_of_the_rfc_are_decoded() {
    for blocks in [
        [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        ],
        [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        let mut decoder = HpackDecoder::new(256);
        let tail = "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com\n";
        let last = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com\ncontent-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";
        let expected = [
            (format!(":status: 302\n{tail}"), 222),
            (format!(":status: 307\n{tail}"), 222),
            (last.to_owned(), 215),
        ];
        for (block, (fields, size)) in blocks.iter().zip(expected) {
            assert_eq!(decode(&mut decoder, &from_hex(block)), Ok(fields));
            assert_eq!(decoder.table().size(), size);
        }
    }
}

#[test]
fn single_representations_of_the_rfc_are_decoded() {
    // RFC 7541 §C.2.
    for (block, field, entries) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header\n",
            1,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n", 0),
        ("82", ":method: GET\n", 0),
    ] {
        let mut decoder = HpackDecoder::new(4096);
        assert_eq!(decode(&mut decoder, &from_hex(block)).as_deref(), Ok(field));
        assert_eq!(decoder.table().len(), entries);
    }
}

#[test]
fn malformed_blocks_are_rejected_and_never_read_past_their_end() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("ff00 ", HpackError::Index),
        ("ff", HpackError::Truncated),
        ("ff80 8080 8001", HpackError::Integer),
        ("40", HpackError::Truncated),
        ("4001", HpackError::Truncated),
        ("400161", HpackError::Truncated),
        ("40016105 6162", HpackError::Truncated),
        ("0f", HpackError::Truncated),
        ("7e00", HpackError::Index),
        ("4081 ff00", HpackError::Huffman),
        ("3fe2 1f", HpackError::TableSize),
        ("8220", HpackError::TableSize),
        ("20 20 20 82", HpackError::TableSize),
    ] {
        let mut decoder = HpackDecoder::new(4096);
        assert_eq!(decode(&mut decoder, &from_hex(block)), Err(error), "{block}");
    }
    let mut decoder = HpackDecoder::new(4096);
    assert_eq!(decode(&mut decoder, &from_hex("20 3fe1 1f 82")).as_deref(), Ok(":method: GET\n"));
}

#[test]
fn fields_over_the_limit_are_dropped_and_the_table_stays_in_step() {
    let field = |value: &[u8]| {
        let mut block = vec![0x40, 1, b'a', value.len() as u8];
        block.extend_from_slice(value);
        block
    };
    // Each field counts 1 + 67 + 32 = 100.
    let block: Vec<u8> = (0..4u8).flat_map(|n| field(&[b'0' + n; 67])).collect();
    for (list_bytes_max, retained, is_truncated) in
        [(400, 4, false), (399, 3, true), (99, 0, true), (1000, 4, false)]
    {
        let bounds = Bounds { list_bytes_max, decoded_bytes_max: 400 };
        let (mut decoder, mut list) = (HpackDecoder::new(4096), FieldList::new());
        assert_eq!(decoder.decode(&block, &mut list, &bounds), Ok(()));
        assert_eq!((list.len(), list.is_truncated()), (retained, is_truncated), "{bounds:?}");
        assert_eq!(decoder.table().len(), 4);
        list.clear();
        assert_eq!(decoder.decode(&[0xbe], &mut list, &BOUNDS), Ok(()));
        assert_eq!(list.fields().get("a"), Some(&[b'3'; 67][..]));
    }
    let bounds = Bounds { decoded_bytes_max: 399, ..BOUNDS };
    let decoded = HpackDecoder::new(4096).decode(&block, &mut FieldList::new(), &bounds);
    assert_eq!(decoded, Err(HpackError::TooLarge));
}

/// A field of 4,000 bytes in the table, then references of one byte each.
#[test]
fn a_bomb_of_references_is_stopped_at_the_bound() {
    let mut block = vec![0x40, 1, b'a'];
    integer::encode(&mut block, 0, 7, 4000);
    block.extend_from_slice(&[b'x'; 4000]);
    block.extend_from_slice(&[0xbe; 10_000]);
    let mut list = FieldList::new();
    assert_eq!(
        HpackDecoder::new(4096).decode(&block, &mut list, &BOUNDS),
        Err(HpackError::TooLarge)
    );
    assert!(list.bytes.capacity() <= 64 << 10, "{}", list.bytes.capacity());
    // Empty fields count, too.
    let mut decoder = HpackDecoder::new(4096);
    let block = [&[0x40, 0, 0][..], &[0xbe; 10_000]].concat();
    let mut list = FieldList::new();
    assert_eq!(decoder.decode(&block, &mut list, &BOUNDS), Err(HpackError::TooLarge));
    assert!(list.len() <= BOUNDS.list_bytes_max / 32);
}
