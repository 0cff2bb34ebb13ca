//! The loop of a crate's own suite: mio. `tests/loops` runs the same tests on the others.

#[path = "rig/mod.rs"]
mod rig;

pub(crate) use rig::*;

/// Has a test that is generic over its loop run on every loop, as a test of the loop's name below
/// its own; here on mio.
///
/// `on_every_loop!(name)`, or with what a loop cannot, and why:
/// `on_every_loop!(name, not smoltcp: "it has no ...")`. There the test has to fail.
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

/// The same for what only loops on the kernel's sockets have, with the reason. That a test is generic
/// over `OnKernel` shows that the others lack it: they do not implement that.
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
