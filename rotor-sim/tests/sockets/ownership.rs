//! The hosts, loops and simulations on which a socket can be used.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use rotor_core::net::{
    DatagramSocket, ListenOptions, Listener, StreamSocket, TcpListener, TcpStream,
};
use rotor_core::{Config, Interest, Loop, Response};
use rotor_sim::net::{
    SimTcpListener, SimTcpStream, SimUnixDatagram, SimUnixListener, SimUnixStream,
};
use rotor_sim::{Failure, Sim};

use crate::driver::Holder;
use crate::{Machine, error_kind, host_with_socket};

#[test]
fn paths_name_sockets_of_one_host() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let path = PathBuf::from("/run/service");
    let host =
        sim.host("host", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    let other =
        sim.host("other", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sim.with(host, |instance| {
        let added = instance.add_machine_with(|scope| {
            let mut listener =
                SimUnixListener::bind(&path, &ListenOptions::new(), scope).expect("it binds");
            assert_eq!(
                error_kind(SimUnixListener::bind(&path, &ListenOptions::new(), scope)),
                ErrorKind::AddrInUse
            );
            let client = SimUnixStream::connect(&path, scope).expect("somebody listens");
            assert!(client.is_connected() && client.peer_address().is_none());
            let (_server, peer) = listener.accept().expect("it waits already");
            assert_eq!(peer, None);
            let datagrams = SimUnixDatagram::bind(&path, scope).expect("it binds");
            assert_eq!(datagrams.local_address().expect("it has one"), path);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    sim.with(other, |instance| {
        let added = instance.add_machine_with(|scope| {
            assert_eq!(error_kind(SimUnixStream::connect(&path, scope)), ErrorKind::NotFound);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    Ok(())
}

#[test]
fn a_socket_on_an_unsuitable_loop_is_unsupported_and_both_are_named() -> Result<(), Failure> {
    let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let mut creator: Loop<Machine<()>> = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let error = SimTcpStream::connect(&address, scope).expect_err("it is simulated");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = "a simulated TCP stream cannot be used on a loop of the mio backend";
        assert_eq!(error.to_string(), text);
        let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope);
        assert_eq!(error_kind(listener), ErrorKind::Unsupported);
        Response::ok(Holder::new(Rc::default()))
    });
    added.expect("there is room");

    let mut sim = Sim::new(1);
    let host =
        sim.host("host", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sim.with(host, |instance| {
        let added = instance.add_machine_with(|scope| {
            let error = <TcpStream as StreamSocket>::connect(&address, scope)
                .expect_err("it is the kernel's");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = "a TCP socket cannot be used on a loop of the simulation backend";
            assert_eq!(error.to_string(), text);
            let listener = <TcpListener as Listener>::bind(&address, &ListenOptions::new(), scope);
            assert_eq!(error_kind(listener), ErrorKind::Unsupported);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    Ok(())
}

#[test]
fn a_socket_belongs_to_its_host_and_its_simulation() -> Result<(), Failure> {
    let mut sims = [Sim::new(1), Sim::new(1)];
    let mut strays = Vec::new();
    for sim in &mut sims {
        let target: SocketAddr = "10.0.0.1:1".parse().expect("an address");
        let (_, held) = host_with_socket(sim, "a", move |scope| {
            SimTcpStream::connect(&target, scope).expect("it begins")
        })?;
        strays.extend(held.borrow_mut().take());
    }
    let other =
        sims[0].host("b", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sims[0].with(other, |instance| {
        let added = instance.add_machine_with(|scope| {
            let texts =
                ["is of another simulation", "of host a cannot be used on the loop of host b"];
            for text in texts {
                let mut stray = strays.pop().expect("two of them");
                let error =
                    scope.register(&mut stray, Interest::Both).expect_err("it is not of this loop");
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().ends_with(text), "{error}");
            }
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    Ok(())
}
