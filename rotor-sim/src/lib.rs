//! A simulated main loop for rotor.
#![forbid(unsafe_code)]

mod backend;
mod chaos;
mod check;
mod failure;
mod faults;
mod host;
pub mod net;
mod network;
pub mod property;
mod random;
mod script;
mod sim;
mod step;
mod table;
mod trace;
mod watched;
mod world;

pub use backend::{SimBackend, SimHandle};
pub use chaos::Crash;
pub use check::{Check, check};
pub use failure::Failure;
pub use faults::{Family, Fault, Faults};
pub use host::{Boot, Host};
pub use network::Network;
pub use script::{Script, ScriptClient, Transcript, TranscriptHandle};
pub use sim::Sim;
pub use watched::Watched;
