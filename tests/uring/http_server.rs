//! The suite of the HTTP server, on io_uring. Without its `shape`, which says that a connection may
//! go to another thread: on io_uring it may not.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other end is a plain client, outside of any loop"
)]

#[path = "../../rotor-http/tests/server/attacks.rs"]
mod attacks;
#[path = "../../rotor-http/tests/server/collecting.rs"]
mod collecting;
#[path = "../../rotor-http/tests/corpora/mod.rs"]
mod corpora;
#[path = "../../rotor-http/tests/server/deadlines.rs"]
mod deadlines;
#[path = "../../rotor-http/tests/server/ending.rs"]
mod ending;
#[path = "../../rotor-http/tests/server/exchanges.rs"]
mod exchanges;
#[path = "../../rotor-http/tests/server/faults.rs"]
mod faults;
#[path = "../../rotor-http/tests/server/functions.rs"]
mod functions;
#[path = "../../rotor-http/tests/server/http2/mod.rs"]
mod http2;
#[path = "../../rotor-http/tests/server/limits.rs"]
mod limits;
#[path = "../../rotor-http/tests/server/misuse.rs"]
mod misuse;
#[path = "../../rotor-http/tests/server/mixed.rs"]
mod mixed;
#[path = "../../rotor-http/tests/server/probe.rs"]
mod probe;
#[path = "../../rotor-http/tests/server/room.rs"]
mod room;
#[path = "../../rotor-http/tests/server/routed.rs"]
mod routed;
#[path = "../../rotor-http/tests/server/rules/mod.rs"]
mod rules;
#[path = "../../rotor-http/tests/server/suites.rs"]
mod suites;
#[path = "../../rotor-http/tests/server/tcp.rs"]
mod tcp;
#[path = "../../rotor-http/tests/server/totals.rs"]
mod totals;
#[path = "../../rotor-http/tests/server/upgrade.rs"]
mod upgrade;
#[path = "../../rotor-http/tests/server/wire.rs"]
mod wire;
