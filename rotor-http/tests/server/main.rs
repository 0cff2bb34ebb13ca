//! The server, run by a real loop: on scripted sockets with a clock that is moved by hand, and on
//! the kernel's.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other end is a plain client, outside of any loop"
)]

mod at_end;
mod attacks;
mod collecting;
#[path = "../corpora/mod.rs"]
mod corpora;
mod deadlines;
mod ending;
mod exchanges;
mod faults;
mod functions;
mod health;
mod http2;
mod later;
mod limits;
mod misuse;
mod mixed;
mod probe;
mod room;
mod routed;
mod rules;
mod shape;
mod suites;
mod tcp;
mod totals;
mod traffic;
mod upgrade;
mod waking;
mod wire;
