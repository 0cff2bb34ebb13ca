//! The facade.
#![forbid(unsafe_code)]

pub use rotor_core::*;
pub use rotor_http as http;
pub use rotor_stream as stream;
