//! Says that this is the build in which rotor-core takes loom's threads, locks and atomics (its
//! `mod sync`). A flag of this package only: with `RUSTFLAGS` every dependency would be told, and
//! whoever tests with loom what uses rotor.

fn main() {
    println!("cargo::rustc-cfg=rotor_loom");
    println!("cargo::rustc-check-cfg=cfg(rotor_loom, rotor_pulled, rotor_taking, rotor_handed)");
    println!("cargo::rerun-if-changed=build.rs");
}
