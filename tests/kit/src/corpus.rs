//! `saved_inputs`: the seed inputs of a fuzz target, and the inputs that once found a bug.

use std::fs;
use std::path::Path;

/// Reads the saved inputs of a fuzz target, in order of their file names. Prints each path to
/// standard error before its content is yielded. When a test fails, the last path printed is the
/// input that failed.
///
/// # Panics
///
/// If the target has no inputs, or if an input cannot be read.
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
