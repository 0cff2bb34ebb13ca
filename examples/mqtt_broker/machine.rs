//! One connection: a protocol of packets.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use rotor::stream::{
    Exception, HasOutbox, Intent, Matched, Outbox, Output, Protocol, StreamConfig, Transport,
};
use rotor::{ReturnOnDrop, Scope, Time};

use super::answer::Accepted;
use super::answer::{PINGRESP, connack, puback, pubcomp, pubrec, pubrel, suback, unsuback};
use super::broker::{HasBroker, Seat};
use super::limits::{CONNECT_TIME_MAX, PACKET_BYTES_MAX};
use super::packet::{Connect, Packet, Publish, Qos, first_length, length};
use super::reader::Malformed;
use super::session::{Link, Session};

/// One connection.
///
/// ```text
///            CONNECT            a packet
///   Stranger ───────▶ Known ───────────────▶ Known
///      └── too late ────┴── silent for one and a half times its keep-alive, no packet, another
///                           connection of the same client, DISCONNECT ──▶ end
/// ```
///
/// It writes its own answers directly; what others publish comes through the outbox.
pub(crate) struct Client<C: 'static> {
    stage: Stage<C>,
    outbox: Outbox,
}

enum Stage<C: 'static> {
    Stranger,
    Known {
        /// However the connection ends, even by a panic, this marks its client as away.
        seat: ReturnOnDrop<Seat, C>,
        /// How long the client may send no packet.
        patience: Option<Duration>,
    },
}

/// Why a connection ends.
enum End {
    /// The client has disconnected, or was told to.
    Said,
    Malformed(Malformed),
    /// The output of this connection was closed.
    Output(io::Error),
}

/// Returns the limits of a connection, shared by all.
pub(crate) fn stream_config() -> Arc<StreamConfig> {
    StreamConfig::new().input_max(PACKET_BYTES_MAX).share()
}

impl<C: HasBroker> Client<C> {
    /// Waits for the next packet; during a drain, only if it has arrived at least in part.
    fn next_packet(&self, transport: &Transport<'_>, scope: &Scope<'_, C>) -> Intent<()> {
        if scope.draining_until().is_some() && transport.input.is_empty() {
            return Intent::done();
        }
        let (length, patience) = match &self.stage {
            Stage::Stranger => (first_length as fn(&[u8]) -> _, Some(CONNECT_TIME_MAX)),
            Stage::Known { patience, .. } => (length as fn(&[u8]) -> _, *patience),
        };
        let until = patience.map(|patience| scope.now() + patience);
        Intent::of(()).frame(length, PACKET_BYTES_MAX).deadline_opt(until)
    }

