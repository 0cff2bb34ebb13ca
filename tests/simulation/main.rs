//! The machines of the examples, and some more, in the simulator under all faults; some also run on
//! the kernel's sockets.
//!
//! `ROTOR_SIM_SEEDS` sets the number of seeds of each scenario (CI: 100). A failure prints the
//! seed, the step, and the command that reproduces it. `tests/long/simulation` runs ten thousand
//! seeds.

mod async_handlers;
mod chat;
mod connecting;
mod datagrams;
mod draining;
mod echo;
mod echo_of_the_book;
mod every_loop;
mod everything;
mod examples;
mod ground;
mod hello;
mod http2_liveness;
mod http2_pool;
mod http_pool;
mod lines;
mod mqtt;
mod packets;
mod proxied;
mod proxy;
mod records;
mod requests;
mod resolver;
mod restarts;
mod reverse_proxy;
mod room;
mod schemes;
mod sessions;
mod shared_ports;
mod stage;
mod stored;
mod tls;
mod turns;
mod unix;
mod uploads;
mod waiting;
mod websocket;
mod websocket_over_tls;
