//! `StoreJob`: stores a body under a name.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::body::Body;
use crate::disk;

/// A directory, kept open, in which bodies are stored under names. If another directory takes its
/// path later, that has no effect.
#[derive(Debug, Clone)]
pub struct Dir {
    directory: Arc<OwnedFd>,
}

impl Dir {
    /// Opens the directory. This blocks, so call it before the loop runs, or in a job.
    ///
    /// # Errors
    ///
    /// The system's error, with the path in its message: the directory does not exist, or may not be
    /// read.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Dir> {
        Ok(Dir { directory: Arc::new(disk::open_directory(path.as_ref())?) })
    }
}

/// What happens to an existing file with the same name.
#[doc(alias = "How")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfExists {
    /// It stays, and nothing is stored: `AlreadyExists`.
    New,
    /// The body replaces it atomically: opening the name returns either the old or the new file,
    /// complete.
    Replace,
}

/// A job that stores a body under a name, to be run on another thread. It does nothing before
/// [`run`](StoreJob::run).
///
/// ```
/// # mod rotor { pub use rotor_body as body; }
/// use rotor::body::{Body, Dir, IfExists};
///
/// # fn main() -> std::io::Result<()> {
/// # let path = std::env::temp_dir().join(format!("rotor-body-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&path)?;
/// let dir = Dir::open(&path)?;
/// let job = Body::from("kept").store_in(&dir, "name", IfExists::New);
/// // In a handler: scope.offload(move || job.run())
/// job.run()?;
/// assert_eq!(std::fs::read(path.join("name"))?, b"kept");
/// # std::fs::remove_dir_all(&path)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is stored before `run`"]
pub struct StoreJob {
    body: Body,
    dir: Dir,
    name: String,
    how: IfExists,
    mode: u32,
    syncs: bool,
}

impl Body {
    /// Returns a job that stores the body in `dir` as `name`. If the body is the whole of an
    /// unnamed file of a spool on the same file system, the file is given the name; any other body
    /// is copied. The name appears when the file is complete.
    ///
    /// The body may still be used afterwards. If its file was given the name, it is the same file,
    /// so writing to that changes the body. Two names that are given to one body with the same
    /// permissions also share a file; with other permissions, the second name gets a copy. Jobs of
    /// one body wait for each other.
    ///
    /// A process that is killed while it copies, or between the first name of a file and its last,
    /// leaves a `.body-*` file in `dir`. On a file system with neither hard links nor
    /// `RENAME_NOREPLACE` (renameat2(2)), the file of a new name may be seen empty for a moment
    /// before it is complete, and stays empty if the process is killed just then.
    pub fn store_in(&self, dir: &Dir, name: impl Into<String>, how: IfExists) -> StoreJob {
        let (body, dir, name) = (self.clone(), dir.clone(), name.into());
        StoreJob { body, dir, name, how, mode: 0o600, syncs: false }
    }
}

/// How many bytes are copied at a time.
const COPY_BYTES: usize = 256 << 10;

impl StoreJob {
    /// Sets the permissions of the file. Default `0o600`: only for the owner.
    pub fn mode(mut self, mode: u32) -> StoreJob {
        self.mode = mode & 0o7777;
        self
    }

    /// Makes the job write the file, and then its name, to the disk before it returns (fsync(2)).
    /// Default: the system does that at some time.
    #[doc(alias = "fsync")]
    pub fn sync(mut self) -> StoreJob {
        self.syncs = true;
        self
    }

    /// Runs the job. This blocks.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the name is not a valid file name: empty, `.`, `..`, or with a slash or a
    /// zero byte. `AlreadyExists` with [`IfExists::New`]. Otherwise the system's error. Nothing has
    /// changed then, and the body is unchanged. Only if the last sync has failed, the name exists,
    /// and it is unknown what a crash would leave of it.
    pub fn run(self) -> io::Result<()> {
        check_name(&self.name)?;
        if let Body::File(file) = &self.body
            && let Some(unnamed) = file.unnamed_file()
            && self.link(unnamed, file.lock_naming())?
        {
            return self.sync_directory();
        }
        self.copy()?;
        self.sync_directory()
    }

