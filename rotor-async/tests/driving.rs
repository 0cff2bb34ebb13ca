//! What a machine that polls a future may rely on, and what the future may rely on.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rotor_async::{Driven, Poller, Task, TaskSeed, sleep, sleep_until, wait};
use rotor_core::{Blocking, Config, FutureError, Infallible, Loop, Machine, Port, Response, Scope};
use rotor_stream::testing::TestLoop;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What the machine has recorded.
#[derive(Default)]
struct World {
    polls: u32,
    value: Option<u32>,
}

/// Drives a future that returns a number, and continues after its end.
struct DrivingMachine(Driven<u32>);

impl DrivingMachine {
    fn poll(mut self, scope: &mut Scope<'_, World>) -> Response<Self> {
        scope.polls += 1;
        if let Poll::Ready(value) = self.0.poll(scope) {
            assert!(scope.value.replace(value).is_none(), "it ends once");
        }
        let deadline = self.0.deadline();
        Response::ok(self).deadline_opt(deadline)
    }
}

impl Machine for DrivingMachine {
    type Context = World;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, World>) -> Response<Self> {
        self.poll(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, World>) -> Response<Self> {
        self.poll(scope)
    }
}

/// Counts its drops.
struct DropCounter(Rc<Cell<u32>>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A loop with a machine that drives this future.
fn loop_driving(
    future: impl Future<Output = u32> + 'static,
) -> (TestLoop<DrivingMachine>, rotor_core::Notifier) {
    let mut test = TestLoop::new(World::default());
    let mut notifier = None;
    test.add(|scope: &mut Scope<'_, World>| {
        scope.wake_self();
        notifier = Some(scope.notifier());
        Response::ok(DrivingMachine(Driven::new(future, scope)))
    });
    test.settle();
    (test, notifier.expect("the closure ran"))
}

/// A future that becomes ready when the cell is set, and stores its waker.
fn ready_when_set(
    ready: Rc<Cell<bool>>,
    last_waker: Rc<Cell<Option<Waker>>>,
) -> impl Future<Output = u32> {
    std::future::poll_fn(move |context| {
        last_waker.set(Some(context.waker().clone()));
        if ready.get() { Poll::Ready(7) } else { Poll::Pending }
    })
}

#[test]
fn spurious_polls_are_harmless_before_and_after_the_end() {
    let (ready, last_waker) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(None)));
    let (mut test, notifier) = loop_driving(ready_when_set(ready.clone(), last_waker.clone()));
    for _ in 0..3 {
        notifier.wakeup();
        test.settle();
    }
    assert_eq!((test.context().polls, test.context().value), (4, None));
    ready.set(true);
    last_waker.take().expect("it was polled").wake();
    test.settle();
    assert_eq!((test.context().polls, test.context().value), (5, Some(7)));
    notifier.wakeup();
    test.settle();
    assert_eq!((test.context().polls, test.machines()), (6, 1));
}

#[test]
fn a_waker_that_outlives_its_machine_wakes_nothing() {
    let last_waker = Rc::new(Cell::new(None));
    let (mut test, _) = loop_driving(ready_when_set(Rc::default(), last_waker.clone()));
    test.drain(Duration::ZERO);
    assert_eq!(test.machines(), 0);
    let waker = last_waker.take().expect("it was polled");
    waker.wake_by_ref();
    drop(test);
    waker.wake();
}

#[test]
fn a_future_is_dropped_with_its_machine_or_when_it_ends() {
    let drops = Rc::new(Cell::new(0));
    let dropped = DropCounter(drops.clone());
    let (mut test, _) = loop_driving(async move {
        let _dropped = dropped;
        std::future::pending().await
    });
    assert_eq!(drops.get(), 0);
    test.drain(Duration::ZERO);
    assert_eq!((test.machines(), drops.get()), (0, 1));
    let dropped = DropCounter(drops.clone());
    let (mut test, _) = loop_driving(async move {
        let _dropped = dropped;
        1
    });
    assert_eq!((test.machines(), drops.get()), (1, 2), "its machine lives on");
}

