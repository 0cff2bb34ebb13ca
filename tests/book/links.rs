//! Links between the documents, and from them to files of the repository.

use std::path::{Component, Path, PathBuf};

use crate::documents::{files, has_file_of_repository, prose_and_fences, read, root};

/// All Markdown files of the repository, by their paths from the root.
fn documents() -> Vec<PathBuf> {
    files("", ".md")
}

/// The targets of the links and images in a text.
pub(crate) fn targets(prose: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let rest = &prose[at + 2..];
        targets.push(&rest[..rest.find(')').expect("a link ends")]);
    }
    targets
}

/// The anchor of a heading, as GitHub and mdBook generate it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(path: &Path, wanted: &str) -> bool {
    let text = read(path);
    let (prose, _) = prose_and_fences(&text);
    prose
        .lines()
        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == wanted)
}

/// The path with `..` resolved.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[test]
fn every_link_resolves() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for document in documents() {
        let text = read(&document);
        let (prose, _) = prose_and_fences(&text);
        for target in targets(&prose) {
            if target.starts_with("https://") || target.starts_with("http://") {
                if has_file_of_repository(target) == Some(false) {
                    broken.push(format!("{}: {target}", document.display()));
                }
                continue; // other addresses are not checked
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => document.clone(),
                path => normal(&document.parent().expect("it is a file").join(path)),
            };
            // A directory is a page of the book only if it has a README.
            let is_page = !path.starts_with("doc")
                || !root().join(&path).is_dir()
                || root().join(&path).join("README.md").exists();
            let is_there = root().join(&path).exists() && is_page;
            if !is_there || !fragment.is_empty() && !has_anchor(&path, fragment) {
                broken.push(format!("{}: {target}", document.display()));
            }
            checked += 1;
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(checked > 100, "only {checked} links were found");
}

/// The book is also published elsewhere, without the repository.
#[test]
fn the_chapters_link_only_within_the_book() {
    for document in files("doc", ".md") {
        let text = read(&document);
        let (prose, _) = prose_and_fences(&text);
        for target in targets(&prose) {
            let path = normal(&document.parent().expect("it is a file").join(target));
            let is_inside = target.contains("://") || path.starts_with("doc");
            assert!(is_inside, "{}: {target} is outside; name it as code", document.display());
        }
    }
}

/// Files named in code spans, such as `rotor-core/tests/memory.rs`: the chapters rely on them.
#[test]
fn every_file_named_in_the_guide_exists() {
    let mut checked = 0;
    for document in files("doc/guide", ".md").into_iter().chain([PathBuf::from("doc/limits.md")]) {
        let text = read(&document);
        let (prose, _) = prose_and_fences(&text);
        for name in prose.split('`').skip(1).step_by(2) {
            let is_ours = ["rotor-", "examples/", "tests/", "benches/", "src/"]
                .iter()
                .any(|start| name.starts_with(start));
            if is_ours && name.contains('/') {
                assert!(root().join(name).exists(), "{}: there is no {name}", document.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "only {checked} were found");
}
