//! Checks that the examples of items and the programs of chapters name the crates as users who
//! depend on `rotor` do.

use crate::documents::{files, read};
use crate::front_pages::CRATES;

/// The crates that the facade re-exports, and their names in it.
const IN_THE_FACADE: [(&str, &str); 8] = [
    ("rotor_core::", "rotor::"),
    ("rotor_stream::", "rotor::stream::"),
    ("rotor_http::", "rotor::http::"),
    ("rotor_dns::", "rotor::dns::"),
    ("rotor_body::", "rotor::body::"),
    ("rotor_tls::", "rotor::tls::"),
    ("rotor_websocket::", "rotor::websocket::"),
    ("rotor_proxy_protocol::", "rotor::proxy_protocol::"),
];

/// The visible lines of the programs in a text.
fn shown(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_fenced, mut is_program) = (false, false);
    text.lines().map(str::trim).filter(move |line| {
        if let Some(kind) = line.strip_prefix("```") {
            is_fenced = !is_fenced;
            is_program = is_fenced && !matches!(kind, "text" | "toml" | "sh");
        }
        is_program && *line != "#" && !line.starts_with("# ")
    })
}

/// Lines that name a crate in a way that works only for users who depend on that crate directly.
fn strangers(text: &str) -> Vec<&str> {
    shown(text).filter(|line| IN_THE_FACADE.iter().any(|(name, _)| line.contains(name))).collect()
}

/// The documentation comments of a source.
fn documentation(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let lines =
        lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    lines.map(|line| line.to_string() + "\n").collect()
}

#[test]
fn examples_import_rotor_and_not_the_crates_below() {
    let mut found = Vec::new();
    for directory in CRATES.iter().filter(|directory| directory.starts_with("rotor")) {
        for path in files(&format!("{directory}/src"), ".rs") {
            let text = documentation(&read(&path));
            found.extend(strangers(&text).iter().map(|line| format!("{}: {line}", path.display())));
        }
    }
    for path in files("doc/guide", ".md") {
        found.extend(
            strangers(&read(&path)).iter().map(|line| format!("{}: {line}", path.display())),
        );
    }
    assert!(
        found.is_empty(),
        "these show a crate that users of `rotor` do not depend on; write {IN_THE_FACADE:?}, below a hidden line \
         `# use rotor_core as rotor;` or `# mod rotor {{ pub use rotor_core::*; pub use rotor_stream as stream; }}`, \
         see doc/decisions/0078:\n{}",
        found.join("\n")
    );
}

#[test]
fn hidden_lines_and_text_blocks_are_not_checked() {
    for (text, expected) in [
        ("```\nuse rotor_core::Loop;\n```", 1),
        ("```rust,no_run\n    rotor_http::Status::OK\n```\nof `rotor_core::Loop`", 1),
        ("```\n# use rotor_core::Loop;\n#\nuse rotor::Loop;\n```", 0),
        ("```\n#[derive(Debug)] struct A(rotor_core::Token);\n```", 1),
        ("```text\nrotor_core::Loop\n```\n```\nrotor_sim::check(f)\n```", 0),
    ] {
        assert_eq!(strangers(text).len(), expected, "{text}");
    }
}
