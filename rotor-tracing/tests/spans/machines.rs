//! Spans of machines.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{Description, Event, Idle, InPlace, Infallible, Machine, Response, Scope};
use rotor_stream::testing::{ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig, Accepted};
use rotor_tracing::InSpan;
use rotor_tracing::tracing::{info, info_span};

use crate::notes::{Notes, serialize_tests};

/// Ends soon after it is created. A seed is the number of further machines, each created by the
/// previous one.
struct Two {
    events: u32,
    in_place: bool,
}

impl Machine for Two {
    type Context = ();
    type Seed = u32;

    fn create(more: u32, scope: &mut Scope<'_, ()>) -> Response<Self> {
        info!("made, {more} more");
        scope.notifier().wakeup();
        Response::ok(Two { events: more, in_place: false })
    }

    fn handle(self, event: Event<u32>, scope: &mut Scope<'_, ()>) -> Response<Self, u32> {
        info!("{}", event.name());
        match event {
            Event::Wakeup if self.events > 0 => {
                let more = self.events - 1;
                Response::spawn(Two { events: 0, ..self }, more)
            }
            Event::Spawned => Response::keep(self).deadline(scope.now() + Duration::from_secs(1)),
            _ => Response::done(),
        }
    }

    fn handle_in_place(&mut self, event: Event<u32>, _: &mut Scope<'_, ()>) -> InPlace<u32> {
        if self.in_place {
            info!("in place");
            self.in_place = false;
        }
        InPlace::Declined(event)
    }

    fn idle(&self) -> Option<Idle> {
        None
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("counting");
    }

    fn type_name(&self) -> &'static str {
        "two"
    }
}

fn is_of_machine(note: &str) -> bool {
    note.starts_with("- machine ")
}

#[test]
fn each_event_is_in_its_machines_span_and_spawned_machines_have_one() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut test = TestLoop::<InSpan<Two>>::new(());
        test.add(|scope| {
            let span = info_span!("first");
            scope.notifier().wakeup();
            Response::ok(InSpan::new(Two { events: 1, in_place: true }, span))
        });
        test.settle();
        let told = notes.take();
        let expected = [
            "+ first",
            "> first",
            "first: in place",
            "< first",
            "> first",
            "first: wakeup",
            "< first",
            "+ machine",
            "> machine",
            "machine: made, 0 more",
            "< machine",
            "> first",
            "first: spawned",
            "< first",
            "> machine",
            "< machine",
            "> machine",
            "machine: wakeup",
            "< machine",
        ];
        let (closed, others): (Vec<_>, Vec<_>) = told.into_iter().partition(|n| is_of_machine(n));
        assert_eq!(others, expected);
        let [closed] = &closed[..] else { panic!("{closed:?}") };
        assert!(closed.contains("type=\"spans::machines::Two\"") && closed.contains("token="));
        test.advance(Duration::from_secs(1));
        assert_eq!(
            notes.take(),
            ["> first", "< first", "> first", "first: timeout", "< first", "- first "]
        );
    });
}

#[test]
fn a_machine_in_a_span_is_described_as_the_inner_machine() {
    let _alone = serialize_tests();
    let span = info_span!("nobody");
    let machine = InSpan::new(Two { events: 0, in_place: false }, span);
    assert_eq!(machine.type_name(), "two");
    let mut description = Description::new();
    machine.describe(&mut description);
    assert_eq!(description.state(), "counting");
    assert!(machine.idle().is_none() && machine.span().is_none());
}

/// Logs one event when it is accepted.
struct Guest;

impl Machine for Guest {
    type Context = ();
    type Seed = Infallible;
}

impl Accepted<ScriptedSocket> for Guest {
    type Shared = u8;

    fn accepted(
        _: ScriptedSocket,
        _: Option<SocketAddr>,
        shared: u8,
        _: &mut Scope<'_, ()>,
    ) -> Response<Self> {
        info!("accepted {shared}");
        Response::ok(Guest)
    }
}

#[test]
fn a_connection_has_a_span_that_names_its_peer() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut test = TestLoop::<Accept<InSpan<Guest>, ScriptedListener>>::new(());
        let (listener, door) = listener(test.world());
        test.add(|scope| Accept::listen(listener, 7, AcceptConfig::new(), scope));
        let _peer = door.connect_from(SocketAddr::from(([192, 0, 2, 1], 5)));
        test.settle();
        let told = notes.take();
        assert_eq!(told, ["+ machine", "> machine", "machine: accepted 7", "< machine"]);
        test.drain(Duration::ZERO);
        test.advance(Duration::from_secs(1));
        let told = notes.take();
        assert!(
            told.iter().any(|note| is_of_machine(note) && note.contains("peer=192.0.2.1:5")),
            "{told:?}"
        );
    });
}
