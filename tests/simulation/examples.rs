//! Unmodified machines of the examples.

#[path = "../../examples/hello_world_server/hello.rs"]
pub(crate) mod hello;
#[path = "../../examples/http_echo/machine.rs"]
pub(crate) mod http_echo;
#[path = "../../examples/line_chat/machine.rs"]
pub(crate) mod line_chat;
#[path = "../../examples/tcp_echo_server/machine.rs"]
pub(crate) mod tcp_echo_server;
#[path = "../../examples/tcp_proxy/machine.rs"]
pub(crate) mod tcp_proxy;
#[path = "../../examples/udp_echo_server/machine.rs"]
pub(crate) mod udp_echo_server;
#[path = "../../examples/udp_sessions/machine.rs"]
pub(crate) mod udp_sessions;
#[path = "../../examples/ws_echo/machine.rs"]
pub(crate) mod ws_echo;
