//! Work for other threads that futures request, on a loop as in programs.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use rotor_async::{Offload, OffloadError, Poller, Task, offload, wait};
use rotor_core::{
    Config, Exit, FutureError, Infallible, Job, Loop, Machine, OffloadPool, Response, Scope,
};
use rotor_stream::testing::TestLoop;

/// Runs a loop until this future ends, and returns its value.
fn drive<T: 'static>(config: Config, future: impl Future<Output = T> + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let mut creator = Loop::<Task<()>>::new(&config).expect("a loop");
    let started = creator.add_machine_with(|scope| {
        let sending = async move { sender.send(future.await).expect("the test waits") };
        Task::start(sending, scope)
    });
    started.expect("there is room");
    assert_eq!(creator.instantiate(()).run().expect("it runs"), Exit::Empty);
    receiver.try_recv().expect("the loop has ended with the task")
}

#[test]
fn work_runs_on_another_thread_and_its_value_is_returned() {
    let here = thread::current().id();
    let sum = drive(Config::new(), async move {
        let elsewhere = offload(|| thread::current().id()).await;
        assert_ne!(elsewhere.expect("it is done"), here);
        let (a, b) = (offload(|| 20), offload(|| 22));
        a.await.expect("it is done") + b.await.expect("it is done")
    });
    assert_eq!(sum, 42);
}

#[test]
fn a_panic_in_offloaded_work_is_reported_and_affects_nothing_else() {
    let done = drive(Config::new(), async {
        (offload(|| -> u32 { panic!("as asked") }).await, offload(|| 1).await)
    });
    assert_eq!(done, (Err(OffloadError::Lost(FutureError::Panicked)), Ok(1)));
}

struct FlagWaker(AtomicBool, Waker);

impl Wake for FlagWaker {
    fn wake(self: Arc<FlagWaker>) {
        self.0.store(true, Ordering::SeqCst);
        self.1.wake_by_ref();
    }
}

/// Like a set of futures with its own wakers: the future is polled only if its own waker was woken.
fn in_set_with_own_waker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, OffloadError>> {
    let mut work = Box::pin(offload(work));
    let mut inner: Option<Arc<FlagWaker>> = None;
    poll_fn(move |context| {
        let inner =
            inner.get_or_insert_with(|| Arc::new(FlagWaker(true.into(), context.waker().clone())));
        if !inner.0.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(inner.clone());
        work.as_mut().poll(&mut Context::from_waker(&waker))
    })
}

#[test]
fn the_value_wakes_the_future_that_waits_for_it() {
    assert_eq!(drive(Config::new(), in_set_with_own_waker(|| 5)), Ok(5));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a loop that waits forever is to fail the test")]
fn a_panic_in_offloaded_work_wakes_the_waiting_future() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lost = drive(Config::new(), in_set_with_own_waker(|| -> u32 { panic!("as asked") }));
        sender.send(lost).expect("the test waits");
    });
    let lost = receiver.recv_timeout(Duration::from_secs(60)).expect("it hears of the panic");
    assert_eq!(lost, Err(OffloadError::Lost(FutureError::Panicked)));
}

#[test]
fn work_of_a_dropped_future_is_not_started() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let begin = || offload(|| STARTED.fetch_add(1, Ordering::SeqCst));
    let pool = OffloadPool::builder().threads_max(1).build().expect("a pool");
    let (begun, has_begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    drive(Config::new().offload_pool(pool), async move {
        let mut noop = Context::from_waker(Waker::noop());
        // Dropped in the poll that requested it.
        assert!(Box::pin(begin()).as_mut().poll(&mut noop).is_pending());
        // Dropped while it waits behind other work, in a pool of one thread.
        let mut first = Box::pin(offload(move || {
            begun.send(()).expect("the test waits");
            ends.recv().is_err()
        }));
        let mut second = Some(Box::pin(begin()));
        let mut end = Some(end);
        poll_fn(move |context| {
            let polled = first.as_mut().poll(context);
            if let Some(waiting) = &mut second {
                assert!(waiting.as_mut().poll(context).is_pending());
            }
            if has_begun.try_recv().is_ok() {
                drop((second.take(), end.take()));
            } else if end.is_some() {
                context.waker().wake_by_ref();
            }
            polled
        })
        .await
        .expect("it is done");
    });
    assert_eq!(STARTED.load(Ordering::SeqCst), 0);
}