#[test]
fn a_panic_in_a_poll_ends_only_its_own_machine() {
    let drops = Rc::new(Cell::new(0));
    let dropped = DropCounter(drops.clone());
    let mut test = TestLoop::<Task<()>>::new(());
    let ended = Rc::new(Cell::new(false));
    let other = ended.clone();
    test.add(|scope| {
        let future = async move {
            sleep(ms(10)).await;
            other.set(true);
        };
        Task::start(future, scope)
    });
    test.add(|scope| {
        let future = async move {
            let _dropped = dropped;
            sleep(ms(5)).await;
            panic!("as asked");
        };
        Task::start(future, scope)
    });
    test.settle();
    test.advance(ms(5));
    assert_eq!((test.machines(), test.failures().len(), drops.get()), (1, 1, 1));
    test.advance(ms(5));
    assert!(ended.get(), "a panic leaves no poll under way, and the other its time");
    assert_eq!(test.machines(), 0);
}

#[test]
fn a_self_waking_future_is_polled_once_per_turn() {
    let turns = Rc::new(Cell::new(0_u32));
    let mut creator = Loop::<Task<()>>::new(&Config::new()).expect("a loop");
    for _ in 0..2 {
        let turns = turns.clone();
        let added = creator.add_machine_with(|scope| {
            let selfish = std::future::poll_fn(move |context: &mut Context<'_>| {
                turns.set(turns.get() + 1);
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            });
            Task::start(selfish, scope)
        });
        added.expect("there is room");
    }
    let mut instance = creator.instantiate(());
    for _ in 0..100 {
        let before = turns.get();
        instance.turn(Some(Duration::ZERO)).expect("it runs");
        assert!(turns.get() - before <= 2, "each of them once a turn");
    }
    assert!(turns.get() >= 190, "{} polls in a hundred turns", turns.get());
}

#[test]
fn the_watchdog_names_the_task_of_a_blocking_poll() {
    let (told, heard) = std::sync::mpsc::channel();
    // The poll waits for the report about itself.
    let blocking = Blocking::new().on_stuck(move |stuck| {
        let _ended = told.send(stuck.machine.to_owned());
    });
    let mut creator = Loop::<Task<()>>::new(&Config::new().blocking(blocking)).expect("a loop");
    let named = Rc::new(std::cell::RefCell::new(String::new()));
    let name = named.clone();
    let added = creator.add_machine_with(|scope| {
        let future = async move {
            let patience = Duration::from_secs(60);
            *name.borrow_mut() = heard.recv_timeout(patience).expect("it is noticed");
        };
        Task::start(future, scope)
    });
    added.expect("there is room");
    creator.instantiate(()).run().expect("it runs");
    assert!(named.borrow().contains("Task"), "{}", named.borrow());
}

#[test]
fn sleeps_end_at_their_times_by_the_clock_of_the_loop() {
    let mut test = TestLoop::<Task<()>>::new(());
    let woken = Rc::new(std::cell::RefCell::new(Vec::new()));
    let began = test.world().now();
    for time in [30, 10, 20, 10] {
        let (woken, world) = (woken.clone(), test.world().clone());
        test.add(|scope| {
            let future = async move {
                sleep(ms(time)).await;
                woken.borrow_mut().push(world.now() - began);
                sleep_until(began + ms(35)).await;
                sleep(Duration::ZERO).await;
                woken.borrow_mut().push(world.now() - began);
            };
            Task::start(future, scope)
        });
    }
    test.settle();
    for _ in 0..35 {
        test.advance(ms(1));
    }
    let expected = [10, 10, 20, 30, 35, 35, 35, 35].map(ms);
    assert_eq!(*woken.borrow(), expected);
    assert_eq!(test.machines(), 0);
}

/// Polls each of two futures only if its own waker was woken, as a set of futures does.
struct TwoFutures {
    parts: [Option<Pin<Box<dyn Future<Output = ()>>>>; 2],
    woken: [std::sync::Arc<FlagWaker>; 2],
}

#[derive(Default)]
struct FlagWaker {
    is_set: std::sync::atomic::AtomicBool,
    parent: std::sync::Mutex<Option<Waker>>,
}

impl std::task::Wake for FlagWaker {
    fn wake(self: std::sync::Arc<FlagWaker>) {
        self.is_set.store(true, std::sync::atomic::Ordering::SeqCst);
        if let Some(parent) = &*self.parent.lock().expect("nobody panics") {
            parent.wake_by_ref();
        }
    }
}

impl Future for TwoFutures {
    type Output = u32;

