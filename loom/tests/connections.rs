//! rotor-stream's count of a listener's connections: a listener that found no room is notified of
//! the next end.
mod waiting;

#[allow(dead_code, unused_imports, reason = "the count needs a part of it")]
#[path = "../src/sync.rs"]
mod sync;

#[allow(dead_code, reason = "the model needs a part of it")]
#[path = "../../rotor-stream/src/accept/connections.rs"]
mod connections;

use loom::thread;

use connections::Connections;
use waiting::{WaitUntil, model, small_loop};

#[test]
fn a_listener_without_room_is_woken_when_two_connections_end() {
    model(2, || {
        let mut creator = small_loop(1);
        let mut live = Vec::new();
        let add = creator.add_machine_with(|scope| {
            scope.notifier().wakeup();
            let connections = Connections::new(2, scope.notifier());
            live.extend([0, 1].map(|_| connections.add()));
            let mut added = Vec::new();
            WaitUntil::new(move |_| {
                while added.len() < 2 && connections.has_room() {
                    added.push(connections.add());
                }
                added.len() == 2
            })
        });
        add.unwrap();
        for connection in live {
            thread::spawn(move || drop(connection));
        }
        creator.instantiate(()).run().unwrap();
    });
}
