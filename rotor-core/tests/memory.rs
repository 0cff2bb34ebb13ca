//! The memory use of machines; and that nothing grows however long a loop runs.
//!
//! Runs in its own process, with a counting allocator; its tests run one at a time.
//!
//! Not with `--cfg rotor_handed`, which makes each loop allocate for its threads; this backend also
//! stays on its thread.
#![cfg(not(rotor_handed))]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rotor_core::{
    Config, Cursor, EventSet, ExitPolicy, Infallible, Loop, LoopInstance, Machine, Mailbox,
    Notifier, Response, Scope, Time, Verdict,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes currently allocated.
fn live_bytes() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// Only one test at a time counts allocations.
fn lock_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a machine does when it is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// Sets a deadline at a random time in the next 20 s.
    Rearm,
    /// Sets a deadline that has passed.
    Past,
    /// Wakes one of its parts with a new notifier, then ends on the next event.
    WakePart,
    /// Waits for a free slot, then ends on the next event.
    WaitForSlot,
    /// Sets a deadline, wakes itself, then ends.
    End,
}

struct RestlessMachine {
    habit: Habit,
    calls: u32,
}

impl RestlessMachine {
    fn next(mut self, scope: &mut Scope<'_, ()>) -> Response<Self, Habit> {
        self.calls += 1;
        let ahead = Duration::from_nanos(scope.random_u64() % 20_000_000_000);
        match self.habit {
            Habit::Rearm => Response::ok(self).deadline(scope.now() + ahead),
            Habit::Past => Response::ok(self).deadline(scope.now()),
            Habit::WakePart if self.calls == 1 => {
                scope.part(7).notifier().wakeup();
                Response::keep(self)
            }
            Habit::WaitForSlot if self.calls == 1 => {
                scope.part(7).wake_on_free_slot();
                Response::keep(self)
            }
            Habit::End if self.calls == 1 => {
                scope.notifier().wakeup();
                Response::ok(self).deadline(scope.now() + ahead)
            }
            Habit::WakePart | Habit::WaitForSlot | Habit::End => Response::done(),
        }
    }
}

impl Machine for RestlessMachine {
    type Context = ();
    type Seed = Habit;

