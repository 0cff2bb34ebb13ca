//! One connection: the counterpart of the example's `machine.rs`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use crate::Notifier;
use crate::answer::{Accepted, PINGRESP};
use crate::answer::{connack, puback, pubcomp, pubrec, pubrel, suback, unsuback};
use crate::broker::{Broker, Seat};
use crate::limits::{CONNECT_TIME_MAX, PACKET_BYTES_MAX};
use crate::packet::{Connect, Packet, Publish, Qos, first_length, length};
use crate::session::{Link, Session};
use crate::stream::{Block, FrameLength, OutboxSender};

/// How many bytes may wait for the socket before nothing more is read or taken from the outbox.
const PENDING_BYTES_MAX: usize = 64 * 1_024;

/// How many blocks are passed to one write.
const SLICES_MAX: usize = 64;

/// However the task ends, this marks its client as away.
struct Seated {
    seat: Option<Seat>,
    broker: Rc<RefCell<Broker>>,
}

impl Drop for Seated {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.broker.borrow_mut().leave(seat);
        }
    }
}

struct Client {
    seated: Seated,
    link: Link,
    /// The answers to packets that arrived together.
    output: BytesMut,
    patience: Option<Duration>,
}

enum End {
    Said,
    Malformed,
}

pub(crate) async fn talk(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    broker: Rc<RefCell<Broker>>,
    notifier: Notifier,
) -> io::Result<()> {
    let notify = notifier.notify.clone();
    let outbox = OutboxSender::new(broker.borrow().outbox_config(), notifier.clone());
    let mut client = Client {
        seated: Seated { seat: None, broker },
        link: Link { outbox, notifier },
        output: BytesMut::new(),
        patience: Some(CONNECT_TIME_MAX),
    };
    let mut input = BytesMut::with_capacity(4_096);
    let mut pending: VecDeque<Block> = VecDeque::new();
    let mut until = Instant::now() + CONNECT_TIME_MAX;
    loop {
        if !client.output.is_empty() {
            pending.push_back(client.output.split().freeze());
        }
        let bytes: usize = pending.iter().map(Block::len).sum();
        let has_room = bytes < PENDING_BYTES_MAX;
        if has_room && client.link.outbox.take(&mut pending, 4 * PENDING_BYTES_MAX) {
            client.link.notifier.wakeup();
        }
        tokio::select! {
            written = write(&mut writer, &pending), if !pending.is_empty() => {
                advance(&mut pending, written?);
            }
            read = reader.read_buf(&mut input), if has_room => {
                if read? == 0 {
                    return Ok(());
                }
                match client.obey_all(&mut input) {
                    Ok(was_any) if was_any => {
                        until = Instant::now() + client.patience.unwrap_or_default();
                    }
                    Ok(_) => {}
                    Err(End::Said) => return writer.write_all(&client.output).await,
                    Err(End::Malformed) => {
                        client.seated.broker.borrow_mut().counts.malformed += 1;
                        return Ok(());
                    }
                }
            }
            () = notify.notified() => {
                if let Some(seat) = &client.seated.seat
                    && !client.seated.broker.borrow_mut().go_on(seat)
                {
                    return Ok(());
                }
            }
            () = sleep_until(until), if client.patience.is_some() => {
                client.seated.broker.borrow_mut().counts.late += 1;
                return Ok(());
            }
        }
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    pending: &VecDeque<Block>,
) -> io::Result<usize> {
    if pending.len() == 1 {
        return writer.write(&pending[0]).await;
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    for (slice, block) in slices.iter_mut().zip(pending) {
        *slice = IoSlice::new(block);
    }
    writer.write_vectored(&slices[..pending.len().min(SLICES_MAX)]).await
}

fn advance(pending: &mut VecDeque<Block>, mut written: usize) {
    while written > 0 {
        let Some(first) = pending.front_mut() else { return };
        let part = written.min(first.len());
        first.advance(part);
        written -= part;
        if first.is_empty() {
            pending.pop_front();
        }
    }
}

impl Client {
    /// Executes all complete packets. Returns whether there were any.
    fn obey_all(&mut self, input: &mut BytesMut) -> Result<bool, End> {
        let mut was_any = false;
        loop {
            let length = if self.seated.seat.is_none() { first_length } else { length };
            let len = match length(input) {
                _ if input.is_empty() => return Ok(was_any),
                FrameLength::Bytes(len) if len > PACKET_BYTES_MAX => return Err(End::Malformed),
                FrameLength::Bytes(len) if len <= input.len() => len,
                FrameLength::Bytes(_) | FrameLength::Unknown => return Ok(was_any),
                FrameLength::Malformed => return Err(End::Malformed),
            };
            let packet = input.split_to(len);
            self.obey(&Packet::read(&packet).map_err(|_| End::Malformed)?)?;
            was_any = true;
        }
    }

    fn obey(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let Some(seat) = &mut self.seated.seat else {
            let Packet::Connect(connect) = packet else { return Err(End::Malformed) };
            return self.welcome(connect);
        };
        let broker = &mut *self.seated.broker.borrow_mut();
        let output = &mut self.output;
        let Some(session) = broker.session(seat) else { return Err(End::Said) };
        match packet {
            Packet::Publish(publish) => {
                let Publish { qos, id, .. } = *publish;
                if qos < Qos::Two || session.is_new(id).map_err(|_| End::Malformed)? {
                    broker.publish(publish);
                }
                match qos {
                    Qos::Zero => {}
                    Qos::One => output.extend_from_slice(&puback(id)),
                    Qos::Two => output.extend_from_slice(&pubrec(id)),
                }
                return Ok(());
            }
            Packet::PubRel(id) => {
                session.released(*id);
                output.extend_from_slice(&pubcomp(*id));
                return Ok(());
            }
            Packet::PubAck(id) => broker.answered(seat, Session::acknowledged, *id),
            Packet::PubRec(id) => {
                broker.answered(seat, Session::received, *id);
                output.extend_from_slice(&pubrel(*id));
            }
            Packet::PubComp(id) => session.completed(*id),
            Packet::Subscribe { id, filters } => {
                let answers =
                    filters.iter().map(|(filter, qos)| broker.subscribe(seat, filter, *qos));
                let answers: Vec<u8> = answers.collect();
                output.extend_from_slice(&suback(*id, &answers));
            }
            Packet::Unsubscribe { id, filters } => {
                for filter in filters {
                    broker.unsubscribe(seat, filter);
                }
                output.extend_from_slice(&unsuback(*id));
            }
            Packet::PingReq => output.extend_from_slice(&PINGRESP),
            Packet::Disconnect => {
                seat.will = None;
                return Err(End::Said);
            }
            Packet::Connect(_) => return Err(End::Malformed),
        }
        broker.go_on(seat);
        Ok(())
    }

    fn welcome(&mut self, connect: &Connect<'_>) -> Result<(), End> {
        let broker = &mut *self.seated.broker.borrow_mut();
        match broker.connect(connect, self.link.clone()) {
            Ok((seat, is_known)) => {
                self.output.extend_from_slice(&connack(Accepted::New, is_known));
                broker.go_on(&seat);
                self.seated.seat = Some(seat);
            }
            Err(why) => {
                broker.counts.refused += 1;
                self.output.extend_from_slice(&connack(why, false));
                return Err(End::Said);
            }
        }
        let keep_alive = Duration::from_secs(connect.keep_alive.into());
        self.patience = (!keep_alive.is_zero()).then(|| keep_alive * 3 / 2);
        Ok(())
    }
}
