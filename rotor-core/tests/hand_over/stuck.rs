//! A process that has a successor while one of its loops is stuck in a handler.

use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use rotor_core::Exit;

use crate::rig::{Gate, PATIENCE, Place, at, make_process_with, start, wait_until};

/// Enough clients that both loops get some: the chance that one loop gets all is 2⁻⁶³.
const CLIENTS: usize = 64;

fn is_greeted(client: &TcpStream) -> bool {
    client.set_nonblocking(true).expect("a socket");
    let has_input = client.peek(&mut [0]).is_ok();
    client.set_nonblocking(false).expect("a socket");
    has_input
}

/// Clients in the queue of a stuck loop would wait until its process is killed, and then be reset.
#[test]
fn a_successor_serves_the_queue_of_a_stuck_loop() {
    for drains_before in [false, true] {
        let place = Place::new();
        let mut hand_over = at(&place).expect("nobody is in the way");
        let ((began, begins), (key, end)) = (channel(), channel());
        let gate = Arc::new(Mutex::new(Some(Gate { began, end })));
        let mut first = make_process_with(&mut hand_over, 2, "1", gate);
        hand_over.ready(first.group.handle(), PATIENCE).expect("it serves");
        let address = first.address;
        let connect = || TcpStream::connect(address).expect("it listens");
        let mut stuck = connect();
        begins.recv_timeout(PATIENCE).expect("a loop accepts it");
        let clients: Vec<TcpStream> = (1..CLIENTS).map(|_| connect()).collect();
        if drains_before {
            // For another reason: a signal. The loop that is stuck does not hear of it.
            first.group.handle().drain(PATIENCE);
            let ended = first.group.wait_for_one().expect("the other one ends");
            assert_eq!(ended.exit.expect("it waits"), Exit::Drained { dropped: 0 });
        } else {
            // Otherwise the successor could take even the clients of the loop that goes on.
            wait_until("the other one greets a client", || clients.iter().any(is_greeted));
        }

        let second = start(&place, 1, "2");
        assert_eq!(second.address, address);
        let mut counts = [0, 0];
        for mut client in clients {
            client.set_read_timeout(Some(PATIENCE)).expect("not zero");
            let mut word = String::new();
            client.read_to_string(&mut word).expect("it is greeted");
            match &*word {
                "1" => counts[0] += 1,
                "2" => counts[1] += 1,
                other => panic!("greeted with {other:?}"),
            }
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");

        drop(key);
        first.wait_until_drained();
        let mut word = String::new();
        stuck.read_to_string(&mut word).expect("it is greeted, late");
        assert_eq!(word, "1");
        second.end();
    }
}
