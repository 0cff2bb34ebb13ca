//! `Directory`: one that nobody else has.

use std::io::ErrorKind;
use std::iter::repeat_with;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, fs, process};

/// An empty directory of one test, which is removed with all that is in it when this is dropped.
///
/// Its path is short: that of a Unix socket has about a hundred octets.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// It cannot be made.
    pub fn create() -> Directory {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Directory::first_free(repeat_with(|| NUMBER.fetch_add(1, Relaxed)))
    }

    fn first_free(numbers: impl IntoIterator<Item = u32>) -> Directory {
        for number in numbers {
            let path = env::temp_dir().join(format!("rotor-{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Directory(path),
                // Of an earlier process of this number, which was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
        panic!("all numbers are taken");
    }

    /// Makes a file in it, or replaces it, and returns its path.
    ///
    /// # Panics
    ///
    /// It cannot be written.
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
        // What a test has left that nobody may remove is not what it tests.
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
        // Beyond those that this process makes by itself.
        let left = Directory::first_free([u32::MAX - 1]);
        let other = Directory::first_free([u32::MAX - 1, u32::MAX]);
        assert_ne!(*left, *other);
        assert!(left.exists() && other.exists());
    }
}
