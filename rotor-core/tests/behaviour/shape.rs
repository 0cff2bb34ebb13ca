//! The size of types at rest, and which types may cross threads.

use std::rc::Rc;

use rotor_core::{
    Broadcast, Call, Calls, Deadline, EventSet, Exit, Future, Infallible, Loop, LoopHandle,
    LoopInstance, Machine, Mailbox, Notifier, Outcome, Port, Response, Scope, SendError, Sender,
    Service, Stats, StatsHandle, Time, Token, net, threads,
};

use crate::actor::Actor;

#[test]
fn sizes_of_public_types_are_as_decided() {
    assert_eq!(size_of::<Token>(), 8);
    assert_eq!(size_of::<Option<Token>>(), 16);
    assert_eq!(size_of::<Time>(), 8);
    assert_eq!(size_of::<Deadline>(), 16);
    assert_eq!(size_of::<EventSet>(), 1);
    assert_eq!(size_of::<Response<[u64; 8]>>(), 64 + 24, "its machine and three words");
    assert!(size_of::<Response<Box<u8>>>() <= 40);
    assert_eq!(size_of::<Notifier>(), 32);
    assert_eq!(size_of::<Future<u64>>(), 8);
    assert_eq!(size_of::<Port<u64>>(), 8);
    assert_eq!(size_of::<Sender<u64>>(), 8);
    assert_eq!(size_of::<Mailbox<u64>>(), 8);
    assert_eq!(size_of::<Service<u64, u64>>(), 16);
    assert_eq!(size_of::<Calls<u64, u64>>(), 16);
    assert_eq!(size_of::<Call<u64, u64>>(), 8 + size_of::<u64>(), "a request and a word");
    assert_eq!(size_of::<Scope<'static, ()>>(), 88);
    if !cfg!(debug_assertions) {
        assert_eq!(size_of::<net::TcpStream>(), 4, "a descriptor");
        assert_eq!(size_of::<net::Either<net::TcpStream, net::UnixStream>>(), 8);
    }
}

#[test]
fn public_types_are_send_and_sync_as_promised() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Send + Sync>() {}
    type NotSend = Actor<Rc<u8>>;

    assert_sync::<Notifier>();
    assert_sync::<LoopHandle>();
    assert_sync::<StatsHandle>();
    assert_sync::<Sender<u8>>();
    assert_sync::<Broadcast<NotSend>>();
    assert_sync::<threads::GroupHandle>();
    assert_sync::<net::TcpListeners>();
    assert_send::<Port<u8>>();
    assert_send::<Future<u8>>();
    assert_send::<Outcome<u8>>();
    assert_send::<Mailbox<u8>>();
    assert_send::<Calls<u8, u8>>();
    assert_send::<Call<u8, u8>>();
    assert_sync::<Service<u8, u8>>();
    assert_sync::<SendError<u8>>();
    assert_sync::<Token>();
    assert_sync::<Time>();
    assert_sync::<Stats>();
    assert_sync::<Exit>();
    assert_send::<Response<u8, u8>>();
    assert_send::<threads::LoopGroup>();
    assert_send::<net::TcpStream>();
    assert_send::<net::Either<net::TcpStream, net::UnixStream>>();
}

#[test]
fn a_loop_is_send_if_its_machines_seeds_and_context_are() {
    fn assert_send<T: Send>() {}
    fn assert_loop_is_send<M: Machine<Seed: Send, Context: Send> + Send>() {
        assert_send::<Loop<M>>();
        assert_send::<LoopInstance<M>>();
    }
    assert_loop_is_send::<SendMachine>();
}

struct SendMachine;

impl Machine for SendMachine {
    type Context = ();
    type Seed = Infallible;
}
