//! tokio's timers, sockets and tasks from machines of a loop, on real threads.
#![cfg(feature = "tokio")]

use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use rotor_async::{SpawnOn, Task, Tokio};
use rotor_core::{
    Config, Exit, Future, FutureError, Infallible, Loop, Machine, Outcome, Response, Scope,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a loop until this future ends, and returns its value.
fn drive<T: 'static>(make: impl FnOnce(&Tokio) -> Boxed<T>) -> T {
    let tokio = Tokio::new().expect("a runtime");
    let future = make(&tokio);
    let (sender, heard) = mpsc::channel();
    let mut creator = Loop::<Task<()>>::new(&Config::new()).expect("a loop");
    let started = creator.add_machine_with(|scope| {
        let future = async move { sender.send(future.await).expect("the test waits") };
        Task::start(tokio.compat(future), scope)
    });
    started.expect("there is room");
    assert_eq!(creator.instantiate(()).run().expect("it runs"), Exit::Empty);
    heard.try_recv().expect("the loop has ended with the task")
}

type Boxed<T> = std::pin::Pin<Box<dyn std::future::Future<Output = T>>>;

#[test]
fn timers_sockets_and_tasks_of_tokio_work_in_a_driven_future() {
    let thread = std::thread::current().id();
    let echoed = drive(|_| {
        Box::pin(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let echo = tokio::spawn(async move {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let mut word = [0; 4];
                socket.read_exact(&mut word).await.expect("four bytes");
                socket.write_all(&word).await.expect("it reads");
                std::thread::current().id()
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            let mut socket = TcpStream::connect(address).await.expect("it listens");
            socket.write_all(b"word").await.expect("it reads");
            let mut word = [0; 4];
            socket.read_exact(&mut word).await.expect("four bytes");
            assert_eq!(std::thread::current().id(), thread, "polled on the loop");
            assert_ne!(echo.await.expect("no panic"), thread, "spawned beside it");
            word
        })
    });
    assert_eq!(&echoed, b"word");
}

#[test]
fn a_tokio_timer_without_compat_ends_only_its_own_machine() {
    let mut creator = Loop::<Task<()>>::new(&Config::new()).expect("a loop");
    let started = creator.add_machine_with(|scope| {
        Task::start(async { tokio::time::sleep(Duration::ZERO).await }, scope)
    });
    started.expect("there is room");
    let mut instance = creator.instantiate(());
    assert_eq!(instance.run().expect("the loop lives"), Exit::Empty);
    assert_eq!(instance.stats().read().panicked, 1);
}

/// Waits for a result of tokio and records it.
struct Waiter(Option<Future<u32>>);

type Outcomes = Vec<Result<u32, FutureError>>;

impl Machine for Waiter {
    type Context = Outcomes;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Outcomes>) -> Response<Self> {
        let Some(future) = self.0 else { return Response::done() };
        let heard = match future.take() {
            Outcome::Pending(future) => return Response::ok(Waiter(Some(future))),
            Outcome::Value(value) => Ok(value),
            Outcome::Lost(lost) => Err(lost),
        };
        scope.push(heard);
        Response::done()
    }
}

fn run_on_tokio(
    tokio: &Tokio,
    work: impl std::future::Future<Output = u32> + Send + 'static,
) -> Result<u32, FutureError> {
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let started = creator
        .add_machine_with(|scope| Response::ok(Waiter(Some(scope.spawn_on(tokio.handle(), work)))));
    started.expect("there is room");
    let mut instance = creator.instantiate(Outcomes::new());
    instance.run().expect("it runs");
    instance.context()[0]
}

#[test]
fn spawn_on_returns_the_value_or_the_reason_for_its_loss() {
    let tokio = Tokio::new().expect("a runtime");
    let value = run_on_tokio(&tokio, async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        7
    });
    assert_eq!(value, Ok(7));
    assert_eq!(run_on_tokio(&tokio, async { panic!("as asked") }), Err(FutureError::Panicked));
    let handle = Tokio::of(tokio.handle().clone());
    drop(tokio);
    let value = run_on_tokio(&handle, async { 7 });
    assert_eq!(value, Err(FutureError::Dropped), "the runtime is gone, whoever has its handle");
}

struct NotifyOnDrop(mpsc::Sender<()>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        let _nobody_listens = self.0.send(());
    }
}

