//! The machines of the stream examples on scripted sockets: whole, byte by byte, cut at every
//! point, read and written, they say the same.
#![forbid(unsafe_code)]

mod cuts;
mod key_value;
mod line_chat;
mod line_echo;
mod mqtt_broker;
mod redis_client;
// The Redis client's machine finds it here, as it does in the example.
#[path = "../../examples/redis_client/resp.rs"]
mod resp;
mod tcp_proxy;
mod telnet;
