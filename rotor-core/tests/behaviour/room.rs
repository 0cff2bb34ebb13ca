//! Room: a machine that finds no free slot asks for room, and the machines that have been idle
//! longest make it.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::{
    Config, EventSet, Exit, ExitPolicy, Idle, LoopInstance, Machine, Response, Room, Scope, Time,
    Token,
};

use crate::manual::{Manual, settle};

const SECOND: Duration = Duration::from_secs(1);

/// What happened, in order.
#[derive(Default)]
struct RoomLog {
    notes: Vec<String>,
}

/// `Asker` asks for room when an event comes, and may spawn when a slot is free. `Idler` may be
/// asked to make room.
enum TestMachine {
    Asker { name: &'static str, room: Room, spawns: bool },
    Idler { number: u32, idle: Option<Idle>, action: IdlerAction, asked: Arc<AtomicU32> },
}

/// What an idler does when it is asked to make room.
#[derive(Clone, Copy, PartialEq)]
enum IdlerAction {
    End,
    Fail,
    Stay,
    Panic,
    /// It stays, and stops the loop.
    Stop,
    /// It stays, and asks for room itself.
    Ask,
    /// It panics in `idle`.
    PanicAsIdle,
}

impl Machine for TestMachine {
    type Context = RoomLog;
    type Seed = &'static str;

    fn create(name: &'static str, scope: &mut Scope<'_, RoomLog>) -> Response<Self> {
        scope.notes.push(format!("{name} has a slot"));
        Response::ok(TestMachine::Asker { name, room: Room::new(), spawns: false })
    }

    fn ready(
        self,
        events: EventSet,
        scope: &mut Scope<'_, RoomLog>,
    ) -> Response<Self, &'static str> {
        match self {
            TestMachine::Asker { ref room, .. } if events.is_readable() => {
                scope.wake_on_free_slot();
                scope.ask_for_room(room.clone());
                Response::ok(self)
            }
            TestMachine::Idler { number, action, asked, .. } => {
                let idle = Some(Idle::since(scope.now()));
                Response::ok(TestMachine::Idler { number, idle, action, asked })
            }
            TestMachine::Asker { .. } => Response::done(),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, RoomLog>) -> Response<Self, &'static str> {
        if let TestMachine::Asker { name, spawns, .. } = &self {
            let name = *name;
            scope.notes.push(format!("{name} was woken"));
            if *spawns && scope.has_free_slot() {
                return Response::spawn(self, name);
            }
        }
        Response::ok(self)
    }

    fn idle(&self) -> Option<Idle> {
        let TestMachine::Idler { idle, action, asked, .. } = self else { return None };
        asked.fetch_add(1, SeqCst);
        assert!(*action != IdlerAction::PanicAsIdle, "a bug in a query");
        *idle
    }

    fn make_room(self, scope: &mut Scope<'_, RoomLog>) -> Response<Self, &'static str> {
        let TestMachine::Idler { number, action, .. } = self else {
            return Response::error("it said nothing of the kind");
        };
        scope.notes.push(format!("{number} was asked"));
        match action {
            IdlerAction::End => Response::done(),
            IdlerAction::Fail => Response::error("it had something to lose"),
            IdlerAction::Panic => panic!("a bug as it ends"),
            IdlerAction::Stop => {
                scope.stop_loop();
                Response::keep(self)
            }
            IdlerAction::Ask => {
                // Otherwise a turn that asks again and again would never end.
                assert!(scope.notes.len() < 100, "the turn does not end");
                scope.ask_for_room(Room::new());
                Response::keep(self)
            }
            _ => Response::keep(self),
        }
    }
}

/// A loop on a clock that stands still, one hour after its start.
struct TestLoop {
    manual: Manual,
    instance: LoopInstance<TestMachine, Manual>,
    /// How often `idle` was called on machines.
    asked: Arc<AtomicU32>,
    idlers_added: u32,
}

impl TestLoop {
    fn new(config: Config) -> TestLoop {
        let manual = Manual::new();
        manual.advance(3_600 * SECOND);
        let instance =
            manual.creator(&config.exit(ExitPolicy::OnRequest)).instantiate(RoomLog::default());
        TestLoop { manual, instance, asked: Default::default(), idlers_added: 0 }
    }

    fn asked(&self) -> u32 {
        self.asked.load(SeqCst)
    }

    fn add(&mut self, machine: TestMachine) -> Token {
        self.instance.add_machine_with(|_| Response::ok(machine)).expect("there is room")
    }

