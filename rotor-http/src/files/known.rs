//! A file that is open, with all that its answers say about it.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::conditions::Validators;
use super::entity_tag::EntityTag;
use crate::h1::format_date;

/// A file whose time of change is older than this will show a later change in that time: file systems count in steps of
/// up to 2 s.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// A file that is open, and what it was when it was opened.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) file: Arc<File>,
    pub(super) size: u64,
    pub(super) tag: EntityTag,
    /// As `Last-Modified` says it; seconds since 1970.
    modified: i64,
    pub(super) modified_text: [u8; 29],
    is_settled: bool,
    pub(super) content_type: Cow<'static, str>,
}

impl Known {
    /// `before` is a moment of wall-clock time before the file was looked at.
    pub(super) fn new(
        file: File,
        metadata: &Metadata,
        content_type: Cow<'static, str>,
        before: SystemTime,
    ) -> Known {
        let size = metadata.len();
        let changed = metadata.modified().ok();
        let age = changed.and_then(|changed| before.duration_since(changed).ok());
        let is_settled = age.is_some_and(|age| age >= SETTLED_AFTER);
        // RFC 9110 §8.8.2.1: never later than the answer itself.
        let modified = metadata.mtime().clamp(0, unix_seconds(before).max(0));
        let nanos =
            (metadata.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec() as u64);
        Known {
            file: Arc::new(file),
            size,
            tag: EntityTag::of_file(nanos, size, metadata.ino(), is_settled),
            modified,
            modified_text: format_date(modified),
            is_settled,
            content_type,
        }
    }

    pub(super) fn validators(&self) -> Validators<'_> {
        Validators {
            tag: Some(&self.tag),
            modified: Some(self.modified),
            modified_is_strong: self.is_settled,
        }
    }
}

/// Whole seconds since 1970, in UTC.
pub(super) fn unix_seconds(time: SystemTime) -> i64 {
    time::UtcDateTime::from(time).unix_timestamp()
}
