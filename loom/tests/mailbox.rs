//! Messages of other threads to a machine: each is received, or comes back, and the end of the
//! senders comes last.
mod waiting;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use loom::thread;
use rotor_core::{Loop, Mailbox, ReceiveError, SendError, Sender};

use waiting::{Until, Waiting, model, small_loop};

/// Runs a loop whose machine receives until every sender is gone; answers what it got.
fn received_of(bound: usize, send: impl FnOnce(Sender<u32>)) -> Vec<u32> {
    let mut creator = small_loop(1);
    let received: Rc<RefCell<Vec<u32>>> = Rc::default();
    let mut sender = None;
    let add = creator.add_machine_with(|scope| {
        let (first, mut mailbox) = scope.create_mailbox(bound);
        sender = Some(first);
        let received = received.clone();
        Until::new(move |_| {
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

/// The ends of a mailbox with room for one message, whose machine does nothing; with what holds that.
fn idle<V: Send + 'static>() -> (Loop<Until, Waiting>, Sender<V>, Mailbox<V>) {
    let mut creator = small_loop(1);
    let mut ends = None;
    let add = creator.add_machine_with(|scope| {
        ends = Some(scope.create_mailbox(1));
        Until::new(|_| false)
    });
    add.unwrap();
    let (sender, mailbox) = ends.unwrap();
    (creator, sender, mailbox)
}

#[test]
fn the_last_message_comes_before_the_news_that_no_sender_is_left() {
    model(2, || {
        let received = received_of(2, |sender| {
            thread::spawn(move || (1..=2).for_each(|message| sender.send(message).unwrap()));
        });
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn the_messages_of_two_threads_all_come() {
    model(1, || {
        let mut received = received_of(2, |sender| {
            for (message, sender) in [(1, sender.clone()), (2, sender)] {
                thread::spawn(move || sender.send(message).unwrap());
            }
        });
        received.sort();
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn what_a_full_mailbox_does_not_take_comes_back() {
    model(2, || {
        let refused = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut all = received_of(1, |sender| {
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

/// The sender lives on, and so does the queue: the message must not wait in there for nobody.
#[test]
fn a_message_that_is_sent_while_the_mailbox_is_dropped_is_not_kept() {
    model(3, || {
        let (_creator, sender, mailbox) = idle();
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
fn a_thread_that_waits_for_room_gets_it() {
    model(2, || {
        let received = received_of(1, |sender| {
            thread::spawn(move || {
                (1..=2).for_each(|message| sender.send_from_thread(message).unwrap());
            });
        });
        assert_eq!(received, [1, 2]);
    });
}

#[test]
fn a_thread_that_waits_for_room_hears_that_there_will_be_none() {
    model(3, || {
        let (_creator, sender, mailbox) = idle();
        sender.send(1).unwrap();
        let other = thread::spawn(move || sender.send_from_thread(2));
        drop(mailbox);
        assert_eq!(other.join().unwrap(), Err(SendError::Closed(2)));
    });
}
