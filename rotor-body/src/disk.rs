//! The system calls for bodies in files, which are made on other threads.
//!
//! A new file of a body has no name: if the process crashes, the file is gone, and no other program
//! can find it by name.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rotor_core::backend::system_entropy;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

/// How often another random name is tried if one exists already. With 2^64 names, none is met
/// twice.
const NAME_ATTEMPTS: usize = 8;

/// Opens a directory. If that fails, the error's message has the path.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
        let error = io::Error::from(errno);
        let what = format!("cannot open the directory {}: {error}", path.display());
        io::Error::new(error.kind(), what)
    })
}

/// Opens a new file without a name. Returns also whether it can be given one.
pub(crate) fn open_unnamed(directory: BorrowedFd<'_>, mode: Mode) -> io::Result<(File, bool)> {
    match open_tmpfile(directory, mode) {
        Ok(file) => Ok((file, true)),
        // The file system does not support it, or the kernel takes this for writing to a directory.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
            let (file, name) = create_named(directory, mode)?;
            unlink(directory, &name)?;
            Ok((file, false))
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_tmpfile(directory: BorrowedFd<'_>, mode: Mode) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(directory, ".", flags, mode)).map(File::from)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_tmpfile(_: BorrowedFd<'_>, _: Mode) -> Result<File, Errno> {
    Err(Errno::NOSYS)
}

/// Creates a new file with an unpredictable name.
pub(crate) fn create_named(directory: BorrowedFd<'_>, mode: Mode) -> io::Result<(File, String)> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    with_random_name(|name| {
        retry_on_intr(|| rustix::fs::openat(directory, name, flags, mode)).map(File::from)
    })
}

/// Calls `make` with random names until it gets one that does not exist yet.
pub(crate) fn with_random_name<T>(
    mut make: impl FnMut(&str) -> Result<T, Errno>,
) -> io::Result<(T, String)> {
    for _ in 0..NAME_ATTEMPTS {
        let mut random = [0; 8];
        system_entropy(&mut random)?;
        let name = format!(".body-{:016x}", u64::from_ne_bytes(random));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Removes a name.
pub(crate) fn unlink(directory: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty())?)
}

/// Gives an unnamed file a name (open(2), on `O_TMPFILE`). It is an error if another file has the
/// name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn link_unnamed(
    file: &File,
    directory: BorrowedFd<'_>,
    name: &str,
) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    // Through /proc, because `AT_EMPTY_PATH` needs a capability.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn link_unnamed(_: &File, _: BorrowedFd<'_>, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Renames `from` to `to`, unless that exists: then it returns `EXIST`, and nothing has changed.
pub(crate) fn rename_new(directory: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
    first_supported(&[
        &|| rename_noreplace(directory, from, to),
        &|| link_and_unlink(directory, from, to),
        &|| rename_to_reserved(directory, from, to),
    ])
}

/// Tries one way after the other, until the kernel and the file system support one.
fn first_supported(ways: &[&dyn Fn() -> Result<(), Errno>]) -> Result<(), Errno> {
    let mut done = Err(Errno::NOSYS);
    for way in ways {
        done = way();
        let is_unsupported = matches!(
            done,
            // vfat, for example, returns `PERM` for hard links (link(2)).
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::MLINK)
        );
        if !is_unsupported {
            break;
        }
    }
    done
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn rename_noreplace(directory: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    rustix::fs::renameat_with(directory, from, directory, to, flags)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn rename_noreplace(_: BorrowedFd<'_>, _: &str, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

fn link_and_unlink(directory: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
    rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?;
    // The file has its new name, whatever happens to the old one.
    let _ = unlink(directory, from);
    Ok(())
}

/// For file systems that support neither: an empty file reserves the name until it is replaced.
fn rename_to_reserved(directory: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(retry_on_intr(|| rustix::fs::openat(directory, to, flags, Mode::RUSR | Mode::WUSR))?);
    let renamed = rustix::fs::renameat(directory, from, directory, to);
    if renamed.is_err() {
        let _ = unlink(directory, to);
    }
    renamed
}

/// Reserves space, so that a full disk is reported now. Returns whether the file system supports
/// that; if not, a full disk is reported when the file is written.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) fn allocate(file: &File, len: u64) -> io::Result<bool> {
    allocate_with(|| rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len))
}

