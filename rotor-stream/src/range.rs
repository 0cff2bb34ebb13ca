//! Ranges that are clamped to what there is.

use std::ops::{Bound, RangeBounds};

/// Where a range begins and ends among `len` elements; nowhere, if it is outside of them or the
/// wrong way round.
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