    /// Gives the file its name. Returns `false` if that is not possible; then the body must be
    /// copied. Meanwhile no other job may do the same, because it would publish the file with the
    /// permissions of this one.
    fn link(&self, file: &File, _naming: MutexGuard<'_, ()>) -> io::Result<bool> {
        let before = file.metadata()?;
        // If the file has a name already, its permissions must not change, not even for the moment
        // until this attempt has failed: they decide who may open that name.
        if before.nlink() > 0 && before.mode() & 0o7777 != self.mode {
            return Ok(false);
        }
        self.prepare(file)?;
        self.link_prepared(file)
    }

    fn link_prepared(&self, file: &File) -> io::Result<bool> {
        let directory = self.dir.directory.as_fd();
        let linked = match self.how {
            IfExists::New => disk::link_unnamed(file, directory, &self.name),
            IfExists::Replace => {
                match disk::with_random_name(|name| disk::link_unnamed(file, directory, name)) {
                    Ok(((), name)) => return self.rename_into_place(&name).map(|()| true),
                    Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
                }
            }
        };
        match linked {
            Ok(()) => Ok(true),
            // Another file system, no /proc, or a file system without such links.
            Err(
                Errno::XDEV
                | Errno::NOENT
                | Errno::PERM
                | Errno::OPNOTSUPP
                | Errno::NOSYS
                | Errno::MLINK,
            ) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes the body to a new file, which then gets the name.
    fn copy(&self) -> io::Result<()> {
        disk::check_length(self.body.len())?;
        let directory = self.dir.directory.as_fd();
        let (mut file, name) = disk::create_named(directory, Mode::RUSR | Mode::WUSR)?;
        let written = self.write(&mut file).and_then(|()| self.prepare(&file));
        let placed = written.and_then(|()| match self.how {
            IfExists::Replace => self.rename_into_place(&name),
            IfExists::New => Ok(disk::rename_new(directory, &name, &self.name)?),
        });
        if placed.is_err() {
            // If it is gone already, that is fine.
            let _ = disk::unlink(directory, &name);
        }
        placed
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        if self.body.is_in_memory() {
            return self.body.blocks().try_for_each(|block| file.write_all(block));
        }
        let len = usize::try_from(self.body.len()).unwrap_or(COPY_BYTES);
        let (mut piece, mut offset) = (vec![0; len.min(COPY_BYTES)], 0);
        loop {
            let count = self.body.read_at(offset, &mut piece)?;
            if count == 0 {
                return Ok(());
            }
            file.write_all(&piece[..count])?;
            offset += count as u64;
        }
    }

    /// Sets the permissions, and writes the bytes to the disk, before the file has its name.
    fn prepare(&self, file: &File) -> io::Result<()> {
        file.set_permissions(std::fs::Permissions::from_mode(self.mode))?;
        if self.syncs { file.sync_all() } else { Ok(()) }
    }

    /// Renames the file from its random name to the requested one; if that fails, it has none.
    fn rename_into_place(&self, random: &str) -> io::Result<()> {
        let directory = self.dir.directory.as_fd();
        let renamed = rustix::fs::renameat(directory, random, directory, &*self.name);
        // If both names are links to the same file, rename(2) does not remove the first one.
        let _ = disk::unlink(directory, random);
        Ok(renamed?)
    }

    fn sync_directory(&self) -> io::Result<()> {
        if self.syncs { disk::sync(&*self.dir.directory) } else { Ok(()) }
    }
}

/// Checks that a name is a single component.
fn check_name(name: &str) -> io::Result<()> {
    let is_good = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
    if is_good {
        return Ok(());
    }
    let message = format!("{:?} is no name of a file in a directory", OsStr::new(name));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

impl fmt::Debug for StoreJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJob")
            .field("body", &self.body)
            .field("name", &self.name)
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::FileExt;

    use rotor_test_kit::Directory;

    use super::*;
    use crate::body_file::BodyFile;
    use crate::config::SpoolConfig;
    use crate::content::Content;
    use crate::spool::Spool;
    use crate::stored::StoredFile;

    /// A body in an unnamed file of a spool.
    fn spooled_body(spool: &Spool, dir: &Dir) -> Body {
        let mode = Mode::RUSR | Mode::WUSR;
        let made = disk::open_unnamed(dir.directory.as_fd(), mode);
        let (file, can_be_linked) = made.expect("it can be made");
        file.write_all_at(b"kept", 0).expect("there is space");
        let quota = spool.manager().acquire(4).expect("there is room");
        let stored = StoredFile::new(Content::Disk(Arc::new(file)), can_be_linked, 0, quota);
        Body::from(BodyFile::from_stored(stored, 4))
    }

    fn mode_of(path: impl AsRef<Path>) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn a_failing_job_leaves_the_permissions_of_another() {
        let directory = Directory::create();
        let config = SpoolConfig::new(&*directory).keep_free_bytes(0);
        let spool = config.open().expect("it can be written");
        let dir = Dir::open(&*directory).expect("it is there");
        fs::create_dir(directory.join("taken")).expect("it can be made");
        for _ in 0..500 {
            let body = spooled_body(&spool, &dir);
            let both = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let job = body.store_in(&dir, "taken", IfExists::New).mode(0o666);
                    both.wait();
                    assert!(job.run().is_err(), "it is a directory");
                });
                let job = body.store_in(&dir, "name", IfExists::Replace).mode(0o640);
                both.wait();
                job.run().expect("nothing is in the way");
            });
            assert_eq!(mode_of(directory.join("name")), 0o640);
        }
    }

    #[test]
    fn concurrent_jobs_of_a_body_keep_their_own_permissions() {
        let directory = Directory::create();
        let config = SpoolConfig::new(&*directory).keep_free_bytes(0);
        let spool = config.open().expect("it can be written");
        let dir = Dir::open(&*directory).expect("it is there");
        for _ in 0..500 {
            let body = spooled_body(&spool, &dir);
            let both = std::sync::Barrier::new(2);
            let store = |name, mode| {
                let job = body.store_in(&dir, name, IfExists::Replace).mode(mode);
                both.wait();
                job.run().expect("nothing is in the way");
            };
            std::thread::scope(|scope| {
                scope.spawn(|| store("first", 0o640));
                store("second", 0o604);
            });
            let modes = ["first", "second"].map(|name| mode_of(directory.join(name)));
            assert_eq!(modes, [0o640, 0o604]);
        }
    }

    #[test]
    fn a_second_name_shares_the_file_unless_permissions_differ() {
        let directory = Directory::create();
        let config = SpoolConfig::new(&*directory).keep_free_bytes(0);
        let spool = config.open().expect("it can be written");
        let dir = Dir::open(&*directory).expect("it is there");
        let body = spooled_body(&spool, &dir);
        let files = [("first", 0o640), ("second", 0o640), ("third", 0o604)].map(|(name, mode)| {
            body.store_in(&dir, name, IfExists::New).mode(mode).run().expect("it is free");
            fs::metadata(directory.join(name)).expect("it is there").ino()
        });
        assert!(files[0] == files[1] && files[0] != files[2], "{files:?}");
        let modes = ["first", "second", "third"].map(|name| mode_of(directory.join(name)));
        assert_eq!(modes, [0o640, 0o640, 0o604]);
        assert_eq!(fs::read(directory.join("third")).expect("it is there"), b"kept");
    }

    #[test]
    fn a_failed_second_name_leaves_the_first_unchanged() {
        let directory = Directory::create();
        let config = SpoolConfig::new(&*directory).keep_free_bytes(0);
        let spool = config.open().expect("it can be written");
        let dir = Dir::open(&*directory).expect("it is there");
        let body = spooled_body(&spool, &dir);
        fs::create_dir(directory.join("taken")).expect("it can be made");
        body.store_in(&dir, "name", IfExists::New).mode(0o640).run().expect("it is free");
        let again = body.store_in(&dir, "name", IfExists::New).mode(0o666).run();
        assert_eq!(again.map_err(|error| error.kind()), Err(ErrorKind::AlreadyExists));
        let elsewhere = body.store_in(&dir, "taken", IfExists::Replace).mode(0o666).run();
        assert!(elsewhere.is_err(), "it is a directory");
        assert_eq!(mode_of(directory.join("name")), 0o640);
        let names = fs::read_dir(&*directory).expect("it is there").count();
        assert_eq!(names, 2, "nothing is left behind");
    }
}
