//! Runs the body of every fuzz target on its saved corpus: what fuzzing once found, and what it
//! started from, stays checked without a fuzzer.

mod fuzz_bodies;

use std::fs;
use std::path::Path;

/// Corpora are small: the repository keeps them.
const BYTES_MAX: usize = 1 << 20;

#[test]
fn every_saved_input_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut bytes = 0;
    for (name, body) in fuzz_bodies::TARGETS {
        let folder = root.join(name);
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        assert!(!paths.is_empty(), "{name} has a corpus");
        for path in paths {
            let input = fs::read(&path).expect("a readable file");
            bytes += input.len();
            // The test's output is shown only when it fails: the last line names the input.
            eprintln!("{}", path.display());
            body(&input);
        }
    }
    assert!(bytes < BYTES_MAX, "{bytes} bytes of corpora");
}

#[test]
fn no_input_at_all_is_an_input() {
    for (_, body) in fuzz_bodies::TARGETS {
        body(b"");
        (0..=255).for_each(|byte| body(&[byte; 40]));
    }
}
