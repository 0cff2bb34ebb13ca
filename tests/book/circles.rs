//! The sources: that no file of a crate needs another one that needs it, and where mio is named.
//!
//! A file needs what it imports and what it names by a path that begins with `crate`, `self`,
//! `super` or a module below it. A re-export is followed to the file that has the item, and makes
//! nobody need anything; tests inside a file and documentation do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use crate::documents::{files, read};

const CRATES: [&str; 5] = ["rotor-core", "rotor-stream", "rotor-http", "rotor-dns", "rotor-sim"];

/// Circles that are still there, by the files in them, without `.rs` and `/mod.rs`. None may be added.
const KNOWN: [(&str, &[&str]); 5] = [
    ("rotor-core", &["event", "machine"]),
    ("rotor-stream", &["accept", "accept::listening"]),
    ("rotor-stream", &["testing::memory", "testing::socket"]),
    ("rotor-http", &["client::pool", "client::pool::manager", "client::pool::member"]),
    ("rotor-dns", &["cache", "desk", "error", "exchange", "held", "lookup", "message", "resolver"]),
];

type Path = Vec<String>;
type Tokens = Peekable<IntoIter<String>>;

/// What a file says of others.
#[derive(Default)]
struct Module {
    needs: Vec<Path>,
    reexports: BTreeMap<String, Path>,
}

type Modules = BTreeMap<Path, Module>;

#[test]
fn no_file_of_a_crate_needs_one_that_needs_it() {
    for name in CRATES {
        let sources = files(&format!("{name}/src"), ".rs");
        let sources = sources.iter().map(|path| {
            let path = path.display().to_string();
            let module = path.strip_prefix(&format!("{name}/src/")).expect("it is in there");
            (module_path(module), read(&path))
        });
        for circle in circles(&modules(sources.collect())) {
            let is_known = KNOWN.iter().any(|(of, known)| {
                *of == name && circle.iter().all(|file| known.contains(&file.as_str()))
            });
            assert!(is_known, "{name}: files need each other: {circle:?}");
        }
    }
}

#[test]
fn circles_are_found_through_imports_paths_and_reexports() {
    let circles_of = |sources: &[(&str, &str)]| {
        let sources = sources.iter().map(|(path, text)| (module_path(path), (*text).to_string()));
        circles(&modules(sources.collect()))
    };
    let root = "mod a; mod b; pub use a::A; pub use self::b::{B, other as Other};";
    let chain = [("lib.rs", root), ("a.rs", "use crate::B;"), ("b.rs", "// use crate::A;")];
    assert!(circles_of(&chain).is_empty());
    for back in [
        "use crate::A;",
        "use crate::{a::{self, A}, Other};",
        "fn f() { super::a::g() }",
        "fn f() -> crate::a::A { todo!() }",
    ] {
        let both = circles_of(&[("lib.rs", root), ("a.rs", "use crate::B;"), ("b.rs", back)]);
        assert_eq!(both, [["a", "b"]], "{back}");
    }
    let test = "#[cfg(test)]\nmod tests {\n    use crate::A;\n}\n";
    assert!(circles_of(&[("lib.rs", root), ("a.rs", "use crate::B;"), ("b.rs", test)]).is_empty());
    let below = [("a/mod.rs", "mod c; fn f() { c::g() }"), ("a/c.rs", "use super::A;")];
    assert_eq!(circles_of(&below), [["a", "a::c"]]);
}

/// mio's types stay where the layers say: in its backend, below the sockets, and in the one module that
/// shows them to users.
#[test]
fn mio_is_named_in_its_backend_the_sockets_and_the_module_of_foreign_sources() {
    for path in CRATES.iter().flat_map(|name| files(&format!("{name}/src"), ".rs")) {
        let path = path.display().to_string();
        let tokens = tokens(&without_tests(&read(&path)));
        let names_it = tokens.windows(2).any(|pair| pair == ["mio", "::"]);
        let may = ["mio_backend.rs", "foreign.rs", "net/kernel/", "net/registered.rs"];
        let may = may.iter().any(|place| path.starts_with(&format!("rotor-core/src/{place}")));
        assert!(may || !names_it, "{path} names mio");
    }
}

/// `a/b.rs` and `a/b/mod.rs` are `[a, b]`.
fn module_path(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_string).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib")) {
        path.pop();
    }
    path
}

fn modules(sources: BTreeMap<Path, String>) -> Modules {
    let names: BTreeSet<Path> = sources.keys().cloned().collect();
    let module = |(path, text): (Path, String)| {
        let module = parse(&text, &path, &names);
        (path, module)
    };
    sources.into_iter().map(module).collect()
}

