//! Loops that end while their peers wait for what was written.
#![forbid(unsafe_code)]

mod rig;

use std::io::Write;
use std::time::Duration;

use rig::{Host, Rig, fill, read_on, text};
use rotor_core::{Exit, Time};
use rotor_smoltcp::MemoryConfig;

#[test]
fn bytes_written_before_a_loop_ends_are_sent() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    rig.pass(Duration::from_secs(1));
    server.write_all(b"farewell").expect("there is room");
    drop(server);
    let Rig { clock, server, client: mut host } = rig;
    // A handle that reads the counters keeps the stack alive.
    let Host { instance, handle } = server;
    drop(instance);
    let mut got = Vec::new();
    while !read_on(&mut client, None, &mut got) {
        host.turn();
        assert!(clock.step(), "nothing happens any more: {got:?}");
    }
    assert_eq!(got, b"farewell");
    assert_eq!(handle.stats().accepted, 1);
}

#[test]
fn a_drained_loop_ends_once_its_peers_have_everything() {
    let mut rig = Rig::on(MemoryConfig::new().latency(Duration::from_millis(10)));
    let (mut server, mut client) = rig.pair();
    let sent = text(60_000);
    assert_eq!(fill(&mut server, &sent), sent.len());
    drop(server);
    rig.server.instance.handle().drain(Duration::from_secs(60));
    let mut got = Vec::new();
    let exit = loop {
        read_on(&mut client, None, &mut got);
        if let Some(exit) = rig.server.instance.turn(None).expect("it can wait") {
            break exit;
        }
        rig.client.turn();
        assert!(rig.clock.step(), "nothing happens any more: {rig:?}");
    };
    assert_eq!(exit, Exit::Drained { dropped: 0 });
    let Rig { clock, server, client: mut host } = rig;
    assert!(clock.now() < Time::ZERO + Duration::from_secs(10), "long before the deadline");
    drop(server);
    while !read_on(&mut client, None, &mut got) {
        host.turn();
        assert!(clock.step(), "nothing happens any more: {} bytes", got.len());
    }
    assert_eq!(got, sent);
}

/// Its owner still holds it when the loop, and everything else that holds the stack, is gone.
#[test]
fn a_stream_that_outlives_its_loop_sends_its_bytes_when_dropped() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    rig.pass(Duration::from_secs(1));
    let Rig { clock, server: gone, client: mut host } = rig;
    drop(gone);
    server.write_all(b"farewell").expect("there is room");
    drop(server);
    let mut got = Vec::new();
    while !read_on(&mut client, None, &mut got) {
        host.turn();
        assert!(clock.step(), "nothing happens any more: {got:?}");
    }
    assert_eq!(got, b"farewell");
}