/// Returns the result of `fallocate`. A signal may interrupt it, despite `SA_RESTART` (on a tmpfs
/// it does), and signals are delivered to any thread that does not block them, including this one.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn allocate_with(fallocate: impl FnMut() -> Result<(), Errno>) -> io::Result<bool> {
    match retry_on_intr(fallocate) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => Ok(false),
        allocated => Ok(allocated.map(|()| true)?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) fn allocate(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Reserves space as [`allocate`] does, if `keep_free` bytes stay free then.
pub(crate) fn reserve(file: &File, len: u64, keep_free: u64) -> io::Result<bool> {
    reserve_with(|| allocate(file, len), || check_free(file, 0, keep_free))
}

/// Checks the free space after `allocate`. Before it, several threads and programs may have found
/// the same space for their files.
fn reserve_with(
    allocate: impl FnOnce() -> io::Result<bool>,
    check_free: impl FnOnce() -> io::Result<()>,
) -> io::Result<bool> {
    let is_reserved = allocate()?;
    if is_reserved {
        check_free()?;
    }
    Ok(is_reserved)
}

/// Returns an error if the process may not make a file this long (`RLIMIT_FSIZE`). The system would
/// not only return this error, but also send SIGXFSZ, which ends a process that does not handle it
/// (setrlimit(2)).
pub(crate) fn check_length(len: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(max) if len > max => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}

/// Writes the names in a directory to the disk.
pub(crate) fn sync(directory: impl AsFd) -> io::Result<()> {
    sync_with(|| rustix::fs::fsync(&directory))
}

/// Returns the result of `fsync`, after calling it again if a signal has interrupted it (fsync(2)).
fn sync_with(fsync: impl FnMut() -> Result<(), Errno>) -> io::Result<()> {
    Ok(retry_on_intr(fsync)?)
}

/// Returns an error if the file system would have less than `keep_free` bytes left after writing
/// `more` bytes.
pub(crate) fn check_free(any: impl AsFd, more: u64, keep_free: u64) -> io::Result<()> {
    if keep_free == 0 {
        return Ok(());
    }
    let free = free_bytes_with(|| rustix::fs::fstatvfs(&any))?;
    if free.saturating_sub(more) < keep_free { Err(Errno::NOSPC.into()) } else { Ok(()) }
}

/// Returns how many bytes are available to users, according to `fstatvfs` (some are reserved for
/// root). It is called again if a signal has interrupted it (fstatfs(2)).
fn free_bytes_with(
    fstatvfs: impl FnMut() -> Result<rustix::fs::StatVfs, Errno>,
) -> io::Result<u64> {
    let system = retry_on_intr(fstatvfs)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// Writes like pwritev(2).
pub(crate) fn write_at(file: &File, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, slices, offset)?)
}