    fn asker(&mut self, name: &'static str, room: Room) -> Token {
        self.add(TestMachine::Asker { name, room, spawns: true })
    }

    /// Adds a machine that became idle this many seconds ago; `action` is what it does when it is
    /// asked to make room. Idlers are numbered from 0.
    fn idler(&mut self, seconds: u32, action: IdlerAction) -> Token {
        let idle = Some(Idle::since(self.manual.now() - seconds * SECOND));
        self.idler_like(idle, action)
    }

    /// Adds `count` such machines, which end when asked.
    fn idlers(&mut self, count: u32, seconds: u32) {
        for _ in 0..count {
            self.idler(seconds, IdlerAction::End);
        }
    }

    fn idler_like(&mut self, idle: Option<Idle>, action: IdlerAction) -> Token {
        let (number, asked) = (self.idlers_added, self.asked.clone());
        self.idlers_added += 1;
        self.add(TestMachine::Idler { number, idle, action, asked })
    }

    fn ask(&mut self, asker: Token) {
        self.manual.feed(asker, EventSet::READABLE);
    }

    fn turn(&mut self) {
        self.instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        self.instance.check_invariants().expect("the books agree");
    }

    fn take_notes(&mut self) -> Vec<String> {
        settle(&mut self.instance);
        std::mem::take(&mut self.instance.context_mut().notes)
    }

    /// The machines that were asked to make room.
    fn take_asked(&mut self) -> Vec<u32> {
        let asked = |note: String| note.strip_suffix(" was asked")?.parse().ok();
        self.take_notes().into_iter().filter_map(asked).collect()
    }

    fn made_room(&self) -> u64 {
        self.instance.stats().read().made_room
    }
}

#[test]
fn the_longest_idle_machine_ends_and_its_slot_goes_to_the_waiter() {
    let mut test_loop = TestLoop::new(Config::new().machines_max(5));
    let asker = test_loop.asker("listener", Room::new());
    for seconds in [3, 9, 5, 2] {
        test_loop.idler(seconds, IdlerAction::End);
    }
    for expected in ["1", "2", "0", "3"] {
        test_loop.ask(asker);
        let notes = test_loop.take_notes();
        assert_eq!(
            notes,
            [&format!("{expected} was asked"), "listener was woken", "listener has a slot"]
        );
    }
    assert_eq!((test_loop.made_room(), test_loop.instance.stats().read().ended), (4, 4));
}

#[test]
fn exactly_the_requested_number_of_machines_ends_in_one_turn() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new().machines(3));
    test_loop.idlers(5, 10);
    test_loop.ask(asker);
    test_loop.ask(asker);
    test_loop.turn();
    assert_eq!((test_loop.made_room(), test_loop.instance.machines().len()), (3, 3));
    assert_eq!(test_loop.take_notes().len(), 3 + 2, "one wake-up, and one slot was wanted");
}

#[test]
fn busy_and_recently_busy_machines_stay_and_nobody_is_woken() {
    let mut test_loop = TestLoop::new(Config::new().machines_max(4));
    let asker = test_loop.asker("listener", Room::new());
    test_loop.idler(1, IdlerAction::End);
    test_loop.idler_like(None, IdlerAction::End);
    test_loop.idler_like(Some(Idle::since(Time::NEVER)), IdlerAction::End);
    test_loop.ask(asker);
    assert!(test_loop.take_notes().is_empty());
    assert_eq!(test_loop.instance.next_deadline(), None, "the loop does not go on looking");
    // Once it has been idle long enough, a new request ends it.
    test_loop.manual.advance(SECOND);
    test_loop.ask(asker);
    assert_eq!(
        test_loop.take_notes(),
        ["0 was asked", "listener was woken", "listener has a slot"]
    );
}

#[test]
fn a_candidate_that_became_busy_is_not_asked_for_room() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    let oldest = test_loop.idler(9, IdlerAction::End);
    let busy = test_loop.idler(8, IdlerAction::End);
    test_loop.idler(7, IdlerAction::End);
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [0]);
    assert!(test_loop.instance.machines().get(oldest).is_none());
    test_loop.manual.feed(busy, EventSet::READABLE);
    settle(&mut test_loop.instance);
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [2]);
}

