//! The same machine on another kind of socket.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::{env, fs, process};

use rotor::net::{ListenOptions, Listener, UnixListener};
use rotor::{Config, Loop, Response};

use crate::driving::{PATIENCE, Total, drive};
use crate::echo::EchoServer;

/// A path in the directory that cargo gives to tests, free to be bound.
pub(crate) fn socket_path(name: &str) -> PathBuf {
    // Socket paths are short, 108 bytes at most, and directories of builds may be long.
    let path = env::temp_dir().join(format!("rotor-{}-{name}", process::id()));
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn the_echo_server_serves_unix_sockets_unchanged() {
    let path = socket_path("stream");
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
    fs::remove_file(&path).expect("it was bound");
}
