//! `Compose2`, `rotor_compose!` and `BoxMachine` forward every event, and default methods change
//! nothing.

mod counting;

use std::any::type_name;
use std::sync::mpsc;
use std::time::Duration;

use rotor_core::{
    BoxMachine, BoxSeed, Compose2, Config, Cursor, Description, EventSet, ExitPolicy, Idle,
    Infallible, LoopInstance, Machine, MachineFailure, Response, Scope, Time, Verdict,
    rotor_compose,
};

use self::counting::{CallCounter, InPlaceCounter, Layer, Make};
pub(crate) use self::counting::{CallRecorder, Log};
use crate::manual::{Manual, settle};

const SECOND: Duration = Duration::from_secs(1);

/// Takes a machine through every call; returns what it recorded, with the loop's next deadline
/// after each call.
fn drive<M: Machine<Context = Log> + 'static>(seed: impl Fn(Make) -> M::Seed) -> Vec<String> {
    let manual = Manual::new();
    let started = manual.now();
    let names = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = names.clone();
    let config =
        Config::new().machines_max(2).exit(ExitPolicy::OnRequest).observer(move |failure| {
            seen.lock().expect("nothing panics in here").push(failure.machine);
        });
    let mut instance: LoopInstance<M, Manual> = manual.creator(&config).instantiate(Log::default());
    let token = instance.spawn(seed(Make::Machine)).expect("there is room");
    let step = |instance: &mut LoopInstance<M, Manual>| {
        settle(instance);
        let next = instance.next_deadline().map(|next| next - started);
        instance.context_mut().record(format!("next {next:?}"));
    };
    step(&mut instance);
    // The first spawn makes no machine and the second makes one. The third finds no free slot, and
    // its seed comes back.
    for events in [EventSet::WRITABLE, EventSet::READABLE, EventSet::READABLE] {
        manual.feed(token, events);
        step(&mut instance);
    }
    for verdict in [Verdict::Wake, Verdict::Drain, Verdict::Expire] {
        let _ = instance
            .machines()
            .scan(Cursor::START, |met, _| if met == token { verdict } else { Verdict::Keep });
        step(&mut instance);
    }
    let idle = instance.machines().get(token).and_then(Machine::idle);
    assert_eq!(idle, Some(Idle::since(Time::from_nanos(11))));
    let mut description = Description::new();
    instance.machines().get(token).expect("it is alive").describe(&mut description);
    assert_eq!((description.state(), description.messages()), ("counting calls", 11));
    manual.feed(token, EventSet::ERROR);
    step(&mut instance);
    let mut log = std::mem::take(&mut instance.context_mut().0);
    log.extend(names.lock().expect("nothing panics in here").iter().map(ToString::to_string));
    log
}

rotor_compose! {
    /// Two types of counting machines, a box, and two more types.
    pub(crate) enum Three / ThreeSeed <Log> {
        /// Parts may have doc comments.
        First(CallCounter<1>),
        Second(CallCounter<2>),
        Boxed(BoxMachine<Log>),
        InPlaceCounter(InPlaceCounter),
        Layered(Layer),
    }
}

rotor_compose! {
    enum Single / SingleSeed <Log> {
        Only(CallCounter<1>)
    }
}

rotor_compose! {
    /// A composed machine without a name for its seed type.
    pub(crate) enum Seedless <Log> {
        First(CallCounter<1>),
        Second(CallCounter<2>),
    }
}

/// Names the seed type of `Seedless` through the associated type.
type SeedlessSeed = <Seedless as Machine>::Seed;

rotor_compose! {
    /// The context is a concrete type and another type is generic; there are bounds in both places.
    pub(crate) enum Either<M: Machine<Context = Log>, N> / EitherSeed <Log> where [N: Machine<Context = Log>] {
        One(M),
        Other(N),
    }
}

rotor_compose! {
    enum Alone<M: Machine<Context = Log>> <Log> {
        Only(M),
    }
}

type AloneSeed<M> = <Alone<M> as Machine>::Seed;

