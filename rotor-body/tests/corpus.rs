//! Runs the body of the fuzz target on its saved corpus: what it started from, and what fuzzing
//! found, stays checked without a fuzzer.

mod fuzz_bodies;

use std::fs;
use std::path::Path;

#[test]
fn every_saved_input_passes_and_so_do_those_that_are_cut() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (name, body) in fuzz_bodies::TARGETS {
        let folder = root.join(name);
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        assert!(!paths.is_empty(), "{name} has a corpus");
        for path in paths {
            let input = fs::read(&path).expect("a readable file");
            // The test's output is shown only when it fails: the last line names the input.
            eprintln!("{}", path.display());
            (0..=input.len()).for_each(|cut| body(&input[..cut]));
        }
    }
}

#[test]
fn no_input_at_all_is_an_input() {
    for (_, body) in fuzz_bodies::TARGETS {
        (0..=255).for_each(|byte| body(&[byte; 60]));
    }
}