    fn poll(mut self: Pin<&mut TwoFutures>, context: &mut Context<'_>) -> Poll<u32> {
        let TwoFutures { parts, woken } = &mut *self;
        for (part, flag) in parts.iter_mut().zip(woken) {
            *flag.parent.lock().expect("nobody panics") = Some(context.waker().clone());
            if !flag.is_set.swap(false, std::sync::atomic::Ordering::SeqCst) {
                continue;
            }
            let waker = Waker::from(flag.clone());
            if let Some(future) = part
                && future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            {
                *part = None;
            }
        }
        if parts.iter().all(Option::is_none) { Poll::Ready(2) } else { Poll::Pending }
    }
}

impl TwoFutures {
    fn new(parts: [Pin<Box<dyn Future<Output = ()>>>; 2]) -> TwoFutures {
        let flag = || {
            let flag = std::sync::Arc::new(FlagWaker::default());
            flag.is_set.store(true, std::sync::atomic::Ordering::SeqCst);
            flag
        };
        TwoFutures { parts: parts.map(Some), woken: [flag(), flag()] }
    }
}

#[test]
fn values_awaited_in_a_set_with_its_own_wakers_are_received() {
    let (mut ports, heard) = (Vec::new(), Rc::new(std::cell::RefCell::new(Vec::new())));
    let mut test = TestLoop::new(World::default());
    test.add(|scope: &mut Scope<'_, World>| {
        scope.wake_self();
        let set = TwoFutures::new([(); 2].map(|()| {
            let ((port, value), heard) = (scope.create_future::<u32>(), heard.clone());
            ports.push(port);
            Box::pin(async move {
                let value = wait(value).await;
                heard.borrow_mut().push(value);
            }) as _
        }));
        Response::ok(DrivingMachine(Driven::new(set, scope)))
    });
    test.settle();
    ports.pop().expect("of the second").set(7).expect("it waits");
    test.settle();
    assert_eq!((heard.take(), test.context().value), (vec![Ok(7)], None));
    drop(ports.pop().expect("of the first"));
    test.settle();
    assert_eq!((heard.take(), test.context().value), (vec![Err(FutureError::Dropped)], Some(2)));
    assert!(test.context().polls <= 3, "no more than it was woken");
}

#[test]
fn a_task_can_await_a_value_created_by_another_machine() {
    let mut test = TestLoop::<Task<Option<u32>>>::new(None);
    let mut ends = None;
    test.add(|scope| {
        ends = Some(scope.create_future::<u32>());
        Task::start(std::future::pending(), scope)
    });
    let (port, value) = ends.expect("the closure ran");
    let heard = Rc::new(Cell::new(None));
    let told = heard.clone();
    test.add(|scope| Task::start(async move { told.set(Some(wait(value).await)) }, scope));
    test.settle();
    port.set(7).expect("it waits");
    test.settle();
    assert_eq!(heard.get(), Some(Ok(7)));
}

#[test]
fn a_value_is_returned_to_its_sender_if_its_machine_has_ended() {
    let mut test = TestLoop::<Task<Option<u32>>>::new(None);
    let mut ends = None;
    test.add(|scope| {
        ends = Some(scope.create_future::<u32>());
        Task::start(std::future::ready(()), scope)
    });
    let (port, value) = ends.expect("the closure ran");
    let heard = Rc::new(Cell::new(None));
    let told = heard.clone();
    test.add(|scope| Task::start(async move { told.set(Some(wait(value).await)) }, scope));
    test.settle();
    assert_eq!((test.machines(), heard.get()), (1, None), "it waits for what the first has made");
    assert_eq!(port.set(7), Err(7));
    test.settle();
    assert_eq!(heard.get(), Some(Err(FutureError::Dropped)));
}

#[test]
fn sleeps_in_a_set_with_its_own_wakers_are_woken() {
    let (mut test, _) =
        loop_driving(TwoFutures::new([Box::pin(sleep(ms(10))), Box::pin(sleep(ms(20)))]));
    test.advance(ms(10));
    assert_eq!(test.context().value, None);
    test.advance(ms(10));
    assert_eq!(test.context().value, Some(2));
}

