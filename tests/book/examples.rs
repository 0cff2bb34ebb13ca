//! The map of the examples: a single list that has all of them.

use std::fs;

use crate::documents::{read, root};

fn examples() -> Vec<String> {
    let directories = fs::read_dir(root().join("examples")).expect("there are examples");
    let directories = directories.map(|entry| entry.expect("it can be read").path());
    let mut names: Vec<String> = directories
        .filter(|path| path.join("main.rs").exists())
        .map(|path| path.file_name().expect("it has a name").display().to_string())
        .collect();
    names.sort();
    names
}

/// The examples of the package `rotor`.
const OF_ROTOR: [&str; 2] = ["hello_world_server", "threaded_hello_world"];

/// The cargo arguments that select the package of an example.
fn package(example: &str) -> &'static str {
    match example {
        // The default.
        example if OF_ROTOR.contains(&example) => "cargo run --release --example ",
        // It has its own package, since it needs a newer Rust.
        "user_space_tcp" => "-p rotor-user-space-tcp ",
        _ => "-p rotor-examples ",
    }
}

#[test]
fn the_map_lists_exactly_the_examples() {
    let map = read("examples/README.md");
    let examples = examples();
    assert!(examples.len() >= 18, "{examples:?}");
    for name in &examples {
        assert!(
            map.contains(&format!("[`{name}`]({name}/")),
            "examples/README.md does not list {name}"
        );
    }
    for (at, _) in map.match_indices("[`") {
        let name = map[at + 2..].split('`').next().expect("there is always a first part");
        assert!(examples.iter().any(|example| example == name), "there is no example {name}");
    }
}

/// A second list would become outdated.
#[test]
fn the_readme_refers_to_the_map_for_the_list() {
    let readme = read("README.md");
    let listed: Vec<_> =
        examples().into_iter().filter(|name| readme.contains(&format!("[`{name}`]"))).collect();
    assert!(readme.contains("](examples/README.md)"));
    assert!(listed.is_empty(), "the README lists {listed:?}");
}

#[test]
fn every_example_begins_with_how_to_run_it() {
    for name in examples() {
        let main = read(format!("examples/{name}/main.rs"));
        let head: Vec<&str> = main.lines().take_while(|line| line.starts_with("//!")).collect();
        let runs = format!("--example {name}");
        for line in head.iter().filter(|line| line.contains("cargo run")) {
            let others =
                line.split_once("--example ").and_then(|(_, rest)| rest.split_whitespace().next());
            let package = package(others.unwrap_or_default());
            let is_default = !package.starts_with("-p");
            assert_ne!(is_default, line.contains(" -p "), "{name}: {line}");
            assert!(is_default || line.contains(package), "{name}: {line}");
        }
        assert!(
            head.iter().any(|line| line.contains("cargo run") && line.contains(&runs)),
            "{name}: {head:#?}"
        );
    }
}

/// Whoever starts a server must learn how to talk to it.
#[test]
fn every_example_that_listens_shows_how_to_talk_to_it() {
    let mut servers = 0;
    for name in examples() {
        let main = read(format!("examples/{name}/main.rs"));
        if ["listening on", "Serve::new(", "serve("].iter().any(|sign| main.contains(sign)) {
            servers += 1;
            let mut head = main.lines().take_while(|line| line.starts_with("//!"));
            let is_told = |line: &str| {
                ["try", "curl ", "# in another terminal"]
                    .iter()
                    .any(|it| line.trim_start_matches("//! ").starts_with(it))
            };
            assert!(head.any(is_told), "{name}: how is it talked to?");
        }
    }
    assert!(servers >= 30, "{servers} servers");
}

/// Whether the variable `ROTOR_BACKEND` chooses the loop of an example.
fn chooses_its_loop(example: &str) -> bool {
    let main = read(format!("examples/{example}/main.rs"));
    ["serve_http(", "chosen_", "from_env()"].iter().any(|sign| main.contains(sign))
}

#[test]
fn the_chapter_on_loops_lists_exactly_the_examples_that_stay_on_mio() {
    let chapter = read("doc/guide/which-loop.md");
    let section = chapter.split("\n### The examples\n").nth(1).expect("there is a section");
    let section = section.split("\n## ").next().expect("there is always a first part");
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let listed: String = rows.filter_map(|row| row.split('|').nth(1)).collect();
    for name in examples() {
        let is_listed = listed.contains(&format!("`{name}`"));
        assert_ne!(chooses_its_loop(&name), is_listed, "{name}");
    }
}

#[test]
fn every_example_that_chooses_its_loop_is_tested_on_io_uring() {
    let script = read("tests/long/examples-on-uring");
    let words: Vec<&str> = script.split(|it: char| it.is_whitespace() || it == '"').collect();
    for name in examples().iter().filter(|name| chooses_its_loop(name)) {
        assert!(words.contains(&name.as_str()), "tests/long/examples-on-uring leaves out {name}");
    }
}
