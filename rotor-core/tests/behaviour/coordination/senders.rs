//! Senders that wait for room in a mailbox: machines, and threads that run no loop.

use std::thread;

use rotor_core::{FutureError, ReceiveError, SendError};

use super::{TestLoop, lost, value};

#[test]
fn senders_that_wait_for_room_get_it_in_order() {
    let mut test_loop = TestLoop::new();
    let (owner, (sender, mut mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(2));
    let (first, room) = test_loop.ask(|scope| sender.wake_on_room(scope));
    assert_eq!(test_loop.woken(), [first], "there is some at once");
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(sender.send(2), Err(SendError::Full(2)), "the rest is kept");
    assert_eq!(value(room).send(2), Ok(()));
    assert_eq!(test_loop.woken(), [owner]);
    let (_, leaves) = test_loop.ask(|scope| sender.wake_on_room(scope));
    let (ended, dead) = test_loop.ask(|scope| sender.wake_on_room(scope));
    let (second, waits) = test_loop.ask(|scope| sender.clone().wake_on_room(scope));
    let (third, waits_longer) = test_loop.ask(|scope| sender.wake_on_room(scope));
    drop(leaves);
    test_loop.end(ended);
    assert_eq!(mailbox.receive(), Some(1));
    assert_eq!(test_loop.woken(), [second]);
    assert_eq!(sender.send(9), Err(SendError::Full(9)));
    drop(value(waits));
    assert_eq!(test_loop.woken(), [third], "who does not use it leaves it to the next");
    assert_eq!(value(waits_longer).send(3), Ok(()));
    assert_eq!((mailbox.receive(), mailbox.receive()), (Some(2), Some(3)));
    assert_eq!((sender.send(4), sender.send(5)), (Ok(()), Ok(())), "all of it is back");
    assert!(dead.is_ready());
}

#[test]
fn waiting_senders_are_woken_when_the_mailbox_or_its_machine_ends() {
    for ends in [true, false] {
        let mut test_loop = TestLoop::new();
        let (owner, (sender, mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(1));
        let (_, room) = test_loop.ask(|scope| sender.wake_on_room(scope));
        let (waiting, waits) = test_loop.ask(|scope| sender.wake_on_room(scope));
        test_loop.woken();
        if ends {
            drop(mailbox);
            assert_eq!(test_loop.woken(), [waiting]);
            assert_eq!(lost(waits), FutureError::Dropped);
        } else {
            test_loop.end(owner);
            assert!(!waits.is_ready(), "nobody has noticed yet");
            assert_eq!(sender.send(9), Err(SendError::Closed(9)));
            assert_eq!((test_loop.woken(), lost(waits)), (vec![waiting], FutureError::Dropped));
        }
        assert_eq!(value(room).send(1), Err(SendError::Closed(1)));
        let (late, refused) = test_loop.ask(|scope| sender.wake_on_room(scope));
        assert_eq!(
            (lost(refused), test_loop.woken().contains(&late)),
            (FutureError::Dropped, true)
        );
    }
}

#[test]
fn waiting_senders_are_woken_by_a_failed_send_to_an_ended_machine() {
    let mut test_loop = TestLoop::new();
    let (owner, (sender, _mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(1));
    let (_, room) = test_loop.ask(|scope| sender.wake_on_room(scope));
    let (waiting, waits) = test_loop.ask(|scope| sender.wake_on_room(scope));
    test_loop.end(owner);
    test_loop.woken();
    assert_eq!(value(room).send(1), Err(SendError::Closed(1)));
    assert_eq!((test_loop.woken(), lost(waits)), (vec![waiting], FutureError::Dropped));
}

#[test]
fn a_sender_that_waits_for_room_keeps_the_mailbox_open() {
    let mut test_loop = TestLoop::new();
    let (_, (sender, mut mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(1));
    sender.send(1).expect("there is room");
    let (_, waits) = test_loop.ask(|scope| sender.wake_on_room(scope));
    drop(sender);
    assert_eq!(mailbox.try_receive(), Ok(1));
    assert_eq!(mailbox.try_receive(), Err(ReceiveError::Empty));
    assert_eq!(value(waits).send(2), Ok(()));
    assert_eq!(mailbox.try_receive(), Ok(2));
    assert_eq!(mailbox.try_receive(), Err(ReceiveError::Closed));
}

#[test]
fn a_plain_thread_waits_for_room_until_the_mailbox_is_dropped() {
    let mut test_loop = TestLoop::new();
    let (_, (sender, mut mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(1));
    let mut received = Vec::new();
    thread::scope(|threads| {
        let send = |message| sender.send_from_thread(message);
        let sends = threads.spawn(move || (0..1_000).try_for_each(send));
        // The scope joins its threads, so a sender that is never woken must not hang the test.
        let mut left = 10_000_000;
        while !sends.is_finished() && left > 0 {
            left -= 1;
            match mailbox.receive() {
                Some(message) => received.push(message),
                None => thread::yield_now(),
            }
        }
        received.extend(mailbox.receive());
        drop(mailbox);
        assert_eq!(sends.join().expect("it does not panic"), Ok(()));
    });
    assert!(received.into_iter().eq(0..1_000));
    let (_, (sender, mailbox)) = test_loop.ask(|scope| scope.create_mailbox::<u32>(1));
    assert_eq!(sender.send_from_thread(1), Ok(()));
    thread::scope(|threads| {
        let waits = threads.spawn(|| sender.send_from_thread(2));
        drop(mailbox);
        assert_eq!(waits.join().expect("it does not panic"), Err(SendError::Closed(2)));
    });
    assert_eq!(sender.send_from_thread(3), Err(SendError::Closed(3)));
}
