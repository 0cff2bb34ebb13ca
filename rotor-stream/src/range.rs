//! Clamping of ranges.

use std::ops::{Bound, RangeBounds};

/// Returns the beginning and end of a range among `len` elements. The result is empty if the range
/// is outside of them or reversed.
pub(crate) fn clamp(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let from = match range.start_bound() {
        Bound::Included(&at) => at,
        Bound::Excluded(&at) => at.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(&at) => at.saturating_add(1),
        Bound::Excluded(&at) => at,
        Bound::Unbounded => len,
    };
    let to = to.min(len);
    (from.min(to), to)
}
