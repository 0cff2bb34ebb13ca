//! Messages that a peer's own input makes for it, as in a chat that shows its members what they say.

use std::sync::Arc;

use rotor_core::Scope;
use rotor_stream::testing::Driver;
use rotor_stream::{
    Block, Buf, HasOutbox, Intent, Layered, LayeredResult, Matched, Outbox, OutboxConfig,
    OutboxSender, Protocol, StreamConfig, Transport, WithOutbox,
};

const LINE: [u8; 100] = *b"A line that all members get, the one who says it too, and which is as long as a usual sentence is. \n";

#[derive(Default)]
struct Room {
    members: Vec<OutboxSender>,
    refused: u32,
    in_place: bool,
}

impl Room {
    fn tell_all(&mut self, line: &[u8]) {
        let message = Block::from(line.to_vec());
        for member in &self.members {
            self.refused += u32::from(member.send(message.clone()).is_err());
        }
    }
}

struct Member(Outbox);

impl Member {
    fn say(line: Matched, transport: &mut Transport<'_>, room: &mut Room) -> Intent<()> {
        room.tell_all(&transport.input[..line.len()]);
        line.consume(transport.input);
        Intent::of(()).keep().keep_deadline()
    }
}

impl Protocol for Member {
    type Context = Room;
    type Seed = OutboxConfig;

    fn create(
        config: OutboxConfig,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        let outbox = Outbox::new(config, scope);
        scope.members.push(outbox.sender());
        Intent::of(Member(outbox)).delimiter(b"\n", 200).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        Member::say(line, transport, scope).map(|()| self)
    }

    fn bytes_read_in_place(
        &mut self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Option<Intent<()>> {
        scope.in_place.then(|| Member::say(line, transport, scope))
    }
}

impl HasOutbox for Member {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.0
    }
}

fn member(in_place: bool) -> Driver<WithOutbox<Member>> {
    let room = Room { in_place, ..Room::default() };
    let mut driver = Driver::new(OutboxConfig::new().bytes_max(1_000), room);
    driver.settle();
    driver
}

#[test]
fn a_peer_that_reads_gets_all_messages_of_its_own_input() {
    for in_place in [false, true] {
        let mut driver = member(in_place);
        let input = LINE.repeat(10_000);
        driver.send(&input);
        assert_eq!(driver.context().refused, 0, "in place: {in_place}");
        assert!(driver.take_received() == input, "in place: {in_place}");
    }
}

#[test]
fn a_peer_that_does_not_read_can_still_send() {
    for in_place in [false, true] {
        let mut driver = member(in_place);
        driver.limit_room(0);
        driver.send(&LINE.repeat(1_000));
        let waiting = (32 << 10) / LINE.len() as u32 + 1 + 10; // in the output, and in the outbox
        assert_eq!(driver.context().refused, 1_000 - waiting, "in place: {in_place}");
    }
}

/// How much input is passed on at a time, in bytes: far more than an outbox moves into the output.
const AT_ONCE: usize = 200_000;

/// Runs a member inside another protocol, which passes everything on as it is.
struct Layer(Layered<WithOutbox<Member>>);

impl Layer {
    fn proceed(
        mut self,
        mut result: LayeredResult,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        loop {
            let waiting = self.0.output().len();
            let moved = self.0.output().move_to(transport.output, waiting).expect("it is open");
            match result {
                LayeredResult::Again => {}
                LayeredResult::Waits if moved > 0 => {}
                LayeredResult::Waits => return Intent::of(self).bytes(AT_ONCE).no_deadline(),
                other => panic!("the member ends: {other:?}"),
            }
            result = self.0.pass(scope);
        }
    }
}

impl Protocol for Layer {
    type Context = Room;
    type Seed = OutboxConfig;

    fn config(_: &OutboxConfig) -> Arc<StreamConfig> {
        StreamConfig::new().input_max(2 * AT_ONCE).share()
    }

    fn create(
        config: OutboxConfig,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        let within = StreamConfig::standard();
        let (layered, result) = Layered::begin(config, Buf::new(), false, &within, scope);
        Layer(layered).proceed(result, transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        self.0.input().extend(transport.input);
        transport.input.clear();
        let result = self.0.pass(scope);
        self.proceed(result, transport, scope)
    }

    fn wakeup(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Room>,
    ) -> Intent<Self> {
        let result = self.0.wakeup(scope);
        self.proceed(result, transport, scope)
    }
}

/// The layer takes the output only after a pass, as a connection of HTTP/2 does.
#[test]
fn a_member_inside_another_protocol_gets_all_messages_of_its_own_input() {
    for in_place in [false, true] {
        let room = Room { in_place, ..Room::default() };
        let mut driver = Driver::<Layer>::new(OutboxConfig::new().bytes_max(1_000), room);
        let input = LINE.repeat(10_000);
        input.chunks(AT_ONCE).for_each(|part| driver.send(part));
        assert_eq!(driver.context().refused, 0, "in place: {in_place}");
        assert!(driver.take_received() == input, "in place: {in_place}");
    }
}
