//! The ways to cut an input.

/// The input whole, byte by byte, and cut in two at every point.
pub(crate) fn splits(input: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let in_two = (1..input.len()).map(|at| vec![&input[..at], &input[at..]]);
    [vec![input], input.chunks(1).collect()].into_iter().chain(in_two)
}

/// How many bytes a peer takes at a time.
pub(crate) const WRITES: [usize; 3] = [usize::MAX, 3, 1];
