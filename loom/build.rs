//! Marks the build in which rotor-core uses loom's threads, locks and atomics (its `mod sync`). The
//! flag is limited to this package: `RUSTFLAGS` would also set it for every dependency, and for
//! programs that use rotor and are themselves tested with loom.

fn main() {
    println!("cargo::rustc-cfg=rotor_loom");
    println!("cargo::rustc-check-cfg=cfg(rotor_loom, rotor_pulled, rotor_taking, rotor_handed)");
    println!("cargo::rerun-if-changed=build.rs");
}
