//! SECURITY.md: every line of the threat model names tests that exist.

use crate::documents::{read, root};

/// The tests in a line's last cell: each name with the file that was last named before it.
fn named(cell: &str) -> Vec<(&str, &str)> {
    let mut file = "";
    let mut tests = Vec::new();
    for word in cell.split('`').skip(1).step_by(2) {
        match word.ends_with(".rs") {
            true => file = word,
            false => tests.push((file, word)),
        }
    }
    tests
}

#[test]
fn every_line_of_the_threat_model_names_existing_tests() {
    let text = read(root().join("SECURITY.md"));
    let mut lines = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.contains("| test |")) {
        let cell = line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let tests = named(cell);
        assert!(!tests.is_empty(), "no test holds this line: {line}");
        for (file, test) in tests {
            let source = read(root().join(file));
            // A test that runs on every loop is generic over it.
            let is_there =
                ["(", "<L: "].iter().any(|next| source.contains(&format!("fn {test}{next}")));
            assert!(is_there, "{file} has no test {test}");
        }
        lines += 1;
    }
    assert!(lines > 30, "only {lines} lines were found");
}
