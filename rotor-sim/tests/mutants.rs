//! The planted bugs in all `mutants` folders still apply to the sources, and each names the test
//! suite that must find it. `tests/long/mutants` checks that it does, and after how many seeds; its
//! head says how to add one.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The folders whose planted bugs are found by the simulations next to them.
const SIMULATED: [&str; 2] = ["rotor-sim/mutants/", "tests/simulation/mutants/"];

fn git(root: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new("git").args(arguments).current_dir(root).output()
}

#[test]
fn every_planted_bug_still_applies_and_names_its_suite() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !root.join(".git").exists() {
        return Ok(()); // a published package has no history, and does not need this test
    }
    let list =
        ["ls-files", "--cached", "--others", "--exclude-standard", "--", "*/mutants/*.patch"];
    let patches = String::from_utf8(git(&root, &list)?.stdout)?;
    assert!(patches.lines().count() >= 130, "{patches}");
    for patch in patches.lines() {
        let applied = git(&root, &["apply", "--check", patch])?;
        let error = String::from_utf8_lossy(&applied.stderr);
        assert!(applied.status.success(), "{patch}: {error}");
        let text = fs::read_to_string(root.join(patch))?;
        let mut head = text.lines().take_while(|line| !line.starts_with("diff "));
        let is_named = head.any(|line| line.starts_with("Found by: -"));
        assert!(
            is_named || SIMULATED.iter().any(|folder| patch.starts_with(folder)),
            "{patch} names no suite"
        );
    }
    Ok(())
}
