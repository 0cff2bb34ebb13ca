//! Sockets of every backend, made through the scope by machines that are generic over them.

mod closing;
pub(crate) mod datagrams;
mod events;
mod reading;
mod resetting;
pub(crate) mod streams;
mod unread;

use rotor_core::net::{DatagramSocket, ListenOptions, Listener};
use rotor_core::{Config, EventSet, Response, Scope};

use crate::actor::{Actor, Call, actor, idle};
use crate::loops::{DatagramOn, ListenerOn, OnLoop, Rig, local, on_every_loop};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog";

/// A loop with an idle machine. The test makes something through that machine's scope, and holds
/// it.
fn rig_with<L: OnLoop, T>(make: impl FnOnce(&Scope<'_, ()>) -> T) -> (Rig<Actor<()>, L>, T) {
    let mut rig = Rig::new(&Config::new(), ());
    let mut made = None;
    rig.add(|scope| {
        made = Some(make(scope));
        Response::ok(idle())
    });
    (rig, made.expect("the closure ran"))
}

/// A machine that notes which events were reported.
fn event_recorder() -> Actor<EventSet> {
    actor(|call, scope: &mut Scope<'_, EventSet>| {
        if let Call::Ready(events) = call {
            **scope |= events;
        }
        Response::keep(())
    })
}

on_every_loop!(an_address_in_use_is_named_in_the_error);
fn an_address_in_use_is_named_in_the_error<L: OnLoop>() {
    rig_with::<L, _>(|scope| {
        let options = ListenOptions::new();
        let first = ListenerOn::<L>::bind(&local(), &options, scope).expect("a port is free");
        let address = first.local_address().expect("it is bound");
        let second = ListenerOn::<L>::bind(&address, &options, scope).err();
        let datagrams = DatagramOn::<L>::bind(&local(), scope).expect("a port is free");
        let of_datagrams = datagrams.local_address().expect("it is bound");
        let third = DatagramOn::<L>::bind(&of_datagrams, scope).err();
        for (refused, address) in [(second, address), (third, of_datagrams)] {
            let refused = refused.expect("it is taken");
            assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
            assert!(refused.to_string().contains(&address.to_string()), "{refused}");
        }
    });
}
