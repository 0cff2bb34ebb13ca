//! A service manager that no thread can keep informed. Runs in its own process, whose limit it
//! lowers, and which has had no thread before whose stack could be used again.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rotor_core::service_manager::ServiceManager;
use rotor_core::{Config, Drain, Infallible, Loop, Machine, Pulses};
use rotor_test_kit::Directory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

/// Bytes mapped by the process (proc_pid_status(5)).
fn mapped_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB"));
    size.and_then(|size| size.trim().parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
fn a_manager_that_cannot_be_attended_is_not_told_that_the_service_is_ready() {
    let directory = Directory::create();
    let receiver = UnixDatagram::bind(directory.join("notify")).expect("the path is free");
    receiver.set_nonblocking(true).expect("it can");
    let manager = ServiceManager::at(directory.join("notify")).expect("it listens");
    let creator = Loop::<Idle>::new(&Config::new()).expect("descriptors are left");
    let before = getrlimit(Resource::As);
    // Too little for a thread's stack (2 MiB), and enough for everything else.
    let none = Rlimit { current: Some(mapped_bytes() + (1 << 20)), maximum: before.maximum };
    setrlimit(Resource::As, none).expect("it may be lowered");
    let drain = Drain::new(Duration::from_secs(1));
    let attended = manager.attend(creator.handle(), Pulses::new(), drain);
    setrlimit(Resource::As, before).expect("it may be raised again");
    attended.expect_err("there is no thread");
    let received = receiver.recv(&mut [0; 16]).expect_err("nothing was sent");
    assert_eq!(received.kind(), ErrorKind::WouldBlock);
}
