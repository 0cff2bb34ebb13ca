//! The structure of the sources: there are no cycles between the files of a crate, third-party
//! packages are named only in their layer, and the names of tests say what they show.
//!
//! The sources are read by a small parser. It knows comments, strings, `mod`, `use` and paths, but
//! no types. An arrow goes from a file that names an item to the file that defines it, through all
//! re-exports. Code that is compiled only for tests is left out.
//!
//! A method call names no file, so it makes no arrow. The files among which the `impl` blocks of
//! one type are spread (those of its folder) count as one unit; a cycle of calls among them is not
//! found.

mod arrows;
mod cycles;
mod modules;
mod tables;
mod test_names;
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use self::cycles::{Cycle, cycles};
use self::modules::Crate;
use self::test_names::{objection, test_names};
use self::tokens::{Token, tokens};

/// The files that may name a third-party package, and that must do so. Paths are relative to the
/// crate's `src`; a trailing slash means a whole folder.
const PLACES: [(&str, &str, &[&str]); 7] = [
    // mio's types stay in its backend, below the sockets, and in the one module that exposes them
    // to users.
    ("mio", "rotor-core", &["mio_backend.rs", "foreign.rs", "net/kernel/", "net/registered.rs"]),
    // The tests of the request lexer compare it with httparse.
    (
        "httparse",
        "rotor-http",
        &["h1/field_lines.rs", "h1/response_lexer.rs", "h1/request_lexer.rs"],
    ),
    // Users write to its registry, so it is public at the top; nothing below names it.
    ("prometheus_client", "rotor-metrics", &["collector.rs", "families.rs", "server.rs", "lib.rs"]),
    ("tracing", "rotor-tracing", &["lib.rs", "machine.rs", "spans.rs", "trace.rs"]),
    ("io_uring", "rotor-uring", &["ring/"]),
    // smoltcp's types stay in the stack. A kernel device is opened with it.
    ("smoltcp", "rotor-smoltcp", &["stack/", "device/kernel.rs"]),
    // A benchmark compares our buffers with netbuf's; no source uses it.
    ("netbuf", "rotor-stream", &[]),
];

/// Folders with tests that belong to no crate of [`crates`].
const OTHER_TESTS: [&str; 4] = ["tests", "examples", "benches", "loom"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates of the workspace, read from its manifest, so that a new crate is checked from the
/// start.
fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has one");
    let (_, members) = manifest.split_once("members = [").expect("the workspace has members");
    let (members, _) = members.split_once(']').expect("their list ends");
    let names = members.split('"').filter(|name| name.starts_with("rotor-"));
    let names: Vec<String> = names.map(str::to_string).collect();
    assert!(names.len() >= 17, "{names:?}");
    names
}

/// The source folder of a crate.
fn folder(name: &str) -> PathBuf {
    root().join(name).join("src")
}

fn read_crate(name: &str) -> Crate {
    let folder = folder(name);
    Crate::read(&|path| fs::read_to_string(folder.join(path)).ok())
}

/// Returns the cycles, the number of arrows and the number of files.
fn cycles_of(name: &str) -> (Vec<Cycle>, usize, usize) {
    let read = read_crate(name);
    let (files, arrows) = (read.modules.len(), read.arrows());
    (cycles(&arrows), arrows.values().map(|tos| tos.len()).sum(), files)
}

#[test]
fn no_crate_has_a_dependency_cycle_between_its_files() {
    let mut found = Vec::new();
    for name in &crates() {
        let (cycles, arrows, files) = cycles_of(name);
        assert!(2 * arrows >= files, "{name}: only {arrows} arrows of {files} files were read");
        found.extend(cycles.iter().map(|cycle| format!("{name}/src: {cycle}")));
    }
    assert!(found.is_empty(), "files that need each other:\n{}", found.join("\n"));
}

/// A file that no `mod` declares is not compiled, and a file that the parser does not find is not
/// checked.
#[test]
fn every_file_is_a_parsed_module_or_a_test_file() {
    for name in &crates() {
        let crate_ = read_crate(name);
        assert!(crate_.without_file.is_empty(), "{name}/src: {:?}", crate_.without_file);
        let mut known: BTreeSet<String> =
            crate_.modules.into_iter().map(|module| module.file).collect();
        known.extend(crate_.test_files);
        let there: BTreeSet<String> = sources(name).into_iter().map(|(path, _)| path).collect();
        assert_eq!(known, there, "{name}/src");
    }
}