/// Its wake-up was spurious: it is as idle as before.
#[test]
fn a_spuriously_woken_machine_stays_the_oldest_for_the_next_request() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    let (idle, asked) =
        (Some(Idle::since(test_loop.manual.now() - 9 * SECOND)), test_loop.asked.clone());
    let mut notifier = None;
    let made = test_loop.instance.add_machine_with(|scope| {
        notifier = Some(scope.notifier());
        Response::ok(TestMachine::Idler { number: 7, idle, action: IdlerAction::End, asked })
    });
    made.expect("there is room");
    let notifier = notifier.expect("the closure ran");
    // The closure runs after the wake-ups of its turn and before the search for room.
    let post = move |_: rotor_core::Machines<'_, TestMachine>,
                     _: &mut rotor_core::GlobalScope<'_, RoomLog>| {
        assert!(notifier.wakeup());
    };
    test_loop.instance.broadcast().post(post).expect("there is room");
    test_loop.ask(asker);
    test_loop.turn();
    assert_eq!(test_loop.made_room(), 0, "its wake-up is on its way");
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [7]);
}

/// As the documentation of `Machine::make_room` promises. This does not change what the others
/// cost.
#[test]
fn an_idle_machine_that_stays_is_asked_again_by_the_next_request() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    test_loop.idler(9, IdlerAction::Stay);
    test_loop.idlers(2, 5);
    test_loop.ask(asker);
    let first = test_loop.take_asked();
    test_loop.ask(asker);
    let second = test_loop.take_asked();
    assert!(first.starts_with(&[0]) && second.starts_with(&[0]), "{first:?} {second:?}");
    assert_eq!((first.len(), second.len(), test_loop.made_room()), (2, 2, 2));
}

/// `wakeup` returned true, so the machine must get that wake-up.
#[test]
fn a_machine_with_a_pending_wakeup_is_not_asked_for_room() {
    let mut test_loop = TestLoop::new(Config::new().wakeups_per_turn(1));
    let asker = test_loop.asker("listener", Room::new().machines(3));
    let mut notifiers = Vec::new();
    for (number, seconds) in [(0, 9), (1, 8), (2, 7)] {
        let idle = Some(Idle::since(test_loop.manual.now() - seconds * SECOND));
        let asked = test_loop.asked.clone();
        let make = |scope: &mut Scope<'_, RoomLog>| {
            notifiers.push(scope.notifier());
            Response::ok(TestMachine::Idler { number, idle, action: IdlerAction::End, asked })
        };
        test_loop.instance.add_machine_with(make).expect("there is room");
    }
    // One of the two is called in this turn, the other in the next turn.
    assert!(notifiers[..2].iter().all(rotor_core::Notifier::wakeup));
    test_loop.ask(asker);
    test_loop.turn();
    assert_eq!(test_loop.made_room(), 2, "{:?}", test_loop.instance.context().notes);
    test_loop.manual.advance(2 * SECOND);
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked().len(), 3, "afterwards it is as idle as they were");
}

#[test]
fn machines_that_stay_or_fail_do_not_reduce_the_room_made() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new().machines(2));
    for (seconds, action) in [
        (9, IdlerAction::PanicAsIdle),
        (8, IdlerAction::Stay),
        (7, IdlerAction::Panic),
        (6, IdlerAction::Fail),
        (5, IdlerAction::End),
    ] {
        test_loop.idler(seconds, action);
    }
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [1, 2, 3, 4]);
    let stats = test_loop.instance.stats().read();
    assert_eq!((stats.made_room, stats.failed, stats.panicked, stats.alive), (2, 1, 1, 4));
}

#[test]
fn a_machine_asked_for_room_can_stop_the_loop_in_that_turn() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    test_loop.idler(9, IdlerAction::Stop);
    test_loop.ask(asker);
    let ended = test_loop.instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(ended, Some(Exit::Stopped));
}

#[test]
fn a_listener_at_its_limit_gets_room_from_its_own_connections() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    let own = test_loop.add(TestMachine::Asker {
        name: "limited",
        room: Room::new().of_listener(asker),
        spawns: false,
    });
    let now = test_loop.manual.now();
    test_loop.idler(60, IdlerAction::End);
    test_loop.idler_like(Some(Idle::since(now - 50 * SECOND).accepted_by(own)), IdlerAction::End);
    test_loop.idler_like(Some(Idle::since(now - 9 * SECOND).accepted_by(asker)), IdlerAction::End);
    test_loop.ask(own);
    assert_eq!(test_loop.take_asked(), [2]);
    test_loop.ask(own);
    assert_eq!(test_loop.take_asked(), [0; 0], "it has no other");
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [0], "for a slot anybody will do");
}

