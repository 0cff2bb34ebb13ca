//! Checks that each published package has the metadata that crates.io and docs.rs show.

use crate::documents::{read, root};
use crate::front_pages::CRATES;

/// crates.io refuses a package beyond these limits, but only when it is published.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_BYTES_MAX: usize = 20;
const CATEGORIES_MAX: usize = 5;

/// The categories that we use. crates.io refuses any that <https://crates.io/category_slugs> does
/// not list.
const CATEGORIES: [&str; 12] = [
    "asynchronous",
    "cryptography",
    "development-tools::debugging",
    "development-tools::profiling",
    "development-tools::testing",
    "network-programming",
    "os::linux-apis",
    "simulation",
    "web-programming",
    "web-programming::http-client",
    "web-programming::http-server",
    "web-programming::websocket",
];

/// All members of the workspace: their directories and manifests.
fn members() -> Vec<(String, String)> {
    let workspace = read("Cargo.toml");
    let (_, members) = workspace.split_once("members = [").expect("the workspace has members");
    let (members, _) = members.split_once(']').expect("their list ends");
    let directories = members.split('"').skip(1).step_by(2);
    let manifest = |member| {
        let manifest = read(format!("{member}/Cargo.toml"));
        // The `[workspace.dependencies]` table belongs to no package.
        match manifest.split_once("[workspace.dependencies]") {
            None => manifest,
            Some((before, list)) => {
                let behind = list.split_once("\n[").map_or("", |(_, behind)| behind);
                format!("{before}[{behind}")
            }
        }
    };
    directories.map(|member| (member.to_string(), manifest(member))).collect()
}

/// The directories of the members of the workspace that are published.
fn published() -> Vec<String> {
    let published = members().into_iter();
    let published = published.filter(|(_, manifest)| !manifest.contains("\npublish = false\n"));
    published.map(|(directory, _)| directory).collect()
}

/// The value of a key at the beginning of a line, up to the end of the line.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// The strings of a list on one line.
fn list<'a>(manifest: &'a str, key: &str) -> Vec<&'a str> {
    value(manifest, key).map_or(Vec::new(), |list| list.split('"').skip(1).step_by(2).collect())
}

/// Whether crates.io accepts it as a keyword.
fn is_keyword(word: &str) -> bool {
    word.len() <= KEYWORD_BYTES_MAX
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c))
}

#[test]
fn every_package_has_what_the_registry_shows() {
    let packages = published();
    assert!(packages.len() >= 16, "some of {packages:?} were not found");
    for directory in packages {
        let manifest = read(format!("{directory}/Cargo.toml"));
        for inherited in ["version", "edition", "rust-version", "license", "repository"] {
            let line = format!("\n{inherited}.workspace = true\n");
            // A package whose dependencies need a newer Rust has its own `rust-version`.
            let is_newer = inherited == "rust-version" && value(&manifest, inherited).is_some();
            assert!(
                is_newer || manifest.contains(&line),
                "{directory}: {inherited} is not the workspace's"
            );
        }
        let description = value(&manifest, "description").expect("a package says what it is");
        assert!((20..=120).contains(&description.len()), "{directory}: {description}");
        let keywords = list(&manifest, "keywords");
        assert!((3..=KEYWORDS_MAX).contains(&keywords.len()), "{directory}: {keywords:?}");
        assert!(keywords.iter().all(|word| is_keyword(word)), "{directory}: {keywords:?}");
        let categories = list(&manifest, "categories");
        assert!((1..=CATEGORIES_MAX).contains(&categories.len()), "{directory}: {categories:?}");
        assert!(
            categories.iter().all(|slug| CATEGORIES.contains(slug)),
            "{directory}: {categories:?}"
        );
        // Without this, docs.rs leaves out the items of features.
        let pages = "\n[package.metadata.docs.rs]\nall-features = true\n";
        assert!(manifest.contains(pages), "{directory}: docs.rs is not told to turn features on");
    }
}

#[test]
fn every_package_is_listed_where_packages_are() {
    let (readme, workspace) = (read("README.md"), read("Cargo.toml"));
    for directory in published() {
        assert!(
            CRATES.contains(&&*directory),
            "tests/book/front_pages.rs does not know {directory}"
        );
        let name = if directory == "." { "rotor" } else { &directory };
        let row = if directory == "." {
            "\n| `rotor` |".into()
        } else {
            format!("\n| [`{name}`]({name}/) |")
        };
        assert!(readme.contains(&row), "the README's table of parts lacks {name}");
        let path = format!("path = \"{directory}\"");
        // It needs a version: without one, no package that depends on it can be published.
        let is_named = workspace.lines().any(|line| {
            line.starts_with(&format!("{name} = {{ version = \"")) && line.contains(&path)
        });
        assert!(
            is_named,
            "[workspace.dependencies] does not name {name} with a version and {path}"
        );
        let api = root().join(format!("api/{name}.txt"));
        assert!(
            api.exists(),
            "{name}: its public API is not recorded; tests/long/public-api --write {name}"
        );
    }
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        assert!(
            root().join(licence).exists(),
            "{licence}, which each package gets when it is published"
        );
    }
}

#[test]
fn keywords_are_checked_by_the_rules_of_the_registry() {
    for (word, is_one) in [
        ("event-loop", true),
        ("http2", true),
        ("state-machines-in-op", true),
        ("state-machines-in-one", false),
        ("two words", false),
        ("-o", false),
        ("", false),
    ] {
        assert_eq!(is_keyword(word), is_one, "{word:?}");
    }
}

/// A package that builds with the oldest Rust must not depend on one that does not. Comparing names
/// is enough: no dependency with a newer Rust is renamed.
#[test]
fn a_package_requires_the_rust_version_of_its_dependencies() {
    let members = members();
    let workspace = read("Cargo.toml");
    let oldest = value(&workspace, "rust-version");
    let own = |manifest: &str| {
        value(manifest, "rust-version").filter(|own| Some(*own) != oldest).map(str::to_string)
    };
    let newer: Vec<_> = members.iter().filter(|(_, manifest)| own(manifest).is_some()).collect();
    assert!(newer.len() >= 3, "{newer:?}");
    for (directory, manifest) in &members {
        for (_, needed) in &newer {
            let name = value(needed, "name").expect("a package has a name").trim_matches('"');
            let needs = manifest
                .lines()
                .filter_map(|line| line.strip_prefix(name))
                .any(|rest| rest.starts_with([' ', '.']));
            assert!(
                !needs || own(manifest) >= own(needed),
                "{directory} depends on {name}, which asks for {:?}",
                own(needed)
            );
        }
    }
}
