//! Tables of small crates that check the search for cycles: it must find each cycle, and no others.

use std::collections::BTreeMap;

use crate::cycles::{Cycle, cycles};
use crate::modules::Crate;

/// The files of a crate: their paths relative to `src`, and their contents.
type Files = &'static [(&'static str, &'static str)];

/// A crate with these files.
fn crate_of(files: &[(&str, &str)]) -> Crate {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    Crate::read(&|path| files.get(path).map(|text| text.to_string()))
}

/// The cycles of a crate with these files.
fn cycles_in(files: &[(&str, &str)]) -> Vec<Cycle> {
    cycles(&crate_of(files).arrows())
}

/// A way to write a cycle of two files, and the two files.
const NOTATIONS: &[(&str, Files)] = &[
    (
        "imports",
        &[("a.rs", "use super::b::B; pub struct A;"), ("b.rs", "use crate::a::A; pub struct B;")],
    ),
    (
        "paths",
        &[("a.rs", "pub fn a() { super::b::b() }"), ("b.rs", "pub fn b() { crate::a::a() }")],
    ),
    (
        "an imported module",
        &[
            ("a.rs", "use super::b; pub fn a() { b::b() }"),
            ("b.rs", "use crate::a::a; pub fn b() {}"),
        ],
    ),
    (
        "groups",
        &[
            ("a.rs", "use crate::{b::{self, B}, c}; pub struct A;"),
            ("b.rs", "use std::fmt; use super::a::{A as Other}; pub struct B;"),
        ],
    ),
    (
        "an import in a function",
        &[
            ("a.rs", "pub fn a() { use super::b::b; b() }"),
            ("b.rs", "use super::a::a; pub fn b() {}"),
        ],
    ),
    (
        "types and bounds",
        &[
            ("a.rs", "pub trait A { fn a(_: &super::b::B); }"),
            ("b.rs", "pub struct B; impl<T: crate::a::A> From<T> for B {}"),
        ],
    ),
    (
        "a macro's items",
        &[
            ("a.rs", "quick_error! { pub enum A {} } use super::b::B;"),
            ("b.rs", "use super::a::A; pub struct B;"),
        ],
    ),
    (
        "inside a macro",
        &[
            ("a.rs", "macro_rules! a { () => { $crate::b::B } }  pub struct A;"),
            ("b.rs", "use super::a::A; pub struct B;"),
        ],
    ),
    (
        "all names",
        &[("a.rs", "use super::b::*; pub struct A;"), ("b.rs", "use super::a::A; pub struct B;")],
    ),
    (
        "an inline module",
        &[
            ("a.rs", "mod inner { use super::super::b::B; } pub struct A;"),
            ("b.rs", "use super::a::A; pub struct B;"),
        ],
    ),
    (
        "a name for a trait that is not named",
        &[
            ("a.rs", "use super::b::B as _; pub struct A;"),
            ("b.rs", "use super::a::A; pub trait B {}"),
        ],
    ),
];

#[test]
fn a_cycle_is_detected_in_every_notation() {
    for (case, files) in NOTATIONS {
        let files = [&[("lib.rs", "mod a; mod b; mod c;"), ("c.rs", "")], *files].concat();
        let found = cycles_in(&files);
        assert_eq!(found.len(), 1, "{case}: {found:?}");
        assert_eq!(found[0].files.iter().collect::<Vec<_>>(), ["a.rs", "b.rs"], "{case}");
    }
}

/// A crate with a cycle, and the files in the cycle.
const INDIRECT_CYCLES: &[(&str, Files, &[&str])] = &[
    (
        "a re-export of the root",
        &[
            ("lib.rs", "mod a; mod b; pub use self::a::A;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
        ],
        &["a.rs", "b.rs"],
    ),
    (
        "a re-export under another name",
        &[
            ("lib.rs", "mod a; mod b; pub use self::a::A as Z;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::Z; pub struct B;"),
        ],
        &["a.rs", "b.rs"],
    ),
    (
        "all names of a module",
        &[
            ("lib.rs", "mod a; mod b; pub use self::a::*;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
        ],
        &["a.rs", "b.rs"],
    ),
    (
        "a parent's item, and the child's",
        &[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; pub use self::b::B; pub struct A(B);"),
            ("a/b.rs", "use super::A; pub struct B;"),
        ],
        &["a/b.rs", "a/mod.rs"],
    ),
    (
        "the root's item, and a child by its path",
        &[
            ("lib.rs", "mod a; pub struct Root; fn f() { a::f() }"),
            ("a.rs", "use crate::Root; pub fn f() {}"),
        ],
        &["a.rs", "lib.rs"],
    ),
    (
        "an exported macro",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[macro_export] macro_rules! m { () => {} } use super::b::B;"),
            ("b.rs", "crate::m!(); pub struct B;"),
        ],
        &["a.rs", "b.rs"],
    ),
    (
        "a file by its path",
        &[
            ("lib.rs", "#[path = \"odd/place.rs\"] mod a; mod b;"),
            ("odd/place.rs", "use super::b::B; pub struct A;"),
            ("b.rs", "use super::a::A; pub struct B;"),
        ],
        &["b.rs", "odd/place.rs"],
    ),
    (
        "a public file by its path",
        &[
            ("lib.rs", "#[path = \"odd/place.rs\"] pub(crate) mod a; mod b;"),
            ("odd/place.rs", "use super::b::B; pub struct A;"),
            ("b.rs", "use super::a::A; pub struct B;"),
        ],
        &["b.rs", "odd/place.rs"],
    ),
    (
        "three, in a folder beside its file",
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "pub mod b; pub mod c; pub mod d;"),
            ("a/b.rs", "use super::c::C; pub struct B;"),
            ("a/c.rs", "use crate::a::d::D; pub struct C;"),
            ("a/d.rs", "pub struct D(super::b::B);"),
        ],
        &["a/b.rs", "a/c.rs", "a/d.rs"],
    ),
];