#[test]
fn a_search_for_room_is_split_by_the_scan_budget_without_sleeping() {
    let mut test_loop = TestLoop::new(Config::new().scan_budget(10));
    let asker = test_loop.asker("listener", Room::new());
    test_loop.idlers(34, 5);
    let oldest = test_loop.idlers_added;
    test_loop.idler(6, IdlerAction::End);
    test_loop.ask(asker);
    for looked in [9, 19, 29] {
        test_loop.turn();
        assert_eq!((test_loop.asked(), test_loop.made_room()), (looked, 0));
        assert!(
            test_loop.instance.next_deadline() <= Some(test_loop.instance.now()),
            "there is more to do"
        );
    }
    test_loop.turn();
    assert_eq!(test_loop.made_room(), 1);
    assert_eq!(test_loop.take_asked(), [oldest]);
}

#[test]
fn a_thousand_requests_for_room_cost_one_walk_over_the_slots() {
    let mut test_loop = TestLoop::new(Config::new().machines_max(4_000));
    let asker = test_loop.asker("listener", Room::new().machines(10));
    test_loop.idlers(3_000, 5);
    for round in 1..=100 {
        test_loop.ask(asker);
        settle(&mut test_loop.instance);
        assert_eq!(test_loop.made_room(), 10 * round);
    }
    // Each machine that ended was asked a second time just before.
    assert_eq!(test_loop.asked(), 3_000 + 1_000);
    test_loop.ask(asker);
    test_loop.ask(asker);
    test_loop.ask(asker);
    (0..3).for_each(|_| test_loop.turn());
    assert!(
        test_loop.asked() <= 3_000 + 1_024 + 2_000 + 10,
        "and the next for as many: {}",
        test_loop.asked()
    );
}

#[test]
fn failed_requests_cost_no_walk_before_a_machine_can_be_idle_enough() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    (0..100).for_each(|_| {
        test_loop.idler_like(None, IdlerAction::End);
    });
    let busy = test_loop.idler(1, IdlerAction::End);
    test_loop.ask(asker);
    settle(&mut test_loop.instance);
    assert_eq!(test_loop.asked(), 101);
    for _ in 0..20 {
        test_loop.manual.advance(Duration::from_millis(99));
        test_loop.manual.feed(busy, EventSet::READABLE);
        test_loop.ask(asker);
        settle(&mut test_loop.instance);
    }
    assert!(test_loop.asked() <= 101 + 20, "{}", test_loop.asked());
    test_loop.manual.advance(2 * SECOND);
    test_loop.ask(asker);
    assert_eq!(test_loop.take_asked(), [100]);
}

#[test]
fn a_request_for_room_is_dropped_when_its_machine_ends() {
    let mut test_loop = TestLoop::new(Config::new().scan_budget(2));
    let [gone, asker] = ["gone", "listener"].map(|name| test_loop.asker(name, Room::new()));
    test_loop.idlers(5, 5);
    test_loop.ask(gone);
    test_loop.turn();
    assert_eq!(test_loop.made_room(), 0, "it is still being looked for");
    test_loop.manual.feed(gone, EventSet::WRITABLE);
    settle(&mut test_loop.instance);
    assert_eq!(test_loop.made_room(), 0);
    test_loop.ask(asker);
    settle(&mut test_loop.instance);
    assert_eq!(test_loop.made_room(), 1);
}

#[test]
fn simultaneous_requests_for_room_are_served_in_order() {
    let mut test_loop = TestLoop::new(Config::new().machines_max(5));
    let askers = ["a", "b", "c"].map(|name| test_loop.asker(name, Room::new()));
    test_loop.idlers(2, 5);
    askers.into_iter().for_each(|asker| test_loop.ask(asker));
    let notes = test_loop.take_notes();
    let served = |name: &str| notes.contains(&format!("{name} has a slot"));
    assert_eq!((served("a"), served("b"), served("c")), (true, true, false), "{notes:?}");
}

#[test]
fn requests_for_room_made_while_others_are_served_wait_for_the_next_turn() {
    let mut test_loop = TestLoop::new(Config::new());
    let asker = test_loop.asker("listener", Room::new());
    for seconds in [9, 8] {
        test_loop.idler(seconds, IdlerAction::Ask);
    }
    test_loop.ask(asker);
    // One request, then those of both machines, then that of the first machine.
    for expected in [2, 4, 2] {
        test_loop.turn();
        let notes = std::mem::take(&mut test_loop.instance.context_mut().notes);
        let asked = notes.iter().filter(|note| note.ends_with(" was asked")).count();
        assert_eq!(asked, expected, "{notes:?}");
    }
}