#[test]
fn a_dropped_sleep_no_longer_sets_the_deadline() {
    let mut test = TestLoop::<Task<()>>::new(());
    test.add(|scope| {
        let mut poller = Poller::new(scope);
        let mut long = Box::pin(sleep(ms(1000)));
        let mut short = Box::pin(sleep(ms(10)));
        poller.poll(scope, |context| {
            assert!(long.as_mut().poll(context).is_pending());
            assert!(short.as_mut().poll(context).is_pending());
        });
        assert_eq!(poller.deadline(), Some(scope.now() + ms(10)));
        poller.poll(scope, |_| drop(short));
        assert_eq!(poller.deadline(), Some(scope.now() + ms(1000)));
        // In a poll of another poller, which has its own sleeps.
        let mut inner = Poller::new(scope);
        poller.poll(scope, |_| {
            inner.poll(scope, |context| {
                assert!(Box::pin(sleep(ms(1))).as_mut().poll(context).is_pending());
            });
            drop(long);
        });
        assert_eq!((poller.deadline(), inner.deadline()), (None, None));
        let mut driven = Driven::new(async { 1 }, scope);
        assert!(!driven.is_ended());
        assert_eq!(driven.poll(scope), Poll::Ready(1));
        assert!(driven.is_ended() && driven.poll(scope).is_pending());
        Task::start(std::future::pending(), scope)
    });
}

#[test]
fn awaited_values_arrive_and_are_cancelled_when_the_future_is_dropped() {
    let mut test = TestLoop::new(World::default());
    let mut ports: Vec<Port<u32>> = Vec::new();
    test.add(|scope: &mut Scope<'_, World>| {
        let mut future = || {
            let (port, future) = scope.create_future();
            ports.push(port);
            future
        };
        let (first, second, third) = (future(), future(), future());
        scope.wake_self();
        let sum = async {
            let first = wait(first).await.unwrap_or(0);
            assert_eq!(wait(second).await, Err(FutureError::Dropped));
            first + wait(third).await.unwrap_or(0)
        };
        Response::ok(DrivingMachine(Driven::new(sum, scope)))
    });
    test.settle();
    let third = ports.pop().expect("three");
    drop(ports.pop());
    test.settle();
    ports.pop().expect("three").set(5).expect("it waits");
    test.settle();
    assert_eq!(test.context().value, None);
    assert!(!third.is_cancelled());
    test.drain(Duration::ZERO);
    assert_eq!(test.machines(), 0);
    assert!(third.is_cancelled(), "nobody waits any more");
}

/// Spawns a task, or is that task.
enum ParentOrChild {
    Parent,
    Child(Task<()>),
}

impl Machine for ParentOrChild {
    type Context = ();
    type Seed = TaskSeed;

    fn create(seed: TaskSeed, scope: &mut Scope<'_, ()>) -> Response<Self> {
        Task::create(seed, scope).wrap(ParentOrChild::Child)
    }

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, TaskSeed> {
        match self {
            ParentOrChild::Parent => {
                Response::spawn(self, TaskSeed::new(async { panic!("as asked") }))
            }
            ParentOrChild::Child(task) => task.wakeup(scope).map(ParentOrChild::Child, |seed| seed),
        }
    }
}

#[test]
fn a_panic_in_the_first_poll_of_a_task_does_not_fail_its_spawner() {
    let mut test = TestLoop::<ParentOrChild>::new(());
    test.add(|scope| {
        scope.wake_self();
        Response::ok(ParentOrChild::Parent)
    });
    test.settle();
    assert_eq!((test.machines(), test.failures().len()), (1, 1));
}

#[test]
fn a_sleep_of_an_ended_future_leaves_no_deadline() {
    let mut asleep = Box::pin(sleep(ms(50)));
    let (mut test, _) = loop_driving(std::future::poll_fn(move |context| {
        assert!(asleep.as_mut().poll(context).is_pending());
        Poll::Ready(7)
    }));
    assert_eq!((test.context().value, test.advance_to_deadline()), (Some(7), None));
}

/// The future sleeps, runs a loop of its own whose future sleeps, and sleeps again.
#[test]
fn a_nested_loop_does_not_affect_the_time_and_sleeps_of_its_future() {
    let (mut test, _) = loop_driving(async {
        let mut first = Box::pin(sleep(ms(50)));
        let polled = |context: &mut Context<'_>| Poll::Ready(first.as_mut().poll(context));
        assert!(std::future::poll_fn(polled).await.is_pending());
        let mut inner = TestLoop::<Task<()>>::new(());
        inner.add(|scope| Task::start(sleep(ms(7)), scope));
        inner.settle();
        inner.advance(ms(7));
        assert_eq!(inner.machines(), 0);
        first.await;
        sleep(ms(50)).await;
        1
    });
    for _ in 0..2 {
        assert_eq!(test.context().value, None);
        test.advance(ms(50));
    }
    assert_eq!((test.context().value, test.failures()), (Some(1), Vec::new()));
}
