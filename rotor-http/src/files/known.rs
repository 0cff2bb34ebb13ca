//! `KnownFile`: a file that can be sent, with everything that responses say about it.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_stream::Block;

use super::conditions::Validators;
use super::entity_tag::EntityTag;
use super::precompressed::{AcceptedCodings, Precompressed};
use super::tag_key::TagKey;
use crate::semantics::calendar::unix_seconds;
use crate::semantics::date::format_date;

/// A file that was changed longer ago than this cannot change again with the same time of change:
/// file systems count in steps of up to 2 s.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The maximum size of a file that is kept in memory, so that head and body are sent in one write.
/// A larger file is kept open and sent by the kernel. At this size the copy takes a third less CPU
/// time than the second system call; at about 64 KiB both are equal
/// (`doc/decisions/0015-small-files.md`). The number of files that are known by default takes 1 MiB
/// at this size.
pub(super) const HELD_BYTES_MAX: u64 = 16 << 10;

/// The contents of a file.
#[derive(Debug)]
pub(super) enum Content {
    /// All of it, in memory.
    Held(Block),
    /// An open file, whose contents are read when they are sent.
    Open(Arc<File>),
}

impl Content {
    /// Reads a small file into memory, on a thread that may block. If the file changes meanwhile, it
    /// is left open.
    ///
    /// # Errors
    ///
    /// The disk cannot read the file: found out now, while the response can still say so.
    pub(super) fn from_file(file: File, metadata: &Metadata) -> io::Result<Content> {
        let block = match metadata.len() <= HELD_BYTES_MAX {
            true => read(&file, metadata)?,
            false => None,
        };
        Ok(block.map_or_else(|| Content::Open(Arc::new(file)), Content::Held))
    }
}

/// Reads the whole file. Returns `None` if it was written meanwhile: then these bytes may be of no
/// version that ever existed.
fn read(file: &File, metadata: &Metadata) -> io::Result<Option<Block>> {
    // At most `HELD_BYTES_MAX`.
    let mut bytes = vec![0; metadata.len() as usize];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let after = file.metadata()?;
    let state = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec(), changed(of));
    Ok((state(&after) == state(metadata)).then(|| bytes.into()))
}

/// When the file was changed in any way (`ctime`), since 1970. Unlike `mtime`, programs cannot set
/// it: a deployment may give all files one date, and a new version of a file may have the old
/// length, too.
fn changed(metadata: &Metadata) -> Duration {
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(metadata.ctime_nsec() as u64)
}

/// A file that can be sent, and its compressed siblings for clients that accept them.
#[derive(Debug)]
pub(super) struct KnownFile {
    plain: KnownVariant,
    coded: Vec<(Precompressed, KnownVariant)>,
}

/// What is sent to one client for a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Representation<'a> {
    pub(super) known: &'a KnownVariant,
    pub(super) coding: Option<Precompressed>,
    /// Whether other clients may get another representation.
    pub(super) varies: bool,
}

impl KnownFile {
    pub(super) fn new(plain: KnownVariant, coded: Vec<(Precompressed, KnownVariant)>) -> KnownFile {
        KnownFile { plain, coded }
    }

    /// Returns what to send to a client that accepts these codings: the plain file if there is no
    /// sibling with any of them.
    pub(super) fn for_client(&self, accepted: &AcceptedCodings) -> Representation<'_> {
        let find = |coding| self.coded.iter().find(move |(other, _)| *other == coding);
        let (known, coding) = match accepted.iter().find_map(find) {
            Some((coding, known)) => (known, Some(*coding)),
            None => (&self.plain, None),
        };
        Representation { known, coding, varies: !self.coded.is_empty() }
    }
}

/// An open file, and its properties when it was opened.
#[derive(Debug)]
pub(super) struct KnownVariant {
    pub(super) content: Content,
    pub(super) size: u64,
    pub(super) tag: EntityTag,
    /// The time of `Last-Modified`, in seconds since 1970.
    modified: i64,
    pub(super) modified_text: [u8; 29],
    is_settled: bool,
    pub(super) content_type: Cow<'static, str>,
}