#[test]
fn dropping_the_awaited_value_aborts_the_tokio_task() {
    let tokio = Tokio::new().expect("a runtime");
    let ((begun, has_begun), (sender, dropped)) = (mpsc::channel(), mpsc::channel());
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let sender = NotifyOnDrop(sender);
    let started = creator.add_machine_with(|scope| {
        let future = scope.spawn_on(tokio.handle(), async move {
            let _notify = sender;
            begun.send(()).expect("the test waits");
            std::future::pending().await
        });
        Response::ok(Waiter(Some(future)))
    });
    started.expect("there is room");
    let instance = creator.instantiate(Outcomes::new());
    has_begun.recv_timeout(PATIENCE).expect("it is polled");
    assert!(dropped.try_recv().is_err());
    drop(instance);
    dropped.recv_timeout(PATIENCE).expect("the task is aborted with the machine");
}

#[test]
fn a_tokio_task_can_await_a_value_of_a_machine() {
    let tokio = Tokio::new().expect("a runtime");
    let (heard, mut port) = (mpsc::channel(), None);
    let mut creator = Loop::<Task<()>>::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let (its_port, value) = scope.create_future::<u32>();
        port = Some(its_port);
        tokio.handle().spawn(async move {
            let polled = tokio::time::timeout(Duration::ZERO, std::future::pending::<()>());
            let waits = rotor_async::wait(value);
            tokio::join!(async { heard.0.send(waits.await).expect("the test waits") }, async {
                // After the first poll of the other future.
                let _late = polled.await;
                heard.0.send(Ok(0)).expect("the test waits");
            });
        });
        Task::start(std::future::pending(), scope)
    });
    added.expect("there is room");
    assert_eq!(heard.1.recv_timeout(PATIENCE), Ok(Ok(0)), "it waits");
    port.expect("it was made").set(7).expect("the machine is there");
    assert_eq!(heard.1.recv_timeout(PATIENCE), Ok(Ok(7)));
}

#[test]
fn a_compat_future_is_dropped_in_the_context_of_its_runtime() {
    struct Spawns(mpsc::Sender<()>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let sender = self.0.clone();
            // Panics outside of a tokio runtime.
            tokio::spawn(async move { sender.send(()) });
        }
    }
    let tokio = Tokio::new().expect("a runtime");
    let (sender, dropped) = mpsc::channel();
    let spawns = Spawns(sender);
    let mut compat = Box::pin(tokio.compat(async move {
        let _spawns = spawns;
        std::future::pending::<()>().await
    }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = std::future::Future::poll(compat.as_mut(), &mut context);
    assert_eq!(polled, Poll::Pending);
    drop(compat);
    dropped.recv_timeout(PATIENCE).expect("it was spawned");
}

#[test]
fn the_last_clone_of_a_runtime_may_be_dropped_on_its_own_thread() {
    let tokio = Tokio::new().expect("a runtime");
    let clone = tokio.clone();
    let (go, gone) = (mpsc::channel(), mpsc::channel());
    tokio.handle().spawn(async move {
        go.1.recv_timeout(PATIENCE).expect("the test says when");
        drop(clone);
        gone.0.send(()).expect("the test waits");
    });
    drop(tokio);
    go.0.send(()).expect("it waits");
    gone.1.recv_timeout(PATIENCE).expect("it does not panic");
}

#[test]
fn current_or_new_uses_the_current_runtime() {
    let outer = Tokio::new().expect("a runtime");
    let inner = outer.enter(|| Tokio::current_or_new().expect("it is there"));
    assert_eq!(inner.handle().id(), outer.handle().id());
    assert_ne!(Tokio::current_or_new().expect("a new one").handle().id(), outer.handle().id());
}

/// A loop in `#[tokio::main]` runs within one poll of tokio's, whose budget is 128 steps.
#[test]
fn a_future_on_a_loop_is_not_stopped_by_the_tokio_budget_of_the_main_task() {
    const MESSAGES: u32 = 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let received = runtime.expect("a runtime").block_on(async {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        (0..MESSAGES).for_each(|number| sender.send(number).expect("it is open"));
        drop(sender);
        let (result, received) = mpsc::channel();
        let mut creator = Loop::<Task<()>>::new(&Config::new()).expect("a loop");
        let started = creator.add_machine_with(|scope| {
            let future = async move {
                let mut count = 0;
                while receiver.recv().await.is_some() {
                    count += 1;
                }
                result.send(count).expect("the test waits");
            };
            Task::start(future, scope)
        });
        started.expect("there is room");
        let mut instance = creator.instantiate(());
        for _turn in 0..10 {
            instance.turn(Some(Duration::ZERO)).expect("it runs");
        }
        received.try_recv()
    });
    assert_eq!(received, Ok(MESSAGES));
}
