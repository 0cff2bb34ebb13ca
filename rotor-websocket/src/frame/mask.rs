//! Masks (RFC 6455 §5.3): four bytes that every byte of a client's payload is combined with.

/// A mask, turned so that it begins with the next byte.
pub(crate) type Mask = [u8; 4];

/// Takes the mask off, or puts it on: the same bytes come of doing it twice.
///
/// Eight bytes at a time, which the compiler makes vectors of.
pub(crate) fn apply(bytes: &mut [u8], mask: Mask) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    // A chunk of eight leaves the mask as it was.
    for (byte, key) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= key;
    }
}

/// The mask as it is for what comes after so many bytes.
pub(crate) fn after(mut mask: Mask, count: usize) -> Mask {
    mask.rotate_left(count % 4);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_meets_its_byte_of_the_mask_wherever_it_is_cut() {
        let mask = [1, 2, 4, 8];
        for len in 0..40 {
            let plain: Vec<u8> = (0..len as u8).map(|at| at ^ 0x5a).collect();
            let expected: Vec<u8> =
                plain.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b).collect();
            for cut in 0..=len {
                let mut bytes = plain.clone();
                apply(&mut bytes[..cut], mask);
                apply(&mut bytes[cut..], after(mask, cut));
                assert_eq!(bytes, expected, "{len} cut at {cut}");
            }
        }
    }
}
