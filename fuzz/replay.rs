//! Runs the bodies of fuzz targets on their saved corpora: what they started from, and what fuzzing
//! once found. Without a fuzzer: the tests of each crate that has some take this in.

use std::fs;
use std::path::Path;

/// The corpora of a crate, together and in bytes, are small at the most: the repository keeps them.
const BYTES_MAX: usize = 1 << 20;

/// What a target is called, and the function that it runs.
type Target = (&'static str, fn(&[u8]));

/// Runs each body on each of its inputs, in the order of their names; `run` says how.
///
/// # Panics
///
/// Where a body does, behind a line that names the input; and where a target has no corpus.
pub(crate) fn replay(targets: &[Target], run: impl Fn(fn(&[u8]), &[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut bytes = 0;
    for (name, body) in targets {
        let folder = root.join(name);
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> =
            entries.map(|entry| entry.expect("a readable folder").path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{name} has a corpus");
        for path in paths {
            let input = fs::read(&path).expect("a readable file");
            bytes += input.len();
            // The test's output is shown only when it fails: the last line names the input.
            eprintln!("{}", path.display());
            run(*body, &input);
        }
    }
    assert!(bytes <= BYTES_MAX, "{bytes} bytes of corpora");
}