#[test]
fn offload_without_room_in_the_pool_returns_full() {
    let mut test = TestLoop::<Task<Option<OffloadError>>>::new(None);
    test.world().refuse_jobs(true);
    let (sender, receiver) = mpsc::channel();
    test.add(|scope| {
        let sending = async move { sender.send(offload(|| 1).await).expect("the test waits") };
        Task::start(sending, scope)
    });
    test.settle();
    assert_eq!(receiver.try_recv(), Ok(Err(OffloadError::Full)));
}

/// Polls the work inside of `wake`, as another thread could do at that moment.
struct PollOnWake {
    work: Mutex<Pin<Box<Offload<u32>>>>,
    ended: Mutex<Vec<Result<u32, OffloadError>>>,
}

impl Wake for PollOnWake {
    fn wake(self: Arc<PollOnWake>) {
        let waker = Waker::from(self.clone());
        let mut work = self.work.lock().expect("nobody panics");
        if let Poll::Ready(ended) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.ended.lock().expect("nobody panics").push(ended);
        }
    }
}

#[test]
fn a_poll_while_the_pool_refuses_the_work_returns_full() {
    let work = Mutex::new(Box::pin(offload(|| 1)));
    let poll_on_wake = Arc::new(PollOnWake { work, ended: Mutex::new(Vec::new()) });
    let begun = poll_on_wake.clone();
    let mut test = TestLoop::<Task<()>>::new(());
    test.world().refuse_jobs(true);
    test.add(|scope| Task::start(async move { begun.wake() }, scope));
    test.settle();
    assert_eq!(*poll_on_wake.ended.lock().expect("nobody panics"), [Err(OffloadError::Full)]);
}

/// Polls work, panics in that poll, and continues.
struct GuardedPoll {
    poller: Poller,
    work: Pin<Box<Offload<u32>>>,
    has_panicked: bool,
}

impl Machine for GuardedPoll {
    type Context = Option<Result<u32, OffloadError>>;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Self::Context>) -> Response<Self> {
        let GuardedPoll { poller, work, has_panicked } = &mut self;
        let polled = scope.guard(|scope| {
            poller.poll(scope, |context| {
                let polled = work.as_mut().poll(context);
                assert!(*has_panicked, "as asked");
                polled
            })
        });
        *has_panicked = true;
        if let Ok(Poll::Ready(ended)) = polled {
            **scope = Some(ended);
        }
        Response::ok(self)
    }
}

#[test]
fn work_is_lost_if_the_poll_that_requested_it_panics() {
    let mut test = TestLoop::<GuardedPoll>::new(None);
    test.add(|scope| {
        scope.wake_self();
        let (poller, work) = (Poller::new(scope), Box::pin(offload(|| 1)));
        Response::ok(GuardedPoll { poller, work, has_panicked: false })
    });
    test.settle();
    assert_eq!(*test.context(), Some(Err(OffloadError::Lost(FutureError::Panicked))));
}

#[test]
fn a_future_that_awaits_a_batch_is_woken_once_for_all_jobs() {
    let pool = OffloadPool::builder().threads_max(1).build().expect("a pool");
    let mut creator = Loop::<Task<()>>::new(&Config::new().offload_pool(pool)).expect("a loop");
    let (begin, begins) = mpsc::channel();
    let (mut ends, polls) = (Vec::new(), Arc::new(AtomicU32::new(0)));
    let counter = polls.clone();
    let added = creator.add_machine_with(|scope| {
        let batch = scope.create_batch();
        let jobs: Vec<_> = (0..3)
            .map(|number| {
                let (begin, (end, has_ended)) = (begin.clone(), mpsc::channel::<()>());
                ends.push(end);
                let work = move |_: &Job<'_>| {
                    begin.send(()).expect("the test waits");
                    assert!(has_ended.recv().is_err());
                    number
                };
                scope.job(work).of(&batch).start().expect("there is room")
            })
            .collect();
        let mut all = Box::pin(async move {
            for (number, job) in jobs.into_iter().enumerate() {
                assert_eq!(wait(job).await, Ok(number));
            }
        });
        let counted = poll_fn(move |context| {
            counter.fetch_add(1, Ordering::SeqCst);
            all.as_mut().poll(context)
        });
        Task::start(counted, scope)
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(());
    for end in ends {
        // The previous job has ended, and its wakeup is done.
        begins.recv().expect("a job begins");
        assert_eq!(instance.turn(Some(Duration::ZERO)).expect("it turns"), None);
        drop(end);
    }
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    assert_eq!(polls.load(Ordering::SeqCst), 2, "at first, and when all of them had ended");
}