    fn create(habit: Habit, _: &mut Scope<'_, ()>) -> Response<Self> {
        Response::ok(RestlessMachine { habit, calls: 0 })
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Habit> {
        self.next(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Self, Habit> {
        self.next(scope)
    }
}

/// A backend that reports the same events in every wait.
mod busy {
    use std::cell::{Cell, RefCell};
    use std::io;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use rotor_core::{Backend, BackendHandle, EventSet, Time, Token, Wake};

    #[derive(Clone, Default)]
    pub(crate) struct BusyBackend {
        now: Rc<Cell<u64>>,
        pub(crate) tokens: Rc<RefCell<Vec<Token>>>,
    }

    struct NoopWaker;

    impl Wake for NoopWaker {
        fn wake(&self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Backend for BusyBackend {
        type Handle = BusyBackend;

        fn handle(&self) -> io::Result<BusyBackend> {
            Ok(self.clone())
        }

        fn waker(&self) -> io::Result<Arc<dyn Wake>> {
            Ok(Arc::new(NoopWaker))
        }

        fn wait(&mut self, _: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
            self.now.set(self.now.get() + 3_000_000);
            ready.extend(self.tokens.borrow().iter().map(|token| (*token, EventSet::READABLE)));
            Ok(())
        }
    }

    impl BackendHandle for BusyBackend {
        fn name(&self) -> &str {
            "busy"
        }

        fn now(&self) -> Time {
            Time::ZERO + Duration::from_nanos(self.now.get())
        }

        fn wall_time(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }
}

/// Runs turns in which every machine is called, and replaces machines that have ended.
fn run(
    instance: &mut LoopInstance<RestlessMachine, busy::BusyBackend>,
    backend: &busy::BusyBackend,
    habit: Habit,
    turns: u32,
) {
    for _ in 0..turns {
        while let Ok(token) = instance.spawn(habit) {
            let mut tokens = backend.tokens.borrow_mut();
            tokens.retain(|old| old.into_usize() & 0xff_ffff != token.into_usize() & 0xff_ffff);
            tokens.push(token);
        }
        instance.turn(Some(Duration::ZERO)).expect("it never fails");
    }
}

#[test]
fn a_long_running_loop_does_not_grow_in_memory() {
    let _alone = lock_tests();
    for habit in [Habit::Rearm, Habit::Past, Habit::WakePart, Habit::WaitForSlot, Habit::End] {
        let backend = busy::BusyBackend::default();
        let config = Config::new().machines_max(50).exit(ExitPolicy::OnRequest).seed(5);
        let creator = Loop::<RestlessMachine, _>::with_backend(backend.clone(), &config)
            .expect("nothing can fail");
        let mut instance = creator.instantiate(());
        run(&mut instance, &backend, habit, 200);
        let before = live_bytes();
        run(&mut instance, &backend, habit, 4_000);
        let grown = live_bytes() - before;
        // 200,000 calls: a leak of one byte per call would show.
        assert!(grown < 16 * 1024, "{habit:?}: {grown} bytes more");
    }
}

/// An idle machine with 64 bytes of state.
struct Idle {
    _state: [u64; 8],
}

impl Machine for Idle {
    type Context = ();
    type Seed = Time;

    fn create(deadline: Time, _: &mut Scope<'_, ()>) -> Response<Self> {
        Response::ok(Idle { _state: [1; 8] }).deadline(deadline)
    }
}

/// Bytes used by a loop with this many idle machines, each with a deadline.
fn bytes_of_loop(machines: usize) -> i64 {
    let before = live_bytes();
    let config = Config::new().machines_max(machines);
    let mut instance = Loop::<Idle>::new(&config).expect("there are descriptors").instantiate(());
    for index in 0..machines {
        let deadline = Time::from_nanos(1_000_000_000_000 + index as u64 * 777_777);
        instance.spawn(deadline).expect("there is room");
    }
    live_bytes() - before
}

#[test]
fn an_idle_machine_of_64_bytes_costs_at_most_40_more() {
    let _alone = lock_tests();
    let sizes = [10_000, 20_000, 50_000, 100_000];
    let bytes = sizes.map(bytes_of_loop);
    for (size, bytes) in sizes.windows(2).zip(bytes.windows(2)) {
        let each = (bytes[1] - bytes[0]) as f64 / (size[1] - size[0]) as f64;
        // Half a byte for allocations of the test harness in the meantime.
        assert!(each < 104.5, "{each} bytes from {} to {} machines", size[0], size[1]);
    }
}

#[test]
fn events_wakeups_and_deadlines_do_not_allocate() {
    struct QuietMachine;
    impl Machine for QuietMachine {
        type Context = u32;
        type Seed = ();
        fn create((): (), _: &mut Scope<'_, u32>) -> Response<Self> {
            Response::ok(QuietMachine)
        }
        fn ready(self, _: EventSet, scope: &mut Scope<'_, u32>) -> Response<Self, ()> {
            **scope += 1;
            scope.notifier().wakeup();
            Response::ok(self).deadline(scope.now() + Duration::from_millis(2))
        }
        fn timeout(self, scope: &mut Scope<'_, u32>) -> Response<Self, ()> {
            **scope += 1;
            Response::ok(self).deadline(scope.now())
        }
        fn wakeup(self, scope: &mut Scope<'_, u32>) -> Response<Self, ()> {
            **scope += 1;
            let (_, early) = scope.split();
            assert!(!early.has_free_slot());
            Response::keep(self)
        }
    }
    let _alone = lock_tests();
    let backend = busy::BusyBackend::default();
    let config = Config::new().machines_max(10).exit(ExitPolicy::OnRequest);
    let creator =
        Loop::<QuietMachine, _>::with_backend(backend.clone(), &config).expect("nothing can fail");
    let mut instance = creator.instantiate(0);
    while let Ok(token) = instance.spawn(()) {
        backend.tokens.borrow_mut().push(token);
    }
    let mut turns = |count: u32| {
        for _ in 0..count {
            instance.turn(Some(Duration::ZERO)).expect("it never fails");
        }
        *instance.context()
    };
    turns(100);
    // The harness sometimes allocates on its own threads, so the best of several attempts counts.
    let fewest = (0..10).map(|_| {
        let before = ALLOCATOR.stats().allocations;
        turns(100);
        ALLOCATOR.stats().allocations - before
    });
    assert_eq!(fewest.min(), Some(0));
    assert!(turns(0) > 20_000);
}

#[test]
fn a_notifier_allocates_no_memory() {
    let _alone = lock_tests();
    let mut instance =
        Loop::<Idle>::new(&Config::new()).expect("there are descriptors").instantiate(());
    let mut notifiers: Vec<Notifier> = Vec::with_capacity(30_000);
    // The harness may start a thread meanwhile, whose allocations count, but not each time.
    let allocated = [(); 3].map(|()| {
        let before = live_bytes();
        let made = instance.add_machine_with(|scope| {
            notifiers.extend((0..10_000).map(|_| scope.notifier()));
            Response::ok(Idle { _state: [0; 8] })
        });
        made.expect("there is room");
        live_bytes() - before
    });
    let least = allocated.into_iter().min().expect("there are three");
    assert!(least < 5_000, "half a byte each, for what the harness allocates: {allocated:?}");
}

/// One of many machines that are called together. It may be the one that has a mailbox.
struct BurstMachine {
    mailbox: Option<Mailbox<u64>>,
}

impl Machine for BurstMachine {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        **scope += self
            .mailbox
            .iter_mut()
            .flat_map(|mailbox| std::iter::from_fn(|| mailbox.receive()))
            .count() as u64;
        Response::keep(self)
    }
}

#[test]
fn the_memory_of_a_burst_of_messages_and_calls_is_released() {
    const MACHINES: usize = 60_000;
    const MESSAGES: u64 = 1_000_000;
    let _alone = lock_tests();
    let config = Config::new().exit(ExitPolicy::OnRequest).scan_budget(MACHINES);
    let mut creator = Loop::<BurstMachine, _>::with_backend(busy::BusyBackend::default(), &config)
        .expect("there is room");
    let mut sender = None;
    for index in 0..MACHINES {
        let made = creator.add_machine_with(|scope| {
            let mailbox = (index == 0).then(|| {
                let (sends, mailbox) = scope.create_mailbox(usize::MAX);
                sender = Some(sends);
                mailbox
            });
            Response::ok(BurstMachine { mailbox })
                .deadline(scope.now() + Duration::from_secs(1_000))
        });
        made.expect("there is room");
    }
    let sender = sender.expect("the closure ran");
    let mut instance = creator.instantiate(0);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    let before = live_bytes();
    (0..MESSAGES).for_each(|message| sender.send(message).expect("there is room"));
    for verdict in [Verdict::Wake, Verdict::Expire, Verdict::Drain] {
        instance.machines().scan(Cursor::START, |_, _| verdict);
        // As many turns as all calls take, given the budgets of a turn.
        for _ in 0..2 + MACHINES / 1_000 {
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        }
    }
    let stats = instance.stats().read();
    assert_eq!(
        (*instance.context(), stats.wakeups, stats.timeouts),
        (MESSAGES, 1 + MACHINES as u64, MACHINES as u64)
    );
    let left = live_bytes() - before;
    assert!(left < 128 * 1024, "{left} bytes");
}
