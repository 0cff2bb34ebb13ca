//! Runs the body of the fuzz target on forms on its saved corpus: what it started from, and what fuzzing
//! once found. Without a fuzzer.

mod fuzz_bodies;

use std::fs;
use std::path::Path;

use fuzz_bodies::TARGETS;

#[test]
fn the_saved_corpus_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (name, body) in TARGETS {
        let entries = fs::read_dir(root.join(name)).expect("it has a corpus");
        let mut paths: Vec<_> =
            entries.map(|entry| entry.expect("an entry of it").path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{name} has a corpus");
        for path in paths {
            // Shown only when it fails: the last line names the input.
            eprintln!("{}", path.display());
            body(&fs::read(path).expect("it can be read"));
        }
    }
}
