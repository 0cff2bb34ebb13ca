//! Runs the body of the fuzz target on its saved corpus, and packets of every kind of nonsense on a
//! host that goes on to serve. Without a fuzzer.
#![forbid(unsafe_code)]

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

/// What fuzzing does for hours, for a moment: any bytes, from seeds.
#[test]
fn any_bytes_pass() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = vec![0; random.usize(0..600)];
        random.fill(&mut bytes);
        // Half of them mostly segments, which go deeper.
        if seed % 2 == 0 {
            bytes.iter_mut().skip(1).step_by(7).for_each(|byte| *byte = *byte & !3 | 1);
        }
        eprintln!("seed {seed}");
        for (_, body) in TARGETS {
            body(&bytes);
        }
    }
}