    fn packet_read(
        &mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<()> {
        let obeyed = match Packet::read(&transport.input[..matched.len()]) {
            Ok(packet) => self.handle_packet(&packet, transport.output, scope),
            Err(malformed) => Err(malformed.into()),
        };
        matched.consume(transport.input);
        match obeyed {
            Ok(()) => self.next_packet(transport, scope),
            Err(End::Said) => Intent::done(),
            Err(End::Malformed(why)) => malformed(why, scope),
            Err(End::Output(error)) => Intent::error(error),
        }
    }

    /// Executes a packet.
    fn handle_packet(
        &mut self,
        packet: &Packet<'_>,
        output: &mut Output,
        scope: &mut Scope<'_, C>,
    ) -> Result<(), End> {
        match (&mut self.stage, packet) {
            (Stage::Stranger, Packet::Connect(connect)) => {
                self.stage = self.welcome(connect, output, scope)?;
                Ok(())
            }
            (Stage::Stranger, _) => Err(Malformed("it does not say who it is").into()),
            (Stage::Known { .. }, Packet::Connect(_)) => Err(Malformed("a second CONNECT").into()),
            (Stage::Known { seat, .. }, packet) => exchange(seat, packet, output, scope),
        }
    }

    fn welcome(
        &self,
        connect: &Connect<'_>,
        output: &mut Output,
        scope: &mut Scope<'_, C>,
    ) -> Result<Stage<C>, End> {
        let link = Link { outbox: self.outbox.sender(), notifier: scope.notifier() };
        let (seat, is_known) = match scope.broker().connect(connect, link) {
            // From here on, the client is marked as away whatever fails.
            Ok((seat, is_known)) => (scope.at_end(seat, leave), is_known),
            Err(why) => {
                scope.broker().counts.refused += 1;
                output.write_all(&connack(why, false))?;
                return Err(End::Said);
            }
        };
        output.write_all(&connack(Accepted::New, is_known))?;
        scope.broker().send_pending(&seat);
        // §3.1.2.10
        let keep_alive = Duration::from_secs(connect.keep_alive.into());
        let patience = (!keep_alive.is_zero()).then(|| keep_alive * 3 / 2);
        Ok(Stage::Known { seat, patience })
    }
}

fn malformed<T, C: HasBroker>(why: impl fmt::Display, scope: &mut Scope<'_, C>) -> Intent<T> {
    scope.broker().counts.malformed += 1;
    log::debug!("machine {}: {why}", scope.token());
    Intent::done()
}

fn leave<C: HasBroker>(context: &mut C, seat: Seat) {
    context.broker().leave(seat);
}

/// Answers a packet of a client whose CONNECT was accepted.
fn exchange<C: HasBroker>(
    seat: &mut Seat,
    packet: &Packet<'_>,
    output: &mut Output,
    scope: &mut Scope<'_, C>,
) -> Result<(), End> {
    let broker = scope.broker();
    // The session has another connection, and this one is about to be told.
    let Some(session) = broker.session(seat) else { return Err(End::Said) };
    match packet {
        Packet::Publish(publish) => {
            let Publish { qos, id, .. } = *publish;
            if qos < Qos::Two || session.is_new(id)? {
                broker.publish(publish);
            }
            match qos {
                Qos::Zero => {}
                Qos::One => output.write_all(&puback(id))?,
                Qos::Two => output.write_all(&pubrec(id))?,
            }
            return Ok(());
        }
        Packet::PubRel(id) => {
            session.released(*id);
            output.write_all(&pubcomp(*id))?;
            return Ok(());
        }
        Packet::PubAck(id) => broker.answered(seat, Session::acknowledged, *id),
        Packet::PubRec(id) => {
            broker.answered(seat, Session::received, *id);
            // Also for an unknown number: the client knows it, and waits for this answer.
            output.write_all(&pubrel(*id))?;
        }
        Packet::PubComp(id) => session.completed(*id),
        Packet::Subscribe { id, filters } => {
            let answers = filters.iter().map(|(filter, qos)| broker.subscribe(seat, filter, *qos));
            let answers: Vec<u8> = answers.collect();
            output.write_all(&suback(*id, &answers))?;
        }
        Packet::Unsubscribe { id, filters } => {
            for filter in filters {
                broker.unsubscribe(seat, filter);
            }
            output.write_all(&unsuback(*id))?;
        }
        Packet::PingReq => output.write_all(&PINGRESP)?,
        Packet::Disconnect => {
            // §3.14.4
            seat.will = None;
            return Err(End::Said);
        }
        Packet::Connect(_) => return Err(Malformed("a second CONNECT").into()),
    }
    // An answer may have made room, or there is a retained message.
    broker.send_pending(seat);
    Ok(())
}

impl<C: HasBroker> Protocol for Client<C> {
    type Context = C;
    type Seed = Arc<StreamConfig>;

    fn config(seed: &Arc<StreamConfig>) -> Arc<StreamConfig> {
        seed.clone()
    }

    fn create(
        _: Arc<StreamConfig>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let config = scope.broker().outbox_config();
        let outbox = Outbox::new(config, scope);
        let client = Client { stage: Stage::Stranger, outbox };
        client.next_packet(transport, scope).map(|()| client)
    }

    fn bytes_read(
        mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.packet_read(matched, transport, scope).map(|()| self)
    }

    /// In place, because packets are small and many: moving the client for each would cost more
    /// than the packet.
    fn bytes_read_in_place(
        &mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Option<Intent<()>> {
        Some(self.packet_read(matched, transport, scope))
    }

    /// Called when there is room for what waits, or something new, or the client has another
    /// connection.
    fn wakeup(self, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        match &self.stage {
            Stage::Known { seat, .. } if !scope.broker().send_pending(seat) => Intent::done(),
            _ => Intent::of(self).keep().keep_deadline(),
        }
    }

    fn timeout(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        if transport.is_input_held() {
            // The client's packets may have arrived already, and wait until it has read more. The
            // stream limits how slowly it may read.
            return self.next_packet(transport, scope).map(|()| self);
        }
        scope.broker().counts.late += 1;
        Intent::done()
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        match exception {
            Exception::Limit(_) | Exception::Malformed => malformed(exception, scope),
            // This is not a proper disconnect, so the will is published.
            _ => Intent::done(),
        }
    }

    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.next_packet(transport, scope).map(|()| self)
    }
}

impl<C: HasBroker> HasOutbox for Client<C> {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl From<Malformed> for End {
    fn from(why: Malformed) -> End {
        End::Malformed(why)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Output(error)
    }
}
