//! rotor-stream's link: machines that watch a connection are notified when it comes up, and its
//! owner when it must end.
mod waiting;

#[allow(dead_code, unused_imports, reason = "the link needs a part of it")]
#[path = "../src/sync.rs"]
mod sync;

#[path = "../../rotor-stream/src/link.rs"]
mod link;

#[allow(dead_code, reason = "the link needs a part of it")]
#[path = "../../rotor-stream/src/watchers.rs"]
mod watchers;

use loom::thread;

use link::Link;
use waiting::{WaitUntil, model, small_loop};

#[test]
fn a_watching_machine_is_woken_when_the_connection_is_up() {
    model(3, || {
        let mut creator = small_loop(1);
        let link = Link::new();
        let add = creator.add_machine_with(|scope| {
            link.watch(scope.notifier());
            scope.notifier().wakeup();
            let link = link.clone();
            // Checks once after `watch`, as its documentation requires, and once for each change.
            WaitUntil::new(move |_| link.is_up())
        });
        add.unwrap();
        let other = thread::spawn(move || link.set_is_up(true));
        creator.instantiate(()).run().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn the_owner_is_woken_when_the_connection_must_end() {
    model(3, || {
        let mut creator = small_loop(1);
        let link = Link::new();
        let other = link.clone();
        let other = thread::spawn(move || other.close());
        let add = creator.add_machine_with(|scope| {
            link.set_owner(scope.notifier());
            scope.notifier().wakeup();
            WaitUntil::new(move |_| link.is_closed())
        });
        add.unwrap();
        creator.instantiate(()).run().unwrap();
        other.join().unwrap();
    });
}
