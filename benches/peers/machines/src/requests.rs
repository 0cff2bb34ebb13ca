//! Requests and their answers, one after the other: between two machines of a loop by `Service`,
//! two tasks by a channel that carries a `oneshot`, and two threads by a channel that carries a
//! channel.

use std::rc::Rc;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;

use rotor_core::{
    Calls, Config, Future, Infallible, Loop, LoopInstance, Machine, Notifier, Outcome, Response,
    Scope, Service,
};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::figures::{Bench, contender, many_threads, one_thread};

/// How many requests may wait, in all cases.
const WAITING_MAX: usize = 64;

pub(crate) fn measure(bench: &mut Bench) {
    let trips = bench.pick(300_000, 100);
    let trips_of_threads = bench.pick(30_000, 100);
    let mut ours = Machines::new();
    let one = Tasks::new(one_thread());
    let many = Tasks::new(many_threads());
    let threads = Threads::new();
    bench.compare(
        "Request and reply between two, one after the other",
        "ns a request and its reply",
        vec![
            contender("machines of one loop", trips, move |trips| ours.round_trips(trips)),
            contender("tokio, current thread", trips, move |trips| one.round_trips(trips)),
            contender("tokio, multi-threaded", trips, move |trips| many.round_trips(trips)),
            contender("threads", trips_of_threads, move |trips| threads.round_trips(trips)),
        ],
    );
}

/// Returns the answer to a request.
fn answer(request: u64) -> u64 {
    request + 1
}

enum Talks {
    Server(Calls<u64, u64>),
    Asker(Option<Future<u64>>),
}

/// The data that both share.
struct Asks {
    service: Service<u64, u64>,
    left: u64,
}

impl Machine for Talks {
    type Context = Asks;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Asks>) -> Response<Self, Infallible> {
        match self {
            Talks::Server(mut calls) => {
                while let Some(call) = calls.receive() {
                    let reply = answer(*call.request());
                    call.answer(reply).expect("somebody waits");
                }
                Response::keep(Talks::Server(calls))
            }
            Talks::Asker(asked) => {
                match asked.map(Future::take) {
                    Some(Outcome::Value(reply)) => {
                        assert_eq!(reply, answer(scope.left));
                        scope.left -= 1;
                    }
                    None => {}
                    Some(other) => panic!("{other:?}"),
                }
                if scope.left == 0 {
                    scope.stop_loop();
                    return Response::keep(Talks::Asker(None));
                }
                let asked = scope.service.ask(scope.left, scope).expect("there is room");
                Response::keep(Talks::Asker(Some(asked)))
            }
        }
    }
}

struct Machines {
    instance: LoopInstance<Talks>,
    asker: Notifier,
}

impl Machines {
    fn new() -> Machines {
        let mut creator = Loop::new(&Config::new()).expect("a loop");
        let (mut service, mut asker) = (None, None);
        let server = creator.add_machine_with(|scope| {
            let (made, calls) = scope.create_service(WAITING_MAX);
            service = Some(made);
            Response::ok(Talks::Server(calls))
        });
        server.expect("there is room");
        let asking = creator.add_machine_with(|scope| {
            asker = Some(scope.notifier());
            Response::ok(Talks::Asker(None))
        });
        asking.expect("there is room");
        let service = service.expect("it was made");
        Machines {
            instance: creator.instantiate(Asks { service, left: 0 }),
            asker: asker.expect("it was made"),
        }
    }

    fn round_trips(&mut self, trips: u64) {
        self.instance.context_mut().left = trips;
        assert!(self.asker.wakeup());
        self.instance.run().expect("it runs");
        assert_eq!(self.instance.context().left, 0);
    }
}

/// A request to a task, and the channel for its answer.
type Asked = (u64, oneshot::Sender<u64>);

struct Tasks {
    runtime: Rc<Runtime>,
    server: mpsc::Sender<Asked>,
}

impl Tasks {
    fn new(runtime: Runtime) -> Tasks {
        let (server, mut requests) = mpsc::channel::<Asked>(WAITING_MAX);
        runtime.spawn(async move {
            while let Some((request, reply)) = requests.recv().await {
                reply.send(answer(request)).expect("somebody waits");
            }
        });
        Tasks { runtime: Rc::new(runtime), server }
    }

    fn round_trips(&self, trips: u64) {
        let server = self.server.clone();
        // Both are tasks: one that `block_on` runs would be neither on a worker nor in its queue.
        let asker = self.runtime.spawn(async move {
            for request in 0..trips {
                let (reply, replied) = oneshot::channel();
                server.send((request, reply)).await.expect("somebody answers");
                assert_eq!(replied.await, Ok(answer(request)));
            }
        });
        self.runtime.block_on(asker).expect("it does not panic");
    }
}

/// The server ends when all senders are gone.
struct Threads {
    server: SyncSender<(u64, Sender<u64>)>,
}

impl Threads {
    fn new() -> Threads {
        let (server, requests) = sync_channel::<(u64, Sender<u64>)>(WAITING_MAX);
        thread::spawn(move || {
            for (request, reply) in requests {
                reply.send(answer(request)).expect("somebody waits");
            }
        });
        Threads { server }
    }

    fn round_trips(&self, trips: u64) {
        // One channel for all answers, which is the cheapest in std.
        let (reply, replies) = channel();
        for request in 0..trips {
            self.server.send((request, reply.clone())).expect("somebody answers");
            assert_eq!(replies.recv(), Ok(answer(request)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_its_reply_and_more_can_be_asked() {
        let mut ours = Machines::new();
        let theirs = [Tasks::new(one_thread()), Tasks::new(many_threads())];
        let threads = Threads::new();
        for trips in [1, 2, 100] {
            ours.round_trips(trips);
            theirs.iter().for_each(|tasks| tasks.round_trips(trips));
            threads.round_trips(trips);
        }
    }
}