#[test]
fn third_party_packages_are_used_only_in_their_layers() {
    for (package, owner, places) in PLACES {
        let mut named = BTreeSet::new();
        for name in &crates() {
            for (path, text) in sources(name) {
                if names_package(&tokens(&text), package) {
                    let place = places.iter().find(|place| path.starts_with(*place));
                    let place = place.filter(|_| name == owner);
                    named.insert(*place.unwrap_or_else(|| panic!("{name}/src/{path}: {package}")));
                }
            }
        }
        assert_eq!(named, places.iter().copied().collect(), "{package}: the others have moved");
    }
}

/// Only one folder has unsafe code; its crate has a table that justifies each file.
#[test]
fn unsafe_code_is_only_where_the_table_of_its_crate_lists_it() {
    let mut counted = BTreeSet::new();
    for name in &crates() {
        for (path, text) in sources(name) {
            let all = tokens(&text);
            let is_unsafe = |at: usize| {
                all[at] == Token::Name("unsafe")
                    && matches!(all.get(at + 1), Some(Token::Mark('{') | Token::Name(_)))
            };
            // Without its tests, which come last unless they are a file of their own.
            let tests = [Token::Name("mod"), Token::Name("tests"), Token::Mark('{')];
            let end = all.windows(3).position(|three| three == tests);
            let count = (0..end.unwrap_or(all.len())).filter(|at| is_unsafe(*at)).count();
            if count > 0 {
                assert_eq!(name, "rotor-uring", "{name}/src/{path} has unsafe code");
                counted.insert((path, count));
            }
        }
    }
    let page = fs::read_to_string(folder("rotor-uring").join("lib.rs")).expect("it is there");
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("//! | `")?.split(" | ").collect();
        let path = format!("ring/{}", cells[0].trim_end_matches('`'));
        Some((path, cells.get(1)?.parse().ok()?))
    });
    assert_eq!(counted, rows.collect(), "the table in rotor-uring/src/lib.rs");
}

#[test]
fn every_test_is_named_by_a_sentence_with_a_subject() {
    let mut count = 0;
    let mut rejected = Vec::new();
    let folders = crates().into_iter().chain(OTHER_TESTS.map(str::to_string));
    for folder in folders.map(|name| root().join(name)) {
        for (path, text) in files_below(&folder) {
            for name in test_names(&text) {
                count += 1;
                if let Some(why) = objection(&name) {
                    rejected.push(format!("{}/{path}: `{name}` {why}", folder.display()));
                }
            }
        }
    }
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
    assert!(count > 3_000, "only {count} tests were found");
}

/// Whether a package is imported, or a path begins with it.
fn names_package(tokens: &[Token<'_>], package: &str) -> bool {
    let mut is_import = false;
    tokens.iter().enumerate().any(|(at, token)| {
        match token {
            Token::Name("use" | "extern") => is_import = true,
            Token::Mark(';') => is_import = false,
            _ => {}
        }
        let begins_path = tokens.get(at + 1) == Some(&Token::PathSeparator);
        *token == Token::Name(package) && (is_import || begins_path)
    })
}

#[test]
fn every_way_to_name_a_package_is_recognized() {
    for (source, expected) in [
        ("mio::Token(1)", true),
        ("fn f(_: &::mio::Token) {}", true),
        ("use mio::Token;", true),
        ("use mio;", true),
        ("pub use mio as other;", true),
        ("extern crate mio;", true),
        ("use {std::fmt, mio::net};", true),
        ("use std::fmt; fn f(mio: u8) { g(mio) }", false),
        ("// mio::Token\nconst A: &str = \"mio::Token\";", false),
        ("use mio_backend::Mio; fn f() { other::mio() }", false),
    ] {
        assert_eq!(names_package(&tokens(source), "mio"), expected, "{source}");
    }
}

/// Returns the files below a crate's `src`, and their contents.
fn sources(name: &str) -> Vec<(String, String)> {
    files_below(&folder(name))
}

/// Returns the Rust files below a folder, by their paths in it, and their contents. Folders of
/// build results are left out.
fn files_below(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let path = path.strip_prefix(root).expect("it is below").display().to_string();
                found.push((path, text));
            }
        }
    }
    found
}
