//! A protocol that reports its peer's address, on scripted sockets.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::Scope;
use rotor_proxy_protocol::{
    ProxyError, ProxyHeader, ProxyProtocol, ProxyProtocolConfig, ProxyStream,
};
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};

/// What happened, in order.
pub(crate) type Log = Vec<String>;

/// Answers each line with the peer's address, its own address, and the line.
pub(crate) struct WhoAmI;

impl Protocol for WhoAmI {
    type Context = Log;
    type Seed = ();

    fn config(_: &()) -> Arc<StreamConfig> {
        StreamConfig::new().share()
    }

    fn create(_: (), transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        let header = transport.session::<ProxyHeader>();
        scope.push(header.map_or("-".into(), |header| format!("{:?}", header.version())));
        Intent::of(WhoAmI).delimiter(b"\n", 1_000).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let words = String::from_utf8_lossy(&transport.input[..line.len()]).into_owned();
        line.consume(transport.input);
        let name = |address: Option<SocketAddr>| address.map_or("-".into(), |a| a.to_string());
        let (peer, own) = (name(transport.peer_address()), name(transport.local_address()));
        write!(transport.output, "{peer} {own} {words}").expect("it is open");
        Intent::of(self).keep().no_deadline()
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push("ended".into());
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {}", rotor_core::with_causes(&error)));
    }

    fn not_connected(_: (), error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(match (ProxyError::of(&error), &error) {
            (Some(error), _) => error.to_string(),
            (None, Fatal::Handshake(error)) => error.to_string(),
            (None, other) => other.to_string(),
        });
    }
}

pub(crate) type Test = TestLoop<Stream<WhoAmI, ProxyStream<ScriptedSocket>>>;

/// The networks of the balancers.
pub(crate) fn config() -> ProxyProtocolConfig {
    ProxyProtocolConfig::new(["10.0.0.0/8".parse().expect("it is one")])
}

/// A server on a scripted socket, whose connection comes from this address.
pub(crate) fn add_server(test: &mut Test, behind: &ProxyProtocol, from: Option<&str>) -> Peer {
    let (socket, peer) = pair(test.world());
    let from = from.map(|from| SocketAddr::new(from.parse().expect("an address"), 40_000));
    // If the connection is refused, no machine is left when this returns.
    let make = |scope: &mut Scope<'_, Log>| Stream::connected(behind.wrap(socket, from), (), scope);
    let _is_made = test.instance().add_machine_with(make);
    peer
}

/// The counters that are not zero.
pub(crate) fn nonzero_counters(behind: &ProxyProtocol) -> Vec<(&'static str, u64)> {
    behind.counters().iter().filter(|(_, count)| *count > 0).collect()
}
