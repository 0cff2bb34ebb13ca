//! The planted bugs of `mutants/`, and of the root's `tests/simulation/mutants/`, still apply to the sources. How many seeds it takes to find each: `tests/long/mutants`.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_planted_bug_still_applies() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !root.join(".git").exists() {
        return Ok(()); // a published package has no history, and no need of this
    }
    let mut patches = 0;
    let core = fs::read_dir(root.join("rotor-sim/mutants"))?;
    for entry in core.chain(fs::read_dir(root.join("tests/simulation/mutants"))?) {
        let patch = entry?.path().canonicalize()?;
        let applied =
            Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(&root).output()?;
        let error = String::from_utf8_lossy(&applied.stderr);
        assert!(applied.status.success(), "{}: {error}", patch.display());
        patches += 1;
    }
    assert!(patches >= 24, "{patches} patches");
    Ok(())
}
