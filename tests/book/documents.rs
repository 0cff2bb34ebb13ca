//! Finds and reads the documents of the repository. Checks that the book has all of its chapters.

use std::fs;
use std::path::{Path, PathBuf};

use crate::links::targets;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Reads a file of the repository. The path is relative to the root.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a directory whose names end with `end`, as sorted paths from the root. Hidden
/// directories and build directories are left out.
pub(crate) fn files(directory: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root().join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it is a directory") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                let name = path.file_name().expect("it has a name").to_string_lossy();
                if name != "target" && !name.starts_with('.') {
                    directories.push(path);
                }
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path.strip_prefix(root()).expect("it is in there").to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// Whether the file exists that a URL of the repository refers to; `None` for other URLs.
pub(crate) fn has_file_of_repository(address: &str) -> Option<bool> {
    let path = address.strip_prefix("https://github.com/rotor-rs/rotor/")?;
    let path = path.strip_prefix("blob/main/").or_else(|| path.strip_prefix("tree/main/"))?;
    Some(root().join(path.split('#').next().unwrap_or(path)).exists())
}

/// A document without its fenced blocks, and the opening lines of those blocks.
pub(crate) fn prose_and_fences(text: &str) -> (String, Vec<&str>) {
    let (mut prose, mut fences, mut is_fenced) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_fenced = !is_fenced;
            if is_fenced {
                fences.push(kind);
            }
        } else if !is_fenced {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    assert!(!is_fenced, "a block is not closed");
    (prose, fences)
}

#[test]
fn every_document_is_a_chapter_of_the_book() {
    let summary = read("doc/SUMMARY.md");
    for path in files("doc", ".md") {
        let path = path.strip_prefix("doc").expect("it is in there").display().to_string();
        if path != "SUMMARY.md" {
            let is_listed = summary.contains(&format!("]({path})"));
            assert!(is_listed, "doc/SUMMARY.md does not list {path}: add `* [ITS TITLE]({path})`");
        }
    }
    let pictures = [files("doc/images", ".svg"), files("doc/images", ".png")].concat();
    for path in pictures {
        let name = format!("images/{})", path.file_name().expect("it has a name").display());
        let is_shown = files("doc", ".md").iter().any(|document| read(document).contains(&name));
        assert!(is_shown, "no document shows {}", path.display());
    }
}

/// The first page lists questions, and each chapter begins with its question.
#[test]
fn every_chapter_begins_with_the_question_that_leads_to_it() {
    let page = read("doc/README.md");
    let mut led_to = Vec::new();
    for row in page.lines().filter(|line| line.contains("](guide/")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [question, links] = cells[..] else { continue }; // prose
        let chapters: Vec<&str> = targets(links);
        for chapter in &chapters {
            let text = read(format!("doc/{chapter}"));
            let asked = text.lines().nth(2).expect("a title, a blank line, a question");
            let is_asked = asked.starts_with('*') && asked.ends_with("?*");
            assert!(is_asked, "{chapter} does not begin with a question: {asked}");
            // Chapters for users of other libraries share a row.
            assert!(chapters.len() > 1 || asked == format!("*{question}*"), "{chapter}: {asked}");
        }
        led_to.extend(chapters.iter().map(|chapter| format!("doc/{chapter}")));
    }
    for path in files("doc/guide", ".md") {
        assert!(
            led_to.contains(&path.display().to_string()),
            "doc/README.md does not lead to {}",
            path.display()
        );
    }
}

#[test]
fn every_program_in_the_book_is_compiled() {
    let compiled = [
        "src/guide.rs",
        "rotor-sim/src/lib.rs",
        "rotor-tower/src/lib.rs",
        "rotor-uring/src/lib.rs",
        "rotor-service/src/lib.rs",
    ]
    .map(read)
    .concat();
    for path in files("doc", ".md") {
        let text = read(&path);
        let (_, fences) = prose_and_fences(&text);
        for fence in &fences {
            assert!(
                matches!(
                    *fence,
                    "rust" | "rust,no_run" | "rust,compile_fail" | "text" | "sh" | "toml"
                ),
                "{}: a block of kind {fence:?}",
                path.display()
            );
        }
        if fences.iter().any(|fence| fence.starts_with("rust")) {
            let name = format!("{}\"", path.display());
            // The inspect crate compiles the programs of its chapter itself.
            let is_compiled = [&compiled, &read("rotor-inspect/src/lib.rs")]
                .iter()
                .any(|compiled| compiled.contains(&name));
            assert!(is_compiled, "nothing compiles the programs in {}", path.display());
        }
    }
}
