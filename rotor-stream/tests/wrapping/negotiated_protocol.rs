//! The protocol that the handshake chooses; it records its calls.

use std::io::Write;
use std::time::Duration;

use rotor_core::{Scope, Time};
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, Transport};

use crate::record::{Kind, Record, encode};

pub(crate) type Log = Vec<String>;

/// The protocol that the handshake has chosen.
pub(crate) enum NegotiatedProtocol {
    /// A server: sends each line back, unchanged or in capitals.
    Echo { in_capitals: bool },
    /// A server: sends two records, then records in the log that they were flushed. It may poll its
    /// input after the first.
    Flushes,
    /// A server: records each line, and ignores its input for a second after the first.
    Pauses { is_first: bool },
    /// A client: sends lines, each after the answer to the previous one, then ends.
    Client { left: usize },
}

pub(crate) const LINE: &[u8] = b"a line that is longer than two records\n";

impl NegotiatedProtocol {
    fn send_line(left: usize, transport: &mut Transport<'_>) -> Intent<NegotiatedProtocol> {
        if left == 0 {
            return Intent::done();
        }
        transport.output.write_all(LINE).expect("open");
        Intent::of(NegotiatedProtocol::Client { left: left - 1 })
            .delimiter(b"\n", 1024)
            .keep_deadline()
    }
}

impl Protocol for NegotiatedProtocol {
    type Context = Log;
    /// For a client: how many lines to send.
    type Seed = Option<usize>;

    fn create(
        lines: Option<usize>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let name = String::from_utf8_lossy(transport.negotiated().unwrap_or_default()).into_owned();
        match lines {
            Some(lines) => NegotiatedProtocol::send_line(lines, transport),
            None if name == "flush" || name == "reads" => {
                transport.output.write_all(b"two whole records, \n").expect("open");
                let left = if name == "reads" { 10 } else { 0 };
                Intent::of(NegotiatedProtocol::Flushes).flush(left).no_deadline()
            }
            None if name == "pause" => Intent::of(NegotiatedProtocol::Pauses { is_first: true })
                .delimiter(b"\n", 1024)
                .no_deadline(),
            None => {
                let in_capitals = name == "upper";
                scope.push(format!("serves {name}"));
                Intent::of(NegotiatedProtocol::Echo { in_capitals })
                    .delimiter(b"\n", 1024)
                    .no_deadline()
            }
        }
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let mut text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        match self {
            NegotiatedProtocol::Echo { in_capitals } => {
                if in_capitals {
                    text.make_ascii_uppercase();
                }
                transport.output.write_all(&text).expect("open");
                Intent::of(self).keep().keep_deadline()
            }
            NegotiatedProtocol::Flushes => Intent::done(),
            NegotiatedProtocol::Pauses { is_first } => {
                scope.push(String::from_utf8_lossy(&text).into_owned());
                let next = Intent::of(NegotiatedProtocol::Pauses { is_first: false });
                match is_first {
                    true => next.sleep().deadline(scope.now() + Duration::from_secs(1)),
                    false => next.delimiter(b"\n", 1024).no_deadline(),
                }
            }
            NegotiatedProtocol::Client { left } => {
                scope.push(String::from_utf8_lossy(&text).into_owned());
                NegotiatedProtocol::send_line(left, transport)
            }
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        if !transport.output.is_empty() {
            return Intent::of(self).bytes(1).or_flush(0).no_deadline();
        }
        scope.push("flushed".to_string());
        Intent::of(self).sleep().no_deadline()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::of(self).delimiter(b"\n", 1024).no_deadline()
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        scope.push("draining".to_string());
        Intent::of(self).keep().keep_deadline()
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("{exception}"));
        if transport.input.starts_with(b"stay") {
            transport.input.clear();
            return Intent::of(self).keep().keep_deadline();
        }
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {error}"));
    }

    fn not_connected(_: Option<usize>, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("not connected: {error}"));
    }
}

pub(crate) type Test = TestLoop<Stream<NegotiatedProtocol, Record<ScriptedSocket>>>;

pub(crate) fn server(test: &mut Test) -> Peer {
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket), None, scope));
    peer
}

/// A server after the handshake, which has not sent anything else yet.
pub(crate) fn server_after_handshake(test: &mut Test) -> Peer {
    let peer = server(test);
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    test.context_mut().clear();
    peer.take_received();
    peer
}
