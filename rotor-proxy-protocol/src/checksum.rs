//! CRC-32C, the checksum of headers of version 2 (RFC 9260, appendix A).

/// The polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The change of the checksum for each value of a byte.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// Returns the checksum of the concatenation of these pieces.
pub(crate) fn crc32c(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    !bytes.fold(!0, |sum, &byte| (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_published_examples() {
        // RFC 3720, B.4, and the check value of the catalogue of CRCs.
        for (bytes, sum) in [
            (&[][..], 0),
            (&[0; 32][..], 0x8A91_36AA),
            (&[0xFF; 32], 0x62A8_AB43),
            (b"123456789", 0xE306_9283),
        ] {
            assert_eq!(crc32c(&[bytes]), sum);
            let (one, other) = bytes.split_at(bytes.len() / 2);
            assert_eq!(crc32c(&[one, other]), sum);
        }
    }
}