/// Files that can be reached from each other, by each group.
fn circles(modules: &Modules) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Path, BTreeSet<Path>> =
        modules.keys().map(|path| (path, reachable(path, modules))).collect();
    let mut circles = BTreeSet::new();
    for (path, others) in reached.iter().filter(|(path, others)| others.contains(**path)) {
        let meet = |other: &&Path| reached[*other].contains(*path);
        let circle = others.iter().filter(meet).map(|path| path.join("::")).collect::<Vec<_>>();
        circles.insert(circle);
    }
    circles.into_iter().collect()
}

fn reachable(from: &Path, modules: &Modules) -> BTreeSet<Path> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(path) = next.pop() {
        for need in &modules[&path].needs {
            let needed = file_of(need, modules);
            if needed.as_ref() != Some(&path) && needed.iter().all(|file| !reached.contains(file)) {
                reached.extend(needed.clone());
                next.extend(needed);
            }
        }
    }
    reached
}

/// The file that has what a path from the root names.
fn file_of(path: &[String], modules: &Modules) -> Option<Path> {
    let len = (0..=path.len()).rev().find(|len| modules.contains_key(&path[..*len]))?;
    let (file, rest) = path.split_at(len);
    let reexported = rest.first().and_then(|name| modules[file].reexports.get(name));
    match reexported {
        Some(target) => file_of(&[target, &rest[1..]].concat(), modules),
        None => Some(file.to_vec()),
    }
}

fn parse(text: &str, own: &Path, names: &BTreeSet<Path>) -> Module {
    let mut module = Module::default();
    let mut tokens = tokens(&without_tests(text)).into_iter().peekable();
    let mut before = String::from(";");
    while let Some(token) = tokens.next() {
        let is_bound = tokens.peek().is_some_and(|next| next == "<"); // `use<'a>`, of a type
        if token == "use" && !is_bound {
            let mut paths = Vec::new();
            use_tree(&mut tokens, Vec::new(), &mut paths);
            for (path, name) in paths {
                let Some(path) = from_root(path, own, names) else { continue };
                if matches!(before.as_str(), "pub" | ")") {
                    module.reexports.insert(name, path);
                } else {
                    module.needs.push(path);
                }
            }
        } else if is_name(&token) && before != "::" {
            let mut path = vec![token.clone()];
            while tokens.next_if_eq("::").is_some() {
                path.extend(tokens.next_if(|next| is_name(next)));
            }
            let is_path = path.len() > 1;
            module.needs.extend(from_root(path, own, names).filter(|_| is_path));
        }
        before = token;
    }
    module
}

/// The paths and names of what stands behind `use`.
fn use_tree(tokens: &mut Tokens, mut path: Path, paths: &mut Vec<(Path, String)>) {
    while let Some(token) = tokens.next_if(|next| !matches!(next.as_str(), "," | "}" | ";")) {
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.next_if_eq("}").is_none() {
                    use_tree(tokens, path.clone(), paths);
                    tokens.next_if_eq(",");
                }
                return;
            }
            "as" => {
                paths.extend(tokens.next().map(|name| (path, name)));
                return;
            }
            "self" if !path.is_empty() => {}
            _ => path.push(token),
        }
    }
    paths.extend(path.last().cloned().map(|name| (path, name)));
}

/// A path as it is from the root of the crate; `None` if it leads into another crate.
fn from_root(mut path: Path, own: &Path, names: &BTreeSet<Path>) -> Option<Path> {
    let mut base = own.clone();
    match path.first()?.as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            while path.get(1).is_some_and(|next| next == "super") {
                path.remove(0);
                base.pop();
            }
            base.pop();
        }
        child => {
            base.push(child.to_string());
            if !names.contains(&base) {
                return None;
            }
        }
    }
    path.remove(0);
    Some([base, path].concat())
}

/// The text without comments, and without the modules of tests that stand in it.
fn without_tests(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        let is_test = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if is_test {
            lines.by_ref().find(|line| *line == "}");
        } else {
            kept += line.split("//").next().unwrap_or(line);
            kept.push('\n');
        }
    }
    kept
}

/// Names, `::`, and each other sign by itself.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_') {
            Some(0) if rest.starts_with("::") => 2,
            Some(0) => first.len_utf8(),
            Some(len) => len,
            None => rest.len(),
        };
        let (token, behind) = rest.split_at(len);
        tokens.push(token.to_string());
        rest = behind.trim_start();
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
