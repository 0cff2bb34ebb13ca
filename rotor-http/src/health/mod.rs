//! Responses to health probes: whether a process must be restarted, and whether it should get
//! requests.
//!
//! | | 200 | 503 |
//! |--|--|--|
//! | `/livez` | every loop has made a turn within the last 5 s (by default) | a loop is held up, or has ended by itself: restart the process |
//! | `/readyz` | as for `/livez`, and the program has said that it is ready | otherwise; also once a drain is announced or has begun, and while a check of the program fails: send requests elsewhere |
//!
//! The body is JSON and contains the reasons. Call [`Health::answer`] in a server that has other
//! paths as well, or combine [`HealthServer`] with another server by
//! [`Routed`](crate::server::Routed). [`Health::serve_at`] opens a separate port, on a separate
//! thread: there a probe gets its response even if all loops are held up, and however many
//! connections they have.
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use rotor::threads::LoopGroup;
//! use rotor::{Drain, Pulses, signals};
//! use rotor::http::health::Health;
//! # use rotor::{BoxError, Config, Infallible, Loop, Machine};
//! # struct App; impl Machine for App { type Context = (); type Seed = Infallible; }
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), BoxError> {
//! let pulses = Pulses::new();
//! let health = Health::new(pulses.clone());
//! let _port = health.serve_at(([0, 0, 0, 0], 8081).into())?;
//! let group = LoopGroup::start(0..4, move |_, _| {
//!     let mut instance = Loop::<App>::new(&Config::new())?.instantiate(());
//!     pulses.watch(&mut instance);
//!     Ok(instance)
//! })?;
//! let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
//! signals::drain_on_termination_with(group.handle(), drain)?;
//! health.set_ready(true);
//! group.join();
//! # Ok(())
//! # }
//! ```

mod answers;
mod port;
mod report;

pub use self::answers::{Health, HealthServer, LIVE_WITHIN};
pub use self::port::HealthPort;
pub(crate) use self::port::{PortSettings, PortSource};
