//! The same machine on another kind of socket.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use rotor::net::{ListenOptions, Listener, UnixListener};
use rotor::{Config, Loop, Response};
use rotor_test_kit::Directory;

use crate::driving::{PATIENCE, Total, drive};
use crate::echo::EchoServer;

#[test]
fn the_echo_server_serves_unix_sockets_unchanged() {
    let directory = Directory::create();
    let path = directory.join("stream");
    let mut creator =
        Loop::<EchoServer<Total, UnixListener>>::new(&Config::new()).expect("a descriptor");
    let added = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = UnixListener::bind(&path, &ListenOptions::new(), scope)?;
            Ok(Response::ok(EchoServer::listen(listener, scope)?))
        })
    });
    added.expect("a free path");
    let mut instance = creator.instantiate(Total::default());
    let mut client = UnixStream::connect(&path).expect("the listener is open");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    client.write_all(&[7; 10_000]).expect("the system takes it");
    client.shutdown(Shutdown::Write).expect("it is connected");
    let stats = instance.stats();
    drive(&mut instance, || stats.read().ended == 1);
    let mut received = Vec::new();
    client.read_to_end(&mut received).expect("it comes back");
    assert!(received == [7; 10_000]);
}
