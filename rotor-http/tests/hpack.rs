//! The decoder of field blocks compared with another implementation: both have the same result, or
//! ours is stricter.

use loona_hpack::Decoder;
use rotor_http::h2::hpack::{
    Bounds, FieldList, HpackDecoder, HpackError, STATIC_ENTRIES, encode_huffman, encode_integer,
};

const BOUNDS: Bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };

/// A simple generator of numbers: the same ones in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn string(numbers: &mut Numbers, out: &mut Vec<u8>) {
    let len = numbers.below(12);
    let text: Vec<u8> = (0..len).map(|_| b'a' + numbers.below(26) as u8).collect();
    if numbers.below(2) == 0 {
        encode_integer(out, 0, 7, text.len());
        out.extend(text);
    } else {
        let mut coded = Vec::new();
        encode_huffman(&text, &mut coded);
        encode_integer(out, 0x80, 7, coded.len());
        out.extend(coded);
    }
}

/// A well-formed block, except for indices that may refer to no entry. Some blocks are then
/// damaged.
fn block(numbers: &mut Numbers) -> Vec<u8> {
    let mut block = Vec::new();
    if numbers.below(8) == 0 {
        let size = numbers.below(4200);
        encode_integer(&mut block, 0x20, 5, size);
    }
    for _ in 0..numbers.below(10) {
        let (flags, bits) = [(0x80, 7), (0x40, 6), (0, 4), (0x10, 4)][numbers.below(4)];
        let index = if bits < 7 && numbers.below(2) == 0 {
            0
        } else {
            1 + numbers.below(STATIC_ENTRIES + 6)
        };
        encode_integer(&mut block, flags, bits, index);
        if bits == 7 {
            continue;
        }
        if index == 0 {
            string(numbers, &mut block);
        }
        string(numbers, &mut block);
    }
    if numbers.below(5) == 0 && !block.is_empty() {
        let at = numbers.below(block.len());
        block[at] ^= 1 << numbers.below(8);
    }
    block
}

/// How many blocks are tested; more before a release.
fn rounds() -> u32 {
    std::env::var("ROTOR_HPACK_BLOCKS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000)
}

#[test]
fn random_blocks_are_decoded_as_another_implementation_does_or_refused() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut equal, mut stricter) = (0u32, 0u32);
    let mut decoders: Option<(HpackDecoder, Decoder<'static>)> = None;
    for round in 0..rounds() {
        let (ours, theirs) = decoders.get_or_insert_with(|| {
            let mut theirs = Decoder::new();
            theirs.set_max_allowed_table_size(4096);
            (HpackDecoder::new(4096), theirs)
        });
        let block = block(&mut numbers);
        let mut list = FieldList::new();
        let our = ours.decode(&block, &mut list, &BOUNDS);
        let their = theirs.decode(&block);
        match (our, their) {
            (Ok(()), Ok(fields)) => {
                let fields: Vec<_> = fields.iter().map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
                let all: Vec<_> = list
                    .fields()
                    .iter()
                    .map(|field| (field.name.as_bytes().to_vec(), field.value.to_vec()))
                    .collect();
                // A name that is not UTF-8 is represented as empty; whether it is a token is
                // checked later.
                let shown =
                    |name: &[u8]| std::str::from_utf8(name).unwrap_or("").as_bytes().to_vec();
                let fields: Vec<_> = fields.into_iter().map(|(n, v)| (shown(&n), v)).collect();
                assert_eq!(all, fields, "round {round}: {block:x?}");
                equal += 1;
            }
            (Err(error), their) => {
                assert!(error != HpackError::TooLarge, "round {round}");
                stricter += u32::from(their.is_ok());
                // An error ends the connection, and so its tables.
                decoders = None;
            }
            // Only a table size update and no field: the other decoder expects a field after it.
            (Ok(()), Err(_)) if list.is_empty() => decoders = None,
            (Ok(()), Err(error)) => {
                panic!("round {round}: only ours takes {block:x?}: {error:?}");
            }
        }
    }
    assert!(equal > rounds() / 2, "{equal} equal, {stricter} stricter");
    assert!(stricter < rounds() / 100, "{stricter} stricter");
}
