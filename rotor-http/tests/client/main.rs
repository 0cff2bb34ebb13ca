//! The client, run by a real loop: on scripted sockets with a clock that the test advances, and on
//! real sockets.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other end is a plain server, outside of any loop"
)]

#[path = "../corpora/mod.rs"]
mod corpora;
mod every_loop;
mod exchanges;
mod expecting;
mod extremes;
mod held;
mod hostile;
mod http2;
mod late;
#[path = "../limit_extremes/mod.rs"]
mod limit_extremes;
#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
mod mirror;
mod names;
mod pace;
mod pool;
mod probe;
mod reuse;
mod script;
mod servers;
mod shape;
mod shout;
mod suites;
mod totals;
mod transcripts;
mod tunnels;
mod unsolicited;
