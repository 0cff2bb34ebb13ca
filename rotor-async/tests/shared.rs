//! A future that several machines poll, of which one ends before it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rotor_async::{Driven, Task, offload, sleep};
use rotor_core::{Config, Exit, Infallible, Loop, Machine, OffloadPool, Response, Scope};
use rotor_stream::testing::TestLoop;

/// A future whose clones all wait for the same value, like `futures::future::Shared`: the first
/// clone that is polled after a wake-up polls it, with a waker that wakes all of them.
#[derive(Clone)]
struct Shared {
    future: Rc<RefCell<Pin<Box<dyn Future<Output = u32>>>>>,
    value: Rc<Cell<Option<u32>>>,
    wakers: Arc<Wakers>,
}

/// The wakers of the clones; `None` if the future has been woken since its last poll.
struct Wakers(Mutex<Option<Vec<Waker>>>);

impl Wake for Wakers {
    fn wake(self: Arc<Wakers>) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Shared {
    fn new(future: impl Future<Output = u32> + 'static) -> Shared {
        Shared {
            future: Rc::new(RefCell::new(Box::pin(future))),
            value: Rc::default(),
            wakers: Arc::new(Wakers(Mutex::new(None))),
        }
    }
}

impl Future for Shared {
    type Output = u32;

    fn poll(self: Pin<&mut Shared>, context: &mut Context<'_>) -> Poll<u32> {
        if let Some(value) = self.value.get() {
            return Poll::Ready(value);
        }
        let mut wakers = self.wakers.0.lock().expect("nothing panics");
        let is_woken = wakers.is_none();
        wakers.get_or_insert_default().push(context.waker().clone());
        drop(wakers);
        if !is_woken {
            return Poll::Pending;
        }
        let waker = Waker::from(self.wakers.clone());
        let polled = self.future.borrow_mut().as_mut().poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(value) = polled {
            self.value.set(Some(value));
            waker.wake();
        }
        polled
    }
}

/// Polls `shared` until `end` is ready, and then drops it.
async fn poll_until(shared: Shared, end: impl Future<Output = ()>) {
    let (mut shared, mut end) = (pin!(shared), pin!(end));
    poll_fn(|context| {
        assert!(shared.as_mut().poll(context).is_pending());
        end.as_mut().poll(context)
    })
    .await;
}

/// Drives a future, and may remain when that has ended.
struct Driver {
    driven: Driven<()>,
    remains: bool,
}

impl Driver {
    fn start(
        future: impl Future<Output = ()> + 'static,
        remains: bool,
        scope: &Scope<'_, impl Sized>,
    ) -> Response<Driver> {
        scope.wake_self();
        Response::ok(Driver { driven: Driven::new(future, scope), remains })
    }

    fn poll(mut self, scope: &Scope<'_, ()>) -> Response<Driver> {
        if self.driven.poll(scope).is_ready() && !self.remains {
            return Response::done();
        }
        let until = self.driven.deadline();
        Response::ok(self).deadline_opt(until)
    }
}

impl Machine for Driver {
    type Context = ();
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Driver> {
        self.poll(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Driver> {
        self.poll(scope)
    }
}

#[test]
fn a_shared_sleep_ends_although_the_future_that_polled_it_has_ended() {
    for remains in [false, true] {
        let mut test = TestLoop::<Driver>::new(());
        let shared = Shared::new(async {
            sleep(Duration::from_secs(5)).await;
            3
        });
        let (first, value) = (shared.clone(), Rc::new(Cell::new(None)));
        test.add(|scope| {
            Driver::start(poll_until(first, sleep(Duration::from_secs(1))), remains, scope)
        });
        test.settle();
        let received = value.clone();
        test.add(|scope| {
            Driver::start(async move { received.set(Some(shared.await)) }, false, scope)
        });
        test.advance(Duration::from_secs(1));
        assert_eq!(test.machines(), 1 + usize::from(remains), "the first future has ended");
        test.advance(Duration::from_secs(3));
        assert_eq!(value.get(), None, "a second before its time");
        test.advance(Duration::from_secs(1));
        assert_eq!(value.get(), Some(3), "the first machine remains: {remains}");
    }
}

#[test]
fn shared_work_is_done_although_the_machine_that_requested_it_has_ended() {
    let pool = OffloadPool::builder().threads_max(1).build().expect("a pool");
    let config = Config::new().offload_pool(pool);
    let mut creator = Loop::<Task<()>>::new(&config).expect("a loop");
    let mut start = |task: Pin<Box<dyn Future<Output = ()>>>| {
        creator.add_machine_with(|scope| Task::start(task, scope)).expect("there is room");
    };
    // Keeps the only thread busy until `end` is dropped.
    let (end, ends) = mpsc::channel::<()>();
    start(Box::pin(
        async move { assert_eq!(offload(move || ends.recv().is_err()).await, Ok(true)) },
    ));
    let shared = Shared::new(async { offload(|| 3).await.expect("it is done") });
    let (first, has_ended) = (shared.clone(), Rc::new(Cell::new(false)));
    let ending = has_ended.clone();
    start(Box::pin(async move {
        poll_until(first, next_turn()).await;
        ending.set(true);
    }));
    let (sender, receiver) = mpsc::channel();
    start(Box::pin(async move {
        while !has_ended.get() {
            next_turn().await;
        }
        drop(end);
        sender.send(shared.await).expect("the test waits");
    }));
    assert_eq!(creator.instantiate(()).run().expect("it runs"), Exit::Empty);
    assert_eq!(receiver.try_recv(), Ok(3));
}

/// Waits until the machine is called again.
async fn next_turn() {
    let mut is_over = false;
    poll_fn(|context| match std::mem::replace(&mut is_over, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
