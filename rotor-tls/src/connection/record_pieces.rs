//! Splits slices into the pieces of which records are made.

use std::io::IoSlice;

use rotor_stream::Buf;

use crate::engine::FRAGMENT_BYTES_MAX;

/// Passes at most `most` bytes of the slices to `put`, in pieces that fill whole records, except
/// the last one. Returns the number of bytes.
///
/// A slice that contains whole records, or is the last one, is passed in place. Shorter slices are
/// gathered until they fill a record: for example a frame's header, and the block of a body after
/// it.
///
/// # Errors
///
/// The first error of `put`, after which nothing more is passed.
#[inline]
pub(super) fn for_each_piece<E>(
    slices: &[IoSlice<'_>],
    most: usize,
    mut put: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<usize, E> {
    // The usual case: one response.
    if let [only] = slices {
        let piece = &only[..only.len().min(most)];
        return if piece.is_empty() { Ok(0) } else { put(piece).map(|()| piece.len()) };
    }
    let mut gathered = Buf::new();
    let mut left = most;
    let mut slices = slices.iter().filter(|slice| !slice.is_empty()).peekable();
    while let Some(slice) = slices.next() {
        let mut rest = &slice[..slice.len().min(left)];
        left -= rest.len();
        let is_last = left == 0 || slices.peek().is_none();
        while !rest.is_empty() {
            let piece;
            if gathered.is_empty() && (is_last || rest.len() >= FRAGMENT_BYTES_MAX) {
                let whole = if is_last { 0 } else { rest.len() % FRAGMENT_BYTES_MAX };
                (piece, rest) = rest.split_at(rest.len() - whole);
                put(piece)?;
                continue;
            }
            let room = FRAGMENT_BYTES_MAX - gathered.len();
            (piece, rest) = rest.split_at(rest.len().min(room));
            gathered.extend(piece);
            if gathered.len() == FRAGMENT_BYTES_MAX {
                put(&gathered)?;
                gathered.clear();
            }
        }
        if left == 0 {
            break;
        }
    }
    if !gathered.is_empty() {
        put(&gathered)?;
    }
    Ok(most - left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: usize = FRAGMENT_BYTES_MAX;

    /// The lengths of the slices, the maximum number of bytes to take, and the expected pieces: the
    /// length of each, and whether it borrows from a slice.
    type Case<'a> = (&'a [usize], usize, &'a [(usize, bool)]);

    #[test]
    fn all_pieces_but_the_last_fill_their_records() {
        const FRAME: usize = 9;
        let frames = [FRAME, RECORD, FRAME, RECORD, FRAME, RECORD, FRAME, RECORD];
        let gathered = (RECORD, false);
        let cases: [Case<'_>; 11] = [
            (&[], RECORD, &[]),
            (&[0, 0], RECORD, &[]),
            (&[13], 4 * RECORD, &[(13, true)]),
            (&[0, 13, 0], 4 * RECORD, &[(13, true)]),
            (&[100, 13], 4 * RECORD, &[(113, false)]),
            (&[5 * RECORD], 4 * RECORD, &[(4 * RECORD, true)]),
            (&[2 * RECORD + 1, 9], 4 * RECORD, &[(2 * RECORD, true), (10, false)]),
            // The head of a response and a long body.
            (&[100, 9 * RECORD], 4 * RECORD, &[gathered, (3 * RECORD, true)]),
            (&[100, RECORD], 4 * RECORD, &[gathered, (100, true)]),
            // HTTP/2 frames.
            (&frames, 4 * RECORD, &[gathered, gathered, gathered, gathered]),
            (&frames[..4], 4 * RECORD, &[gathered, gathered, (2 * FRAME, true)]),
        ];
        let bytes: Vec<u8> = (0..10 * RECORD).map(|at| (at % 251) as u8).collect();
        for (lens, most, expected) in cases {
            let mut at = 0;
            let slices = lens.iter().map(|len| {
                at += len;
                IoSlice::new(&bytes[at - len..at])
            });
            let slices: Vec<IoSlice<'_>> = slices.collect();
            let (mut pieces, mut all) = (Vec::new(), Vec::new());
            let taken = for_each_piece(&slices, most, |piece| {
                pieces.push((piece.len(), bytes.as_ptr_range().contains(&piece.as_ptr())));
                all.extend_from_slice(piece);
                Ok::<(), ()>(())
            });
            assert_eq!(pieces, expected, "{lens:?}");
            assert_eq!((taken, &all[..]), (Ok(all.len()), &bytes[..all.len()]), "{lens:?}");
            assert_eq!(all.len(), most.min(lens.iter().sum()));
        }
    }

    #[test]
    fn no_piece_follows_an_error() {
        let bytes = [b'x'; 2 * RECORD];
        let slices = [IoSlice::new(&bytes), IoSlice::new(b"more"), IoSlice::new(b"more")];
        let mut calls = 0;
        let failed = for_each_piece(&slices, 4 * RECORD, |_| {
            calls += 1;
            Err("worn out")
        });
        assert_eq!((failed, calls), (Err("worn out"), 1));
    }
}
