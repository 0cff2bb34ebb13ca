//! Masks (RFC 6455 §5.3): four bytes, with which every byte of a client's payload is combined.

/// A mask, rotated so that it begins with the key of the next byte.
pub(crate) type Mask = [u8; 4];

/// Applies or removes a mask: doing it twice restores the bytes.
///
/// It takes eight bytes at a time, which the compiler vectorizes.
pub(crate) fn apply(bytes: &mut [u8], mask: Mask) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    // Eight bytes do not change the rotation of the mask.
    for (byte, key) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= key;
    }
}

/// Returns the mask rotated for the bytes after the next `count` ones.
pub(crate) fn rotated(mut mask: Mask, count: usize) -> Mask {
    mask.rotate_left(count % 4);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_gives_the_same_bytes_wherever_it_is_split() {
        let mask = [1, 2, 4, 8];
        for len in 0..40 {
            let plain: Vec<u8> = (0..len as u8).map(|at| at ^ 0x5a).collect();
            let expected: Vec<u8> =
                plain.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b).collect();
            for cut in 0..=len {
                let mut bytes = plain.clone();
                apply(&mut bytes[..cut], mask);
                apply(&mut bytes[cut..], rotated(mask, cut));
                assert_eq!(bytes, expected, "{len} cut at {cut}");
            }
        }
    }
}
