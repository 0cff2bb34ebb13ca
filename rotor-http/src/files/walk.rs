//! Opens a file component by component, for systems without `openat2`.
//!
//! The type of each component is checked, and then it is opened, both without following links and
//! relative to the directory before it. Links are resolved here, one component at a time, and `..`
//! in a link goes back to a directory that was passed on the way down. So no path leads above the
//! root, whatever is moved meanwhile.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use super::entry::{DIRECTORY_FLAGS, Entry, FILE_FLAGS, OpenError, require_regular};

/// The maximum number of links in one look-up: as many as Linux follows.
const LINKS_MAX: usize = 40;

/// The maximum number of components in one look-up, including those of links: more than in any
/// reasonable tree.
const COMPONENTS_MAX: usize = 1_000;

/// Looks up `name` beneath `root`, and opens it if it is a file.
pub(super) fn find(
    root: BorrowedFd<'_>,
    name: &[u8],
    follow_links: bool,
) -> Result<Entry, OpenError> {
    // The directories from the root down to here; and the components that are left, the next one
    // last.
    let mut directories: Vec<OwnedFd> = Vec::new();
    let mut remaining: Vec<Vec<u8>> = Vec::new();
    push_components(&mut remaining, name)?;
    let mut links = 0;
    while let Some(component) = remaining.pop() {
        let directory = directories.last().map_or(root, AsFd::as_fd);
        // Only a link can contain it: `FilePath` refuses it.
        if component == b".." {
            // From the root, it would lead out.
            directories.pop().ok_or(OpenError::NotFound)?;
            continue;
        }
        let name = OsStr::from_bytes(&component);
        let is_last = remaining.is_empty();
        // The type is checked first, because opening a FIFO or a device has side effects.
        match file_type(directory, name)? {
            FileType::RegularFile if is_last => {
                return require_regular(openat(directory, name, FILE_FLAGS, Mode::empty())?);
            }
            FileType::Directory => {
                directories.push(openat(
                    directory,
                    name,
                    DIRECTORY_FLAGS | OFlags::NOFOLLOW,
                    Mode::empty(),
                )?);
            }
            FileType::Symlink if follow_links => {
                links += 1;
                let target = readlinkat(directory, name, Vec::new())?;
                // An absolute link leads out of the root.
                if links > LINKS_MAX || target.as_bytes().starts_with(b"/") {
                    return Err(OpenError::NotFound);
                }
                push_components(&mut remaining, target.as_bytes())?;
            }
            _ => return Err(OpenError::NotFound),
        }
    }
    Ok(Entry::Directory)
}

/// Returns the type of a file; a link is not followed.
fn file_type(directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileType, Errno> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Puts the components of a path before those that are left.
fn push_components(remaining: &mut Vec<Vec<u8>>, path: &[u8]) -> Result<(), OpenError> {
    let components = path.split(|&byte| byte == b'/').rev();
    remaining.extend(components.filter(|part| !matches!(*part, b"" | b".")).map(<[u8]>::to_vec));
    if remaining.len() > COMPONENTS_MAX { Err(OpenError::NotFound) } else { Ok(()) }
}
