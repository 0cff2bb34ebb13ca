//! Machines, including boxed ones, that are bound to their thread since they hold values that are
//! not `Send`.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use rotor_core::{
    BoxMachine, BoxSeed, Compose2, Config, Loop, Machine, PostError, Response, Scope,
};

use crate::actor::idle;
use crate::manual::{Manual, settle};

#[test]
fn a_closure_posted_by_another_thread_wakes_a_sleeping_loop() {
    // The machines are not `Send`, since they hold an `Rc`; the broadcast goes to the other thread
    // nevertheless.
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|_| Response::ok(idle::<Rc<RefCell<u32>>>()));
    made.expect("there is room");
    let mut instance = creator.instantiate(Rc::new(RefCell::new(0)));
    let broadcast = instance.broadcast();
    thread::scope(|threads| {
        threads.spawn(move || {
            for _ in 0..1_000 {
                let mut post = Err(PostError::Full(()));
                while post.is_err() {
                    post = broadcast
                        .post(|_, scope| *scope.borrow_mut() += 1)
                        .map_err(|_| PostError::Full(()));
                }
            }
            broadcast.post(|_, scope| scope.stop_loop()).expect("there is room");
        });
        instance.run().expect("the backend can wait");
    });
    assert_eq!(*instance.context().borrow(), 1_000);
}

#[test]
fn a_composed_machine_wakes_itself_through_every_layer() {
    type Both = Compose2<BoxMachine<u32>, YieldingMachine>;
    struct YieldingMachine(u32);
    impl Machine for YieldingMachine {
        type Context = u32;
        type Seed = u32;
        fn create(left: u32, scope: &mut Scope<'_, u32>) -> Response<Self> {
            scope.wake_self();
            Response::ok(YieldingMachine(left))
        }
        fn wakeup(self, scope: &mut Scope<'_, u32>) -> Response<Self, u32> {
            **scope += 1;
            if self.0 == 0 {
                return Response::done();
            }
            scope.wake_self();
            Response::ok(YieldingMachine(self.0 - 1))
        }
    }
    let manual = Manual::new();
    let mut instance = manual.creator::<Both>(&Config::new()).instantiate(0);
    instance.spawn(Compose2::B(4)).expect("there is room");
    instance.spawn(Compose2::A(BoxSeed::new::<YieldingMachine>(4))).expect("there is room");
    settle(&mut instance);
    assert_eq!(*instance.context(), 10);
}
