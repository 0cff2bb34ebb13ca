use rotor_test_kit::Directory;

use super::*;
use crate::{Config, Infallible, Loop, LoopInstance, Machine};

struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

/// The test's own manager, and a loop for it to attend.
struct Fixture {
    receiver: UnixDatagram,
    manager: ServiceManager,
    instance: LoopInstance<Idle>,
    pulses: Pulses,
    watch: AttendState,
}

impl Fixture {
    fn new(watchdog: Option<Duration>) -> Fixture {
        let directory = Directory::create();
        let path = directory.join("notify");
        let receiver = UnixDatagram::bind(&path).expect("the path is free");
        receiver.set_nonblocking(true).expect("it can");
        let manager = ServiceManager::at(&path).expect("it listens").watchdog(watchdog);
        drop(directory);
        let mut instance =
            Loop::new(&Config::new()).expect("there are descriptors").instantiate(());
        let pulses = Pulses::new();
        pulses.watch(&mut instance);
        let watch = AttendState { is_ready: true, ..AttendState::new() };
        Fixture { receiver, manager, instance, pulses, watch }
    }

    fn received(&self) -> String {
        let mut bytes = [0; 512];
        let len = self.receiver.recv(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    /// The messages sent this long after the start.
    fn check(&mut self, passed: Duration) -> String {
        let loops = GroupHandle::from(self.instance.handle());
        let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
        let now = self.instance.now() + passed;
        let result = self.watch.check(&self.manager, &loops, &self.pulses, drain, (now, passed));
        result.expect("it can be told");
        self.received()
    }
}

#[test]
fn watchdog_messages_are_sent_only_while_all_loops_make_turns() {
    let mut test = Fixture::new(Some(Duration::from_secs(2)));
    let ms = Duration::from_millis;
    assert_eq!(test.check(ms(0)), "WATCHDOG=1\n");
    assert_eq!(test.check(ms(999)), "", "half of it is often enough");
    assert_eq!(test.check(ms(1_000)), "WATCHDOG=1\n");
    assert_eq!(test.check(ms(2_400)), "WATCHDOG=1\n");
    // The loop has run no turn since the start.
    assert_eq!(test.check(ms(3_500)), "");
    assert_eq!(test.check(ms(60_000)), "");
}

#[test]
fn without_a_watchdog_no_watchdog_message_is_sent() {
    let mut test = Fixture::new(None);
    assert_eq!(test.check(Duration::ZERO), "");
}

#[test]
fn the_stopping_message_is_sent_once_with_the_drain_time() {
    let mut test = Fixture::new(None);
    assert_eq!(test.check(Duration::ZERO), "");
    test.instance.handle().drain(Duration::from_secs(1));
    assert_eq!(test.check(Duration::ZERO), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\n");
    assert_eq!(test.check(Duration::ZERO), "");
}

#[test]
fn a_message_that_does_not_fit_is_sent_again() {
    let mut test = Fixture::new(Some(Duration::from_secs(2)));
    while test.manager.status("it does not read").is_ok() {}
    test.instance.handle().drain(Duration::from_secs(1));
    let loops = GroupHandle::from(test.instance.handle());
    let drain = Drain::new(Duration::from_secs(25));
    let at = (test.instance.now(), Duration::ZERO);
    assert!(test.watch.check(&test.manager, &loops, &test.pulses, drain, at).is_err());
    while !test.received().is_empty() {}
    let sent = test.check(Duration::ZERO) + &test.received();
    assert_eq!(sent, "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1\n");
}

#[test]
fn a_manager_that_is_gone_is_logged_once() {
    let mut test = Fixture::new(Some(Duration::from_secs(2)));
    drop(std::mem::replace(&mut test.receiver, UnixDatagram::unbound().expect("descriptors")));
    let loops = GroupHandle::from(test.instance.handle());
    let drain = Drain::new(Duration::from_secs(1));
    let mut logs = |manager: &ServiceManager| {
        let at = (test.instance.now(), Duration::ZERO);
        let checked = test.watch.check(manager, &loops, &test.pulses, drain, at);
        test.watch.first_failure(checked).is_some()
    };
    assert_eq!([(); 3].map(|()| logs(&test.manager)), [true, false, false]);
    let other = Fixture::new(None);
    assert!(!logs(&other.manager));
    assert!(logs(&test.manager), "it is gone again");
}

#[test]
fn a_manager_whose_queue_is_full_is_told_later_that_the_service_is_ready() {
    let Fixture { receiver, manager, instance, pulses, .. } = Fixture::new(None);
    while manager.status("it does not read").is_ok() {}
    let drain = Drain::new(Duration::from_secs(1));
    let attendance = manager.attend(instance.handle(), pulses, drain).expect("it waits");
    receiver.set_nonblocking(false).expect("it can");
    receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
    let mut bytes = [0; 512];
    loop {
        match receiver.recv(&mut bytes) {
            Ok(len) if &bytes[..len] == b"READY=1\n" => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => panic!("{error}"),
            _ => {}
        }
    }
    attendance.end();
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_successor_waits_for_room_in_the_managers_queue() {
    let Fixture { receiver, manager, .. } = Fixture::new(None);
    while manager.status("it does not read").is_ok() {}
    let (clock, time) = (Clock::new(), Duration::from_millis(20));
    let began = clock.now();
    let in_vain = manager.ready_as_successor_within(time);
    assert_eq!(in_vain.map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
    assert!(clock.now() - began >= time);
    let reader = Builder::new().spawn(move || {
        receiver.set_nonblocking(false).expect("it can");
        receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
        let expected = format!("MAINPID={}\nREADY=1\n", process::id());
        let mut bytes = [0; 512];
        loop {
            match receiver.recv(&mut bytes) {
                Ok(len) if bytes[..len] == *expected.as_bytes() => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => panic!("{error}"),
                _ => {}
            }
        }
    });
    manager.ready_as_successor_within(Duration::from_secs(60)).expect("room is made");
    reader.expect("a thread").join().expect("it was told");
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_process_with_a_successor_sends_no_stopping_message() {
    let mut test = Fixture::new(None);
    test.instance.handle().set_has_successor();
    test.instance.handle().drain(Duration::from_secs(1));
    assert_eq!(test.check(Duration::ZERO), "");
}

#[test]
fn messages_have_the_documented_format() {
    let test = Fixture::new(None);
    let manager = &test.manager;
    manager.ready().expect("it can be told");
    assert_eq!(test.received(), "READY=1\n");
    manager.ready_as_successor().expect("it can be told");
    assert_eq!(test.received(), format!("MAINPID={}\nREADY=1\n", process::id()));
    manager.status("two\nlines").expect("it can be told");
    assert_eq!(test.received(), "STATUS=two lines\n");
    manager.reloading().expect("it can be told");
    let received = test.received();
    let micros = received.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("it says so");
    assert!(micros.trim_end().parse::<u64>().expect("a number") > 0);
}

#[test]
fn the_thread_sends_ready_and_ends_on_request() {
    // The loop runs no turn in the meantime, which is accepted for half of this time.
    let test = Fixture::new(Some(Duration::from_secs(1_000)));
    let Fixture { receiver, manager, mut instance, pulses, .. } = test;
    receiver.set_nonblocking(false).expect("it can");
    receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
    let drain = Drain::new(Duration::from_secs(1));
    let attendance = manager.attend(instance.handle(), pulses, drain).expect("a thread");
    let mut received = Vec::new();
    while received.last().is_none_or(|word: &String| !word.starts_with("STOPPING")) {
        let mut bytes = [0; 512];
        let len = match receiver.recv(&mut bytes) {
            // A process that was stopped and continued must repeat the call (signal(7)).
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            sent => sent.expect("it is told in time"),
        };
        received.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
        if received.len() == 2 {
            instance.handle().drain(Duration::ZERO);
        }
    }
    assert_eq!(received[..2], ["READY=1\n", "WATCHDOG=1\n"]);
    attendance.end();
    instance.run().expect("it drains");
}

#[test]
fn a_successor_is_reported_with_its_process_and_keeps_the_watchdog() {
    let mut test = Fixture::new(None);
    test.manager.watchdog_of_predecessor = Some(Duration::from_secs(60));
    assert_eq!(test.manager.watchdog, None);
    let manager = test.manager.clone().successor();
    assert_eq!(manager.watchdog, Some(Duration::from_secs(60)));
    AttendState::new().send_ready(&manager).expect("it can be told");
    assert_eq!(test.received(), format!("MAINPID={}\nREADY=1\n", process::id()));
    let own = test.manager.watchdog(Some(Duration::from_secs(5))).successor();
    assert_eq!(own.watchdog, Some(Duration::from_secs(5)));
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_manager_with_an_abstract_name_is_found() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("rotor-notify-{}", process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("it is short");
    let receiver = UnixDatagram::bind_addr(&address).expect("it is free");
    let manager = ServiceManager::at(format!("@{name}")).expect("it listens");
    manager.ready().expect("it can be told");
    let mut bytes = [0; 16];
    assert_eq!(receiver.recv(&mut bytes).expect("it was told"), 8);
    drop(receiver);
    assert!(manager.ready().is_err(), "nobody listens any more");
}

#[test]
fn a_missing_manager_is_named_in_the_error() {
    let path = Directory::create().join("notify");
    let error = ServiceManager::at(&path).expect_err("nobody listens");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(
        error.to_string().starts_with(&format!("cannot reach a service manager at {path:?}: "))
    );
}
