//! The loop on which the suite of each crate runs: mio. `tests/loops` runs the same tests on the
//! others.

#[path = "rig/mod.rs"]
mod rig;

pub(crate) use rig::*;

/// Runs a test that is generic over its loop on every loop. Each loop becomes a test named after
/// the loop, in a module named after the test. Here it runs on mio.
///
/// `on_every_loop!(name)`, or with a loop that cannot pass it and the reason: `on_every_loop!(name,
/// not smoltcp: "it has no ...")`. The test must fail there.
#[allow(unused_macros, reason = "each suite uses a part of it")]
macro_rules! on_every_loop {
    ($test:ident $(, not $loop:ident: $why:literal)*) => {
        mod $test {
            const CANNOT: &[(&str, &str)] = &[$((stringify!($loop), $why)),*];

            #[test]
            fn mio() {
                use crate::loops::{Mio, run};
                run::<Mio, _>("mio", CANNOT, super::$test::<Mio>);
            }
        }
    };
}
#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use on_every_loop;

/// The same for tests that need the kernel's sockets, with the reason. Such a test is generic over
/// `OnKernel`, which the other loops do not implement.
#[allow(unused_macros, reason = "each suite uses a part of it")]
macro_rules! on_kernel_loops {
    ($test:ident, $why:literal) => {
        mod $test {
            #[doc = $why]
            #[test]
            fn mio() {
                use crate::loops::{Mio, run};
                run::<Mio, _>("mio", &[], super::$test::<Mio>);
            }
        }
    };
}
#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use on_kernel_loops;
