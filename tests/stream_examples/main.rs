//! The machines of the stream examples on scripted sockets. Input comes whole, byte by byte, or cut
//! at every point, and writes are partial; the output must be the same.
#![forbid(unsafe_code)]

mod backend_pool;
mod cuts;
mod key_value;
mod line_chat;
mod line_echo;
mod mqtt_broker;
mod redis_client;
// The Redis client's machine expects this module here, as in the example.
#[path = "../../examples/redis_client/resp.rs"]
mod resp;
mod tcp_proxy;
mod telnet;
