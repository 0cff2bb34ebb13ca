//! The structure of the sources: no circle between the files of a crate, and mio named where the
//! layers say.
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
use self::tokens::{Token, tokens};

const CRATES: [&str; 5] = ["rotor-core", "rotor-stream", "rotor-http", "rotor-dns", "rotor-sim"];

fn circles_of(name: &str) -> (Vec<Circle>, usize) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let crate_ = Crate::read(&|path| fs::read_to_string(sources.join(path)).ok());
    let arrows = crate_.arrows();
    (circles(&arrows), arrows.values().map(|tos| tos.len()).sum())
}

#[test]
fn no_crate_has_a_circle_between_its_files() {
    let mut found = Vec::new();
    for name in CRATES {
        let (circles, arrows) = circles_of(name);
        assert!(arrows > 10, "{name}: only {arrows} arrows were read");
        found.extend(circles.iter().map(|circle| format!("{name}/src: {circle}")));
    }
    assert!(found.is_empty(), "files that need each other:\n{}", found.join("\n"));
}

/// mio's types stay where the layers say: in its backend, below the sockets, and in the one module
/// that shows them to users.
#[test]
fn mio_is_named_in_its_backend_the_sockets_and_the_module_of_foreign_sources() {
    let may = ["mio_backend.rs", "foreign.rs", "net/kernel/", "net/registered.rs"];
    let mut named = 0;
    for name in CRATES {
        for (path, text) in sources(name) {
            let names_it = tokens(&text)
                .windows(2)
                .any(|pair| pair == [Token::Name("mio"), Token::PathSeparator]);
            let is_there = name == "rotor-core" && may.iter().any(|place| path.starts_with(place));
            assert!(is_there || !names_it, "{name}/src/{path} names mio");
            named += u32::from(names_it);
        }
    }
    assert!(named >= 4, "only {named} files name mio: the others have moved");
}

/// The files of a crate, below its `src`, and what is in them.
fn sources(name: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let path = path.strip_prefix(&root).expect("it is below").display().to_string();
                found.push((path, text));
            }
        }
    }
    found
}