/// Reads like pread(2).
pub(crate) fn read_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read_at(into, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Tells the kernel that the file will be read from its beginning to its end.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) fn read_ahead(file: &File) {
    // Only a hint: at worst, reading is slower without it.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) fn read_ahead(_: &File) {}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn an_unlinked_file_stays_usable_without_o_tmpfile() {
        let path = rotor_test_kit::Directory::create();
        let directory = File::open(&path).expect("it is there");
        let mode = Mode::RUSR | Mode::WUSR;
        let (mut file, name) = create_named(directory.as_fd(), mode).expect("it can be made");
        assert!(path.join(&name).exists());
        let again = rustix::fs::openat(&directory, &*name, OFlags::RDONLY, Mode::empty());
        assert!(again.is_ok(), "it has its name");
        unlink(directory.as_fd(), &name).expect("it has its name");
        assert_eq!(std::fs::read_dir(&path).expect("it is there").count(), 0);
        file.write_all(b"still there").expect("it is open");
        file.rewind().expect("it is open");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("it is open");
        assert_eq!(text, "still there");
    }

    #[test]
    fn a_limited_number_of_random_names_is_tried() {
        let mut tried = Vec::new();
        let made = with_random_name(|name| {
            tried.push(name.to_owned());
            if tried.len() < NAME_ATTEMPTS { Err(Errno::EXIST) } else { Ok(7) }
        });
        assert_eq!(made.expect("the last one is free").0, 7);
        tried.sort();
        tried.dedup();
        assert_eq!(tried.len(), NAME_ATTEMPTS, "each is another one");
        assert!(with_random_name(|_| Err::<(), _>(Errno::EXIST)).is_err());
        assert!(with_random_name(|_| Err::<(), _>(Errno::ROFS)).is_err());
    }

    #[test]
    fn every_way_to_rename_leaves_an_existing_file_unchanged() {
        type Way = fn(BorrowedFd<'_>, &str, &str) -> Result<(), Errno>;
        let ways: [(&str, Way); 4] = [
            ("whichever is known", rename_new),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("renamed", rename_noreplace),
            ("linked", link_and_unlink),
            ("reserved", rename_to_reserved),
        ];
        for (way, rename) in ways {
            let path = rotor_test_kit::Directory::create();
            let directory = File::open(&path).expect("it is there");
            let names = || std::fs::read_dir(&path).expect("it is there").count();
            std::fs::write(path.join("from"), "kept").expect("it can be written");
            let renamed = rename(directory.as_fd(), "from", "to");
            assert_eq!((renamed, names()), (Ok(()), 1), "{way}");
            std::fs::write(path.join("from"), "another").expect("it can be written");
            let renamed = rename(directory.as_fd(), "from", "to");
            assert_eq!((renamed, names()), (Err(Errno::EXIST), 2), "{way}");
            assert_eq!(std::fs::read(path.join("to")).expect("it is there"), b"kept", "{way}");
            let renamed = rename(directory.as_fd(), "nothing", "free");
            assert_eq!((renamed, names()), (Err(Errno::NOENT), 2), "{way}");
        }
    }

    #[test]
    fn unsupported_ways_to_rename_are_skipped() {
        for (answers, expected, asked) in [
            (&[Ok(())][..], Ok(()), 1),
            (&[Err(Errno::EXIST)], Err(Errno::EXIST), 1),
            (&[Err(Errno::INVAL), Err(Errno::PERM), Ok(())], Ok(()), 3),
            (&[Err(Errno::NOSYS), Err(Errno::OPNOTSUPP), Err(Errno::EXIST)], Err(Errno::EXIST), 3),
            (&[Err(Errno::INVAL), Err(Errno::EXIST)], Err(Errno::EXIST), 2),
            (&[Err(Errno::INVAL), Err(Errno::PERM), Err(Errno::PERM)], Err(Errno::PERM), 3),
        ] {
            let next = std::cell::Cell::new(0);
            let way: &dyn Fn() -> Result<(), Errno> = &|| {
                next.set(next.get() + 1);
                answers[next.get() - 1]
            };
            assert_eq!((first_supported(&[way; 3]), next.get()), (expected, asked), "{answers:?}");
        }
    }

    #[test]
    fn allocation_without_support_is_reported() {
        let device = File::options().write(true).open("/dev/null").expect("it is there");
        assert!(!allocate(&device, 1).expect("that is no error"));
    }

    #[test]
    fn free_space_is_checked_once_more_after_a_reservation() {
        let full = || Err(Errno::NOSPC.into());
        for (is_reserved, is_free, expected) in [
            (true, true, Some(true)),
            // Another thread has reserved the same space meanwhile.
            (true, false, None),
            // Nothing is reserved: the space is checked again for each piece that is written.
            (false, true, Some(false)),
            (false, false, Some(false)),
        ] {
            let checked = || if is_free { Ok(()) } else { full() };
            assert_eq!(reserve_with(|| Ok(is_reserved), checked).ok(), expected, "{is_reserved}");
        }
        assert!(reserve_with(|| Err(Errno::NOSPC.into()), || Ok(())).is_err());
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    fn allocation_is_retried_after_a_signal() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(())].into_iter();
        let reserved = allocate_with(|| answers.next().expect("it is asked until it is done"));
        assert!(reserved.expect("that is no error"));
        assert!(answers.next().is_none());
    }

    #[test]
    fn a_directory_sync_is_retried_after_a_signal() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(())].into_iter();
        let synced = sync_with(|| answers.next().expect("it is asked until it is done"));
        assert!(synced.is_ok() && answers.next().is_none());
        assert!(sync_with(|| Err(Errno::IO)).is_err());
    }

    #[test]
    fn the_free_space_query_is_retried_after_a_signal() {
        let directory = File::open(std::env::temp_dir()).expect("there is one");
        let mut signals = 2;
        let free = free_bytes_with(|| {
            if signals > 0 {
                signals -= 1;
                return Err(Errno::INTR);
            }
            rustix::fs::fstatvfs(&directory)
        });
        assert!(free.is_ok() && signals == 0);
        assert!(free_bytes_with(|| Err(Errno::IO)).is_err());
    }

    #[test]
    fn the_configured_free_space_is_kept() {
        let directory = File::open(std::env::temp_dir()).expect("there is one");
        for (more, keep, is_ok) in [
            (0, 0, true),
            (u64::MAX, 0, true),
            (0, 1, true),
            (u64::MAX, 1, false),
            (0, u64::MAX, false),
        ] {
            assert_eq!(check_free(&directory, more, keep).is_ok(), is_ok, "{more} {keep}");
        }
    }
}