impl KnownVariant {
    /// Collects the properties of a file. `before` is the wall-clock time before the file was
    /// looked at; `key` is the key for its tag.
    pub(super) fn new(
        key: TagKey,
        content: Content,
        metadata: &Metadata,
        content_type: Cow<'static, str>,
        before: SystemTime,
    ) -> KnownVariant {
        let size = metadata.len();
        let changed = changed(metadata);
        // By the computer's clock: a file from the future is not settled.
        let is_old = |at| before.duration_since(at).is_ok_and(|age| age >= SETTLED_AFTER);
        let is_settled =
            is_old(SystemTime::UNIX_EPOCH + changed) && metadata.modified().is_ok_and(is_old);
        // RFC 9110 §8.8.2.1: not later than the response itself.
        let modified = metadata.mtime().clamp(0, unix_seconds(before).max(0));
        let nanos = changed.as_nanos() as u64;
        KnownVariant {
            content,
            size,
            tag: EntityTag::from_file(key, nanos, size, metadata.ino(), is_settled),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these properties, looked at just after `before`.
    fn known(metadata: &Metadata, before: SystemTime) -> KnownVariant {
        let content = Content::Held(Vec::new().into());
        KnownVariant::new(TagKey::new([1; 16]), content, metadata, "text/plain".into(), before)
    }

    #[test]
    fn small_files_are_held_and_larger_ones_stay_open() {
        let directory = rotor_test_kit::Directory::create();
        let path = directory.join("file");
        for (size, is_held) in [
            (0, true),
            (HELD_BYTES_MAX - 1, true),
            (HELD_BYTES_MAX, true),
            (HELD_BYTES_MAX + 1, false),
        ] {
            let bytes = vec![b'x'; size as usize];
            std::fs::write(&path, &bytes).expect("a file");
            let open = || File::open(&path).expect("it is there");
            let metadata = open().metadata().expect("it is open");
            match Content::from_file(open(), &metadata).expect("it can be read") {
                Content::Held(block) => assert!(is_held && block[..] == bytes, "{size}"),
                Content::Open(_) => assert!(!is_held, "{size}"),
            }
            // The length is unchanged since the metadata was read, but the file was written to.
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
            let file = File::options().write(true).open(&path).expect("it is ours");
            file.set_modified(written).expect("it is ours");
            assert!(
                matches!(Content::from_file(open(), &metadata), Ok(Content::Open(_))),
                "{size}, written since"
            );
            // So is the date, which was set again.
            let metadata = open().metadata().expect("it is open");
            // Again if the clock of the file system stands still meanwhile.
            while changed(&open().metadata().expect("it is open")) == changed(&metadata) {
                file.write_all_at(&bytes, 0).expect("it is ours");
                file.set_modified(written).expect("it is ours");
            }
            assert!(
                matches!(Content::from_file(open(), &metadata), Ok(Content::Open(_))),
                "{size}, written since with its date"
            );
            // The length has changed since the metadata was read.
            std::fs::write(&path, [&bytes[..], b"more"].concat()).expect("a file");
            assert!(
                matches!(Content::from_file(open(), &metadata), Ok(Content::Open(_))),
                "longer than {size}"
            );
            std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file");
            assert!(
                size == 0 || matches!(Content::from_file(open(), &metadata), Ok(Content::Open(_))),
                "shorter than {size}"
            );
        }
    }

    #[test]
    fn a_small_file_that_cannot_be_read_is_an_error() {
        let directory = rotor_test_kit::Directory::create();
        let path = directory.join("file");
        std::fs::write(&path, b"text").expect("a file");
        // As of a disk that fails, except for the code.
        let write_only = File::options().write(true).open(&path).expect("it is ours");
        let metadata = write_only.metadata().expect("it is open");
        assert!(Content::from_file(write_only, &metadata).is_err());
    }

    #[test]
    fn a_date_is_neither_before_1970_nor_in_the_future() {
        let directory = rotor_test_kit::Directory::create();
        let path = directory.join("file");
        let file = File::create(&path).expect("a file");
        // A day after the file was made, so that it was last changed long before.
        let made = changed(&file.metadata().expect("it is open"));
        let now = made.as_secs() as i64 + 86_400;
        let at = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64);
        let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_millis(1_500);
        for (modified, expected, is_settled) in [
            (before_1970, 0, true),
            (at(0), 0, true),
            (at(now - 3), now - 3, true),
            (at(now - 2), now - 2, true),
            (at(now - 1), now - 1, false),
            (at(now), now, false),
            (at(now + 4_000), now, false),
        ] {
            file.set_modified(modified).expect("it is ours");
            let metadata = file.metadata().expect("it is open");
            let known = known(&metadata, at(now));
            let validators = known.validators();
            assert_eq!(validators.modified, Some(expected), "{modified:?}");
            assert_eq!(known.modified_text, format_date(expected), "{modified:?}");
            assert_eq!(validators.modified_is_strong, is_settled, "{modified:?}");
            assert_eq!(known.tag.is_weak(), !is_settled, "{modified:?}");
        }
    }

    #[test]
    fn a_file_rewritten_with_its_old_date_is_not_settled_at_once() {
        let directory = rotor_test_kit::Directory::create();
        let file = File::create(directory.join("file")).expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("it is ours");
        let metadata = file.metadata().expect("it is open");
        let changed = SystemTime::UNIX_EPOCH + changed(&metadata);
        let instant = Duration::from_nanos(1);
        for (before, is_settled) in [
            (changed - instant, false),
            (changed, false),
            (changed + SETTLED_AFTER - instant, false),
            (changed + SETTLED_AFTER, true),
        ] {
            let known = known(&metadata, before);
            assert_eq!(known.tag.is_weak(), !is_settled, "{before:?}");
            assert_eq!(known.validators().modified_is_strong, is_settled, "{before:?}");
        }
    }
}
