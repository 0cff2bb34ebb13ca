//! Tools for tests of servers: a client on a connection in memory, and responses as values.
//!
//! They belong to the [test kit of rotor-stream](rotor_stream::testing): the connection, its parser
//! and its writer are the real ones, and only the kernel is simulated.
//!
//! The methods of the kit panic if a test should fail.

mod client;
mod response;
#[cfg(test)]
mod tests;

pub use self::client::TestClient;
pub use self::response::TestResponse;