#[test]
fn a_cycle_through_re_exports_and_folders_is_detected() {
    for (case, files, cycle) in INDIRECT_CYCLES {
        let found = cycles_in(files);
        assert_eq!(found.len(), 1, "{case}: {found:?}");
        assert!(found[0].files.iter().eq(*cycle), "{case}: {found:?}");
    }
}

#[test]
fn no_cycle_is_reported_for_acyclic_modules() {
    for (case, a, b) in [
        ("one way", "use super::b::B; pub struct A;", "pub struct B;"),
        (
            "a comment",
            "use super::b::B; pub struct A;",
            "// use super::a::A;\n/// [`A`](crate::a::A)\npub struct B;",
        ),
        (
            "a text",
            "use super::b::B; pub struct A;",
            "const T: &str = \"use crate::a::A;\"; pub struct B;",
        ),
        (
            "tests",
            "use super::b::B; pub struct A;",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        ),
        (
            "an import for tests",
            "use super::b::B; pub struct A;",
            "#[cfg(test)] use crate::a::{A, C}; pub struct B;",
        ),
        (
            "a function for tests",
            "use super::b::B; pub struct A;",
            "#[cfg(all(test, unix))] #[allow(x)] pub(crate) fn t<T, U>(_: T) -> U { crate::a::A } pub struct B;",
        ),
        (
            "a field for tests",
            "use super::b::B; pub struct A;",
            "pub struct B { #[cfg(test)] a: crate::a::A, b: u8 }",
        ),
        (
            "a module that is imported and not used",
            "use super::b; pub struct A;",
            "use super::a::A; pub struct B;",
        ),
        (
            "another crate's module of that name",
            "use super::b::B; pub struct A;",
            "use other::a::A; pub struct B;",
        ),
        ("a name in its own file", "pub struct A; mod inner { use super::A; }", "use super::a::A;"),
        (
            "a method of a name",
            "use super::b::B; pub struct A;",
            "pub struct B; fn f(x: X) { x.a::<u8>(); Y::a::A; }",
        ),
        (
            "what a macro repeats",
            "macro_rules! m { ($($x:ident),*) => { use other::{$($x),*}; } } use super::b::B;",
            "pub struct B;",
        ),
        (
            "all names of names that are not known",
            "use super::b::B; fn f() { use Kind::*; use io::Other::*; Vec::new() }",
            "use Kind::*; pub struct B(Vec<u8>);",
        ),
        ("how far a name is seen", "use super::b::B; pub struct A;", "pub(in crate::a) struct B;"),
    ] {
        let found = cycles_in(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found, [], "{case}");
    }
}

#[test]
fn a_module_of_only_declarations_and_re_exports_is_in_no_cycle() {
    let found = cycles_in(&[
        (
            "lib.rs",
            "mod a; mod b; pub use self::a::{A, f}; pub use self::b::B; pub use other::Thing;",
        ),
        // `f` is a function and a module; `a.rs` is the module and defines its type.
        ("a.rs", "mod f; pub use self::f::f; pub struct A;"),
        ("a/f.rs", "use super::A; use crate::Thing; pub fn f() { super::super::B; }"),
        ("b.rs", "use crate::A; pub struct B;"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn modules_without_a_file_and_test_files_are_recorded() {
    let crate_ = crate_of(&[
        (
            "lib.rs",
            "mod a; pub mod gone; #[cfg(test)] mod tests; #[cfg(test)] pub(crate) mod lost;",
        ),
        ("a.rs", "#[cfg(test)] #[path = \"odd.rs\"] mod tests;"),
        ("odd.rs", ""),
        ("tests/mod.rs", "mod inner; #[cfg(test)] mod deep;"),
        ("tests/inner.rs", ""),
        ("tests/deep.rs", "use crate::a::A;"),
        ("other.rs", ""),
    ]);
    let read: Vec<&str> = crate_.modules.iter().map(|module| module.file.as_str()).collect();
    assert_eq!(read, ["lib.rs", "a.rs"]);
    let tests: Vec<&String> = crate_.test_files.iter().collect();
    assert_eq!(tests, ["odd.rs", "tests/deep.rs", "tests/inner.rs", "tests/mod.rs"]);
    assert_eq!(crate_.without_file, ["gone of lib.rs", "lost of lib.rs"]);
}

#[test]
fn a_cycle_is_printed_with_its_files_and_imports() {
    let found = cycles_in(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use super::b::B; use super::c::C; pub struct A;"),
        ("b.rs", "use super::a::A; pub struct B;"),
        ("c.rs", "use super::a::A; pub struct C;"),
    ]);
    let printed: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(printed, ["a.rs ─super::b::B─▶ b.rs ─super::a::A─▶ a.rs (and c.rs)"]);
}
