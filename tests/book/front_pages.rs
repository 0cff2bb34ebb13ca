//! Checks that the front page of each crate has what readers of docs.rs look for.

use crate::documents::{has_file_of_repository, read};
use crate::links::targets;

pub(crate) const CRATES: [&str; 19] = [
    ".",
    "rotor-core",
    "rotor-stream",
    "rotor-body",
    "rotor-http",
    "rotor-websocket",
    "rotor-dns",
    "rotor-tls",
    "rotor-proxy-protocol",
    "rotor-async",
    "rotor-tower",
    "rotor-service",
    "rotor-metrics",
    "rotor-tracing",
    "rotor-inspect",
    "rotor-sim",
    "rotor-uring",
    "rotor-smoltcp",
    "benches/runner",
];

/// The crate documentation at the top of `lib.rs`.
fn front_page(directory: &str) -> String {
    let source = read(format!("{directory}/src/lib.rs"));
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    page.map(|line| line.trim_start().to_string() + "\n").collect()
}

/// The minimum Rust version of a package: the workspace's, or one of its own.
fn rust_version(directory: &str) -> String {
    let named = |manifest: String| {
        let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
        version.map(|version| version.trim_matches('"').to_string())
    };
    let own = named(read(format!("{directory}/Cargo.toml")));
    own.or_else(|| named(read("Cargo.toml"))).expect("the workspace says it")
}

#[test]
fn every_front_page_has_a_program_limits_versions_and_a_link_to_the_book() {
    for directory in CRATES {
        let version = format!("Rust {} or later", rust_version(directory));
        let page = front_page(directory);
        for part in [
            "# A program\n",
            "\n```",
            "# Where things are\n",
            "# Limits\n",
            "# Versions and features\n",
            "# The book\n",
        ] {
            assert!(page.contains(part), "{directory}: its front page lacks {part:?}");
        }
        assert!(page.contains(&version), "{directory}: its front page does not say {version:?}");
        if directory.starts_with("rotor") {
            // `.ci/release-tree` replaces the URL by a version.
            let line =
                format!("\n{directory} = {{ git = \"https://github.com/rotor-rs/rotor\" }}\n");
            assert!(
                page.contains(&line),
                "{directory}: its front page does not say how to depend on it"
            );
        }
        let manifest = read(format!("{directory}/Cargo.toml"));
        let features = features(&manifest);
        let is_said_to_have_none = page.contains("There are no features to choose.");
        assert!(features.is_empty() || !is_said_to_have_none, "{directory}: {features:?}");
        for feature in features {
            assert!(
                page.contains(&format!("* `{feature}`: ")),
                "{directory}: its front page does not say what {feature} is"
            );
        }
    }
    let version = format!("Rust {} or later", rust_version("."));
    assert!(read("README.md").contains(&version), "the README does not say {version:?}");
}

#[test]
fn the_readme_has_a_command_for_the_server_and_one_for_the_tests() {
    let readme = read("README.md");
    let commands: Vec<_> = readme.lines().filter_map(|line| line.split("  ").next()).collect();
    for command in ["cargo run --release --example hello_world_server", "cargo test --workspace"] {
        assert!(commands.contains(&command), "the README does not say {command:?}");
    }
}

/// The names in the `[features]` table of a manifest.
fn features(manifest: &str) -> Vec<&str> {
    let Some((_, table)) = manifest.split_once("[features]\n") else { return Vec::new() };
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect()
}

#[test]
fn every_repository_link_of_a_front_page_resolves() {
    let mut checked = 0;
    for directory in CRATES {
        let page = front_page(directory);
        for target in targets(&page) {
            if let Some(is_there) = has_file_of_repository(target) {
                assert!(is_there, "{directory}: {target}");
                checked += 1;
            }
        }
    }
    assert!(checked > CRATES.len(), "only {checked} were found");
}
