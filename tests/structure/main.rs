//! The structure of the sources: no circle between the files of a crate.
//!
//! The reader is a small one of its own: it knows comments, texts, `mod`, `use` and paths, and
//! nothing of types. An arrow goes from a file that names something to the file that defines it,
//! through whatever re-exports it. What is compiled for tests only is left out.

mod arrows;
mod circles;
mod modules;
mod tables;
mod tokens;

use std::fs;
use std::path::Path;

use self::circles::{Circle, circles};
use self::modules::Crate;

const CRATES: [&str; 5] = ["rotor-core", "rotor-stream", "rotor-http", "rotor-dns", "rotor-sim"];

/// Circles that are known and to be mended, by crate; nothing is to be added.
const KNOWN: &[(&str, &[&str])] = &[
    ("rotor-core", &["event.rs", "machine.rs"]),
    ("rotor-core", &["scope.rs", "service.rs"]),
    ("rotor-stream", &["accept/listening.rs", "accept/mod.rs"]),
    ("rotor-stream", &["testing/memory.rs", "testing/socket.rs"]),
    ("rotor-http", &["client/mod.rs", "client/next.rs"]),
    ("rotor-http", &["client/pool/manager.rs", "client/pool/member.rs", "client/pool/mod.rs"]),
    ("rotor-http", &["server/mod.rs", "server/next.rs", "server/response.rs"]),
    (
        "rotor-dns",
        &[
            "cache.rs",
            "desk.rs",
            "error.rs",
            "exchange.rs",
            "held.rs",
            "lookup.rs",
            "message.rs",
            "resolver.rs",
        ],
    ),
    (
        "rotor-sim",
        &["backend.rs", "strikes.rs", "world/draining.rs", "world/host_state.rs", "world/mod.rs"],
    ),
];

fn circles_of(name: &str) -> (Vec<Circle>, usize) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let crate_ = Crate::read(&|path| fs::read_to_string(sources.join(path)).ok());
    let arrows = crate_.arrows();
    (circles(&arrows), arrows.values().map(|tos| tos.len()).sum())
}

fn is_known(name: &str, circle: &Circle) -> bool {
    KNOWN.iter().any(|(known, files)| {
        *known == name && circle.files.iter().all(|file| files.contains(&file.as_str()))
    })
}

#[test]
fn no_crate_has_a_circle_between_its_files() {
    let mut found = Vec::new();
    for name in CRATES {
        let (circles, arrows) = circles_of(name);
        assert!(arrows > 10, "{name}: only {arrows} arrows were read");
        let new = circles.iter().filter(|circle| !is_known(name, circle));
        found.extend(new.map(|circle| format!("{name}/src: {circle}")));
    }
    assert!(found.is_empty(), "files that need each other:\n{}", found.join("\n"));
}
