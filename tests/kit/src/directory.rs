//! `Directory`: a temporary directory of one test.

use std::io::ErrorKind;
use std::iter::repeat_with;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, fs, process};

/// An empty directory for one test. Dropping it removes the directory and all files in it.
///
/// Its path is short, because the path of a Unix socket is limited to about a hundred bytes.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Creates the directory.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    pub fn create() -> Directory {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Directory::first_free(repeat_with(|| NUMBER.fetch_add(1, Relaxed)))
    }

    fn first_free(numbers: impl IntoIterator<Item = u32>) -> Directory {
        for number in numbers {
            let path = env::temp_dir().join(format!("rotor-{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Directory(path),
                // Left by an earlier process with this process id that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
        panic!("all numbers are taken");
    }

    /// Creates or replaces a file in the directory, and returns its path.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Files that a test leaves without the permission to remove them do not fail it.
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_is_distinct_and_is_removed_with_its_files() {
        let (first, second) = (Directory::create(), Directory::create());
        assert_ne!(*first, *second);
        let (kept, gone) = (first.file("a", "a"), second.file("a", "b"));
        drop(second);
        assert_eq!((fs::read(kept).expect("it is there"), gone.exists()), (b"a".to_vec(), false));
    }

    #[test]
    fn a_leftover_directory_is_not_reused() {
        // Numbers that this process does not reach by counting.
        let left = Directory::first_free([u32::MAX - 1]);
        let other = Directory::first_free([u32::MAX - 1, u32::MAX]);
        assert_ne!(*left, *other);
        assert!(left.exists() && other.exists());
    }
}
