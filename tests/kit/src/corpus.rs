//! `saved_inputs`: what a fuzz target started from, and what it once found.

use std::fs;
use std::path::Path;

/// Reads the saved inputs of the fuzz target of this name, in order. Each is named on the standard
/// error when it comes, which a test shows where it fails: the last line is the input that did it.
///
/// # Panics
///
/// There are none, or one cannot be read.
pub fn saved_inputs(target: &str) -> impl Iterator<Item = Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of it").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has a corpus");
    paths.into_iter().map(|path| {
        eprintln!("{}", path.display());
        fs::read(path).expect("it can be read")
    })
}
