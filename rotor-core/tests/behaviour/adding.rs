//! Machines that other threads add to a running loop.

use std::error::Error;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{
    AddError, Config, Exit, ExitPolicy, Interest, Loop, LoopInstance, PostError, Response, Scope,
    SpawnCause,
};

use crate::actor::{Actor, Call, actor};
use crate::manual::{Manual, settle};

type Log = Vec<String>;
type Instance = LoopInstance<Actor<Log>, Manual>;

fn empty(manual: &Manual, config: Config) -> Instance {
    manual.creator(&config.exit(ExitPolicy::OnRequest)).instantiate(Log::new())
}

/// A closure that makes a machine that records its calls.
fn recording_machine(
    name: &'static str,
) -> impl FnOnce(&mut Scope<'_, Log>) -> Response<Actor<Log>> + Send {
    move |scope| {
        scope.push(format!("{name} made"));
        Response::ok(actor(move |call: Call<Log>, scope: &mut Scope<'_, Log>| {
            scope.push(format!("{name} {}", call.name()));
            Response::keep(())
        }))
    }
}

#[test]
fn an_added_machine_behaves_like_any_other() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let broadcast = instance.broadcast();
    let adding = thread::spawn(move || {
        broadcast.add_machine_with(recording_machine("a")).expect("there is room")
    })
    .join()
    .expect("no panic");
    let adding = adding.try_wait().expect_err("the loop has had no turn");
    assert!(instance.next_deadline().is_some(), "it is due");
    settle(&mut instance);
    let token = adding.wait().expect("it was made");
    assert!(instance.machines().get(token).is_some());
    instance.handle().drain(Duration::from_secs(1));
    settle(&mut instance);
    assert_eq!(instance.context()[..], ["a made", "a draining"]);
    assert_eq!(instance.stats().read().spawned, 1);
}

#[test]
fn an_empty_loop_runs_a_machine_added_from_outside() {
    let mut instance =
        Loop::<Actor<Log>>::new(&Config::new()).expect("there are descriptors").instantiate(vec![]);
    let adding =
        instance.broadcast().add_machine_with(recording_machine("a")).expect("there is room");
    let handle = instance.handle();
    let waits = thread::spawn(move || {
        let made = adding.wait().is_ok();
        handle.stop();
        made
    });
    assert_eq!(instance.run().expect("it runs"), Exit::Stopped);
    assert!(waits.join().expect("no panic"));
}

#[test]
fn a_listener_can_be_added_to_a_running_loop() {
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance =
        Loop::<Actor<Log>>::new(&config).expect("there are descriptors").instantiate(vec![]);
    let (broadcast, handle) = (instance.broadcast(), instance.handle());
    let outside = thread::spawn(move || {
        let (send_address, receive_address) = mpsc::channel();
        let make = move |scope: &mut Scope<'_, Log>| {
            Response::attempt(|| {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let mut listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                scope.register(&mut listener, Interest::Readable)?;
                send_address.send(listener.local_address()).expect("it is awaited");
                Ok(Response::ok(actor(move |call: Call<Log>, scope: &mut Scope<'_, Log>| {
                    if matches!(call, Call::Ready(_)) && listener.accept().is_ok() {
                        scope.push("accepted".into());
                        scope.stop_loop();
                    }
                    Response::keep(())
                })))
            })
        };
        broadcast.add_machine_with(make).expect("there is room").wait().expect("it listens");
        let address = receive_address.recv().expect("it was told").expect("it is bound");
        let client = TcpStream::connect(address).expect("somebody listens");
        (client, handle)
    });
    assert_eq!(instance.run().expect("it runs"), Exit::Stopped);
    outside.join().expect("no panic");
    assert_eq!(instance.context()[..], ["accepted"]);
}

#[test]
fn the_closure_is_returned_when_there_is_no_room() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().machines_max(1).posts_max(1));
    let broadcast = instance.broadcast();
    let first = broadcast.add_machine_with(recording_machine("a")).expect("there is room");
    let full = broadcast.add_machine_with(recording_machine("b")).expect_err("one waits already");
    assert!(matches!(full, PostError::Full(_)));
    settle(&mut instance);
    first.wait().expect("it was made");
    let second = broadcast.add_machine_with(full.into_closure()).expect("there is room");
    settle(&mut instance);
    let error = second.wait().expect_err("no slot is free");
    assert!(matches!(error, AddError::NoSlot(_)) && error.to_string().contains("machines_max"));

    // The same closure works in another loop.
    let make = error.into_closure().expect("it was not called");
    let mut other = empty(&manual, Config::new());
    let adding = other.broadcast().add_machine_with(make).expect("there is room");
    settle(&mut other);
    adding.wait().expect("it was made");
    assert_eq!((instance.context().len(), &other.context()[..]), (1, &["b made".to_string()][..]));
}

#[test]
fn the_closure_is_returned_when_the_loop_drains_or_is_dropped() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let broadcast = instance.broadcast();
    instance.add_machine_with(recording_machine("first")).expect("there is room");
    instance.handle().drain(Duration::from_secs(1));
    settle(&mut instance);
    let adding =
        broadcast.add_machine_with(recording_machine("a")).expect("it takes closures still");
    settle(&mut instance);
    let error = adding.wait().expect_err("it drains");
    assert!(matches!(error, AddError::Draining(_)), "{error:?}");

    let adding =
        broadcast.add_machine_with(recording_machine("b")).expect("it takes closures still");
    drop(instance);
    let error = adding.wait().expect_err("it is gone");
    assert!(matches!(error, AddError::Closed(_)), "{error:?}");
    assert!(error.into_closure().is_some());
    assert!(matches!(
        broadcast.add_machine_with(recording_machine("c")),
        Err(PostError::Closed(_))
    ));
}

#[test]
fn a_closure_that_makes_no_machine_reports_the_cause() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let broadcast = instance.broadcast();
    type Make = fn(&mut Scope<'_, Log>) -> Response<Actor<Log>>;
    let makes: [Make; 3] =
        [|_| Response::done(), |_| Response::error("no"), |_| panic!("a panic that was meant")];
    let addings: Vec<_> = makes
        .into_iter()
        .map(|make| broadcast.add_machine_with(make).expect("there is room"))
        .collect();
    let last = broadcast.add_machine_with(recording_machine("a")).expect("there is room");
    settle(&mut instance);
    let causes: Vec<_> = addings
        .into_iter()
        .map(|adding| match adding.wait() {
            Err(AddError::NotMade(error)) => error.cause,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        matches!(causes[..], [SpawnCause::Ended, SpawnCause::Failed(_), SpawnCause::Panicked(_)]),
        "{causes:?}"
    );
    last.wait().expect("the loop goes on");
    assert_eq!(instance.machines().len(), 1);
}

#[test]
fn an_add_error_displays_its_cause_once_and_has_a_source() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let adding =
        instance.broadcast().add_machine_with(|_| Response::<Actor<Log>>::error("there is none"));
    settle(&mut instance);
    let error = adding.expect("there is room").wait().expect_err("it answered so");
    assert_eq!(rotor_core::with_causes(&error).to_string().matches("there is none").count(), 1);
    assert!(error.source().is_some());
}
