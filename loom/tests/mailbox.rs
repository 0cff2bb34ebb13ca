//! Messages from other threads to a machine: each is received or returned, and the end of the
//! senders comes last.
mod waiting;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use loom::thread;
use rotor_core::{Loop, Mailbox, ReceiveError, SendError, Sender};

use waiting::{WaitUntil, WakeOnlyBackend, model, small_loop};

/// Runs a loop whose machine receives until every sender is gone; returns what it received.
fn messages_received(bound: usize, send: impl FnOnce(Sender<u32>)) -> Vec<u32> {
    let mut creator = small_loop(1);
    let received: Rc<RefCell<Vec<u32>>> = Rc::default();
    let mut sender = None;
    let add = creator.add_machine_with(|scope| {
        let (first, mut mailbox) = scope.create_mailbox(bound);
        sender = Some(first);
        let received = received.clone();
        WaitUntil::new(move |_| {
            loop {
                match mailbox.try_receive() {
                    Ok(message) => received.borrow_mut().push(message),
                    Err(error) => return error == ReceiveError::Closed,
                }
            }
        })
    });
    add.unwrap();
    send(sender.unwrap());
    creator.instantiate(()).run().unwrap();
    received.take()
}

/// The ends of a mailbox with room for one message, whose machine does nothing; with the loop that
/// holds the machine.
fn idle_mailbox<V: Send + 'static>() -> (Loop<WaitUntil, WakeOnlyBackend>, Sender<V>, Mailbox<V>) {
    let mut creator = small_loop(1);
    let mut ends = None;
    let add = creator.add_machine_with(|scope| {
        ends = Some(scope.create_mailbox(1));
        WaitUntil::new(|_| false)
    });
    add.unwrap();
    let (sender, mailbox) = ends.unwrap();
    (creator, sender, mailbox)
}

#[test]
fn the_last_message_is_received_before_closed_is_reported() {
    model(2, || {
        let received = messages_received(2, |sender| {
            thread::spawn(move || (1..=2).for_each(|message| sender.send(message).unwrap()));
        });
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn all_messages_of_two_threads_are_received() {
    model(1, || {
        let mut received = messages_received(2, |sender| {
            for (message, sender) in [(1, sender.clone()), (2, sender)] {
                thread::spawn(move || sender.send(message).unwrap());
            }
        });
        received.sort();
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn a_full_mailbox_returns_the_message_to_its_sender() {
    model(2, || {
        let refused = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut all = messages_received(1, |sender| {
            let refused = refused.clone();
            thread::spawn(move || {
                for message in 1..=2 {
                    if let Err(error) = sender.send(message) {
                        assert_eq!(error, SendError::Full(message));
                        refused.lock().unwrap().push(message);
                    }
                }
            });
        });
        all.append(&mut refused.lock().unwrap());
        all.sort();
        assert_eq!(all, [1, 2]);
    });
}

/// The sender and the queue live on: the message must not stay in the queue with no receiver.
#[test]
fn a_message_sent_while_the_mailbox_is_dropped_is_not_leaked() {
    model(3, || {
        let (_creator, sender, mailbox) = idle_mailbox();
        let message = Arc::new(());
        let other = thread::spawn({
            let message = message.clone();
            move || {
                let _ = sender.send(message);
                sender
            }
        });
        drop(mailbox);
        let _sender = other.join().unwrap();
        assert_eq!(Arc::strong_count(&message), 1);
    });
}

#[test]
fn a_thread_that_waits_for_room_can_send() {
    model(2, || {
        let received = messages_received(1, |sender| {
            thread::spawn(move || {
                (1..=2).for_each(|message| sender.send_from_thread(message).unwrap());
            });
        });
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn a_thread_that_waits_for_room_is_released_when_the_mailbox_ends() {
    model(3, || {
        let (_creator, sender, mailbox) = idle_mailbox();
        sender.send(1).unwrap();
        let other = thread::spawn(move || sender.send_from_thread(2));
        drop(mailbox);
        assert_eq!(other.join().unwrap(), Err(SendError::Closed(2)));
    });
}
