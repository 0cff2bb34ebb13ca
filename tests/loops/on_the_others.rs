//! The loops other than mio: io_uring, smoltcp and the simulator.

#[path = "rig/mod.rs"]
mod rig;
mod simulated;
mod smoltcp;
#[cfg(target_os = "linux")]
mod uring;

pub(crate) use rig::*;
pub(crate) use simulated::Simulated;
pub(crate) use smoltcp::OnSmoltcp;
#[cfg(target_os = "linux")]
pub(crate) use uring::OnUring;

/// Like the macro of this name in `on_mio`, but on the other loops.
#[allow(unused_macros, reason = "each suite uses a part of it")]
macro_rules! on_every_loop {
    ($test:ident $(, not $loop:ident: $why:literal)*) => {
        mod $test {
            const CANNOT: &[(&str, &str)] = &[$((stringify!($loop), $why)),*];

            #[cfg(target_os = "linux")]
            #[test]
            fn io_uring() {
                use crate::loops::{OnUring, run};
                run::<OnUring, _>("io_uring", CANNOT, super::$test::<OnUring>);
            }

            #[test]
            fn smoltcp() {
                use crate::loops::{OnSmoltcp, run};
                run::<OnSmoltcp, _>("smoltcp", CANNOT, super::$test::<OnSmoltcp>);
            }

            #[test]
            fn simulated() {
                use crate::loops::{Simulated, run};
                run::<Simulated, _>("simulated", CANNOT, super::$test::<Simulated>);
            }
        }
    };
}
#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use on_every_loop;

/// Like the macro of this name in `on_mio`, but on io_uring.
#[allow(unused_macros, reason = "each suite uses a part of it")]
macro_rules! on_kernel_loops {
    ($test:ident, $why:literal) => {
        mod $test {
            #[doc = $why]
            #[cfg(target_os = "linux")]
            #[test]
            fn io_uring() {
                use crate::loops::{OnUring, run};
                run::<OnUring, _>("io_uring", &[], super::$test::<OnUring>);
            }
        }
    };
}
#[allow(unused_imports, reason = "each suite uses a part of it")]
pub(crate) use on_kernel_loops;