#[test]
fn in_place_calls_behave_the_same_through_every_wrapper() {
    let in_place = drive::<InPlaceCounter>(|make| make);
    let notes: Vec<&str> =
        in_place.iter().map(String::as_str).filter(|note| note.ends_with("in place")).collect();
    // Three readiness events; the wake-up, then readiness again since the response was `again`; the
    // drain and the deadline; the request for room, to both machines; the last edge.
    let (yes, no) = ("in place", "not in place");
    assert_eq!(notes, [yes, yes, yes, no, yes, yes, yes, yes, yes, yes]);
    let mut same = in_place.clone();
    same.retain(|note| !note.ends_with("in place"));
    assert_eq!(same, drive::<CallCounter<1>>(|make| make));
    assert_eq!(drive::<Compose2<InPlaceCounter, CallCounter<2>>>(Compose2::A), in_place);
    assert_eq!(drive::<Compose2<CallCounter<1>, InPlaceCounter>>(Compose2::B), in_place);
    assert_eq!(drive::<Three>(ThreeSeed::InPlaceCounter), in_place);
    assert_eq!(drive::<BoxMachine<Log>>(BoxSeed::new::<InPlaceCounter>), in_place);
}

#[test]
fn every_wrapper_forwards_every_event_and_every_answer() {
    let bare = drive::<CallCounter<1>>(|make| make);
    let calls = [
        "create Machine",
        "next Some(50s)",
        "ready {WRITABLE} 1",
        "create Nothing",
        "spawn_error Ended None 2",
        "next Some(48s)",
        "ready {READABLE} 3",
        "create Machine",
        "spawned 4",
        "next Some(46s)",
        "ready {READABLE} 5",
        "spawn_error SlabFull Some(Machine) 6",
        "next Some(44s)",
        "wakeup 7",
        "ready {} 8",
        "next Some(43s)",
        "draining 0ns 9",
        "next Some(41s)",
        "timeout 10",
        // The machine that it spawned has been idle longer, and stays.
        "make_room 1",
        "make_room 11",
        "next Some(39s)",
        "ready {ERROR} 12",
        "next Some(49s)",
        "counting",
    ];
    assert_eq!(bare, calls);
    assert_eq!(drive::<Compose2<CallCounter<1>, CallCounter<2>>>(Compose2::A), bare);
    assert_eq!(drive::<Compose2<CallCounter<1>, CallCounter<2>>>(Compose2::B), bare);
    assert_eq!(drive::<Three>(ThreeSeed::First), bare);
    assert_eq!(drive::<Three>(ThreeSeed::Second), bare);
    assert_eq!(drive::<Three>(|make| ThreeSeed::Boxed(BoxSeed::new::<CallCounter<3>>(make))), bare);
    assert_eq!(drive::<Three>(ThreeSeed::Layered), bare);
    assert_eq!(drive::<BoxMachine<Log>>(BoxSeed::new::<Layer>), bare);
    assert_eq!(drive::<Single>(SingleSeed::Only), bare);
    assert_eq!(drive::<Seedless>(SeedlessSeed::Second), bare);
    assert_eq!(
        drive::<Either<Single, CallCounter<2>>>(|make| EitherSeed::One(SingleSeed::Only(make))),
        bare
    );
    assert_eq!(drive::<Either<Single, CallCounter<2>>>(EitherSeed::Other), bare);
    assert_eq!(drive::<Alone<Seedless>>(|make| AloneSeed::Only(SeedlessSeed::First(make))), bare);
    assert_eq!(drive::<BoxMachine<Log>>(BoxSeed::new::<CallCounter<1>>), bare);
    assert_eq!(
        drive::<BoxMachine<Log>>(|make| BoxSeed::new::<Three>(ThreeSeed::Second(make))),
        bare
    );
    assert_eq!(
        drive::<Compose2<BoxMachine<Log>, Three>>(|make| Compose2::B(ThreeSeed::First(make))),
        bare
    );
}

#[test]
fn a_part_that_cannot_be_made_leaves_the_loop_unchanged() {
    let manual = Manual::new();
    let mut creator = manual.creator::<Single>(&Config::new().machines_max(1));
    let mut add = |made: Result<(u8, Response<CallCounter<1>>), rotor_core::BoxError>| {
        let error = creator.add_part(Single::Only, |_| made).err()?;
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Some((error.to_string(), cause.unwrap_or_default()))
    };
    let failed =
        |cause: &str| Some(("the machine could not be made".to_string(), cause.to_string()));
    assert_eq!(add(Err("no handle".into())), failed("no handle"));
    assert_eq!(add(Ok((1, Response::error("no machine")))), failed("no machine"));
    let ended = Some(("the machine ended while it was made".to_string(), String::new()));
    assert_eq!(add(Ok((1, Response::done()))), ended);
    assert_eq!(add(Ok((1, Response::ok(CallCounter { calls: 0 })))), None);
    let full = Some(("no slot is free (Config::machines_max)".to_string(), String::new()));
    assert_eq!(add(Ok((1, Response::ok(CallCounter { calls: 0 })))), full);
    assert_eq!(creator.instantiate(Log::default()).machines().len(), 1);
}

