//! The server, run by a real loop: on scripted sockets with a clock that the test advances, and on
//! real sockets.
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
mod extremes;
mod failing;
mod faults;
mod functions;
mod health;
mod http2;
mod in_drain;
mod intercepted;
mod later;
mod leading;
#[path = "../limit_extremes/mod.rs"]
mod limit_extremes;
mod limits;
#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
mod misuse;
mod pace;
mod probe;
mod programs;
mod relay;
mod room;
mod routed;
mod rules;
mod rules_kept;
mod shape;
mod sockets;
mod succession;
mod suites;
mod totals;
mod traffic;
mod turns;
mod under_way;
mod upgrade;
mod waited;
mod waking;
mod wire;
