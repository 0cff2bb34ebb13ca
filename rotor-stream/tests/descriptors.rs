//! A process that runs out of descriptors. Runs in its own process, since the limit applies to the
//! whole process.

mod probe;
mod real;

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use probe::{echo_lines, seed};
use real::{connect, receive, serve_with};
use rotor_core::Config;
use rotor_stream::{AcceptConfig, StreamConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lowers the limit of this process, and opens all remaining descriptors.
fn take_all_descriptors() -> Vec<File> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum: limit.maximum })
        .expect("a lower limit");
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken
}

#[test]
fn connections_wait_without_descriptors_and_none_is_lost() -> io::Result<()> {
    let accept = AcceptConfig::new().pause(Duration::from_millis(5));
    let (mut instance, address) =
        serve_with(Config::new(), accept, seed(StreamConfig::new(), echo_lines));
    let mut clients: Vec<_> = (0..10).map(|_| connect(address)).collect();
    let mut taken = take_all_descriptors();
    taken.truncate(taken.len() - 3);
    for client in &mut clients {
        client.write_all(b"hello\n")?;
    }
    // Three connections get a descriptor; the others wait in the backlog while the listener pauses,
    // again and again.
    for client in &mut clients[..3] {
        assert_eq!(receive(&mut instance, client, Some(6))?, b"hello\n");
    }
    let before = instance.stats().read();
    for _ in 0..5 {
        instance.turn(None)?;
    }
    let after = instance.stats().read();
    assert_eq!((after.spawned - before.spawned, after.events - before.events), (0, 0));
    assert_eq!(after.timeouts - before.timeouts, 5, "each turn waited for the end of a pause");
    taken.clear();
    for client in &mut clients[3..] {
        assert_eq!(receive(&mut instance, client, Some(6))?, b"hello\n");
    }
    Ok(())
}