#[test]
fn a_boxed_seed_downcasts_only_to_its_own_machine_type() {
    let seed = BoxSeed::new::<CallCounter<1>>(Make::Machine);
    let seed = seed.downcast::<CallCounter<2>>().expect_err("the same seed of another machine");
    assert_eq!(seed.downcast::<CallCounter<1>>().ok(), Some(Make::Machine));
}

/// A machine with a deadline and only the required methods.
struct PlainMachine;

impl Machine for PlainMachine {
    type Context = ();
    type Seed = bool;

    fn create(alive: bool, _: &mut Scope<'_, ()>) -> Response<Self> {
        if alive { Response::ok(PlainMachine) } else { Response::done() }
    }

    fn ready(self, events: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, bool> {
        if events.contains(EventSet::ERROR) {
            return Response::ok(self).deadline(scope.now() + SECOND);
        }
        Response::spawn(self, events.contains(EventSet::READABLE))
    }
}

#[test]
fn every_default_method_leaves_the_deadline_unchanged() {
    for call in ["spawned", "spawn_error", "wakeup", "draining", "timeout"] {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), (), |_| Response::ok(PlainMachine));
        let token = instance.machines().iter().next().expect("there is one").0;
        manual.feed(token, EventSet::ERROR);
        settle(&mut instance);
        let before = instance.next_deadline();
        assert_eq!(before, Some(manual.now() + SECOND));
        let verdict = match call {
            "spawned" => {
                manual.feed(token, EventSet::READABLE);
                Verdict::Keep
            }
            "spawn_error" => {
                manual.feed(token, EventSet::WRITABLE);
                Verdict::Keep
            }
            "wakeup" => Verdict::Wake,
            "draining" => Verdict::Drain,
            _ => Verdict::Expire,
        };
        let _ = instance
            .machines()
            .scan(Cursor::START, |met, _| if met == token { verdict } else { Verdict::Keep });
        settle(&mut instance);
        let kept = if call == "timeout" { None } else { before };
        assert_eq!(instance.next_deadline(), kept, "{call}");
        assert!(instance.machines().get(token).is_some(), "{call}");
    }
}

#[test]
fn a_machine_is_named_by_its_type_unless_it_overrides_the_name() {
    assert_eq!(PlainMachine.type_name(), type_name::<PlainMachine>());
    assert_eq!(Three::First(CallCounter { calls: 0 }).type_name(), "counting");
    assert_eq!(BoxMachine::<()>::new(PlainMachine).type_name(), type_name::<PlainMachine>());
    let both: Compose2<PlainMachine, BoxMachine<()>> = Compose2::A(PlainMachine);
    assert_eq!(both.type_name(), type_name::<PlainMachine>());
}

/// Panics in its handler, or returns an error.
struct FailingMachine {
    panics: bool,
}

impl Machine for FailingMachine {
    type Context = ();
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        assert!(!self.panics, "in a handler");
        Response::error("it has failed")
    }
}

/// At that point the handler owns the composed machine, and the box is empty.
#[test]
fn a_part_that_fails_is_reported_by_its_own_name_even_inside_a_box() {
    let (report, reported) = mpsc::channel();
    let observed = move |failure: &MachineFailure<'_>| {
        report.send(failure.machine.to_string()).expect("the test waits");
    };
    let config = Config::new().exit(ExitPolicy::OnRequest).observer(observed);
    for panics in [true, false] {
        let part = || Compose2::<PlainMachine, FailingMachine>::B(FailingMachine { panics });
        let manual = Manual::new();
        let mut bare = manual.start(&config, (), |_| Response::again(part()));
        settle(&mut bare);
        let mut boxed = manual.start(&config, (), |_| Response::again(BoxMachine::new(part())));
        settle(&mut boxed);
        let names: Vec<_> = reported.try_iter().collect();
        assert_eq!(names, [type_name::<FailingMachine>(); 2], "panics: {panics}");
    }
}
