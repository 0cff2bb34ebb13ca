//! A process that inherits a listener, as service managers start it.

mod probe;
mod real;

use std::io::{self, Write};
use std::net::{TcpListener as StdListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use probe::{Log, echo_lines, seed};
use real::{Server, connect};
use rotor_core::net::{DatagramSocket, TcpListeners};
use rotor_core::{Config, EarlyScope, Loop, Response};
use rotor_stream::{Accept, AcceptConfig, InheritedListeners, StreamConfig};

/// Set in the child process of a test below, which runs this program again.
const CHILD: &str = "ROTOR_TEST_HANDED_OVER";

#[test]
fn a_process_serves_an_inherited_listener() -> io::Result<()> {
    if std::env::var_os(CHILD).is_some() {
        let mut inherited = InheritedListeners::from_env();
        assert_eq!(inherited.len(), 1);
        return serve_one_connection(|scope| {
            let listener = inherited.take_tcp(0, scope)?;
            listener.ok_or_else(|| io::Error::other("no listener was handed over"))
        });
    }
    assert_served_by_child("a_process_serves_an_inherited_listener")
}

#[test]
fn an_inherited_listener_is_shared_by_several_loops() -> io::Result<()> {
    if std::env::var_os(CHILD).is_some() {
        let mut inherited = InheritedListeners::from_env();
        let listener = inherited.take_std_tcp(0)?.expect("one was handed over");
        assert!(inherited.take_std_tcp(0)?.is_none(), "it was taken");
        let mut listeners = TcpListeners::from_std(listener, 2)?;
        // The first loop is gone; the other one serves the same queue.
        drop(listeners.next());
        let listener = listeners.next().expect("there are two");
        return serve_one_connection(|scope| {
            rotor_core::net::TcpListener::from_std(listener, scope)
        });
    }
    assert_served_by_child("an_inherited_listener_is_shared_by_several_loops")
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn an_inherited_connection_is_no_listener() -> io::Result<()> {
    if std::env::var_os(CHILD).is_some() {
        let refused = InheritedListeners::from_env().take_std_tcp(0);
        assert_eq!(refused.expect_err("it does not listen").kind(), io::ErrorKind::InvalidInput);
        return Ok(());
    }
    #[expect(clippy::disallowed_methods, reason = "the parent is no loop")]
    let listener = StdListener::bind("127.0.0.1:0")?;
    let connection = connect(listener.local_addr()?);
    let output = start_child("an_inherited_connection_is_no_listener", connection.into())?
        .wait_with_output()?;
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
    Ok(())
}

#[test]
fn a_socket_that_is_not_taken_is_kept_from_child_processes() -> io::Result<()> {
    const TEST: &str = "a_socket_that_is_not_taken_is_kept_from_child_processes";
    if std::env::var_os(CHILD).is_some() {
        let has_socket = || Command::new("sh").args(["-c", ": <&3"]).stderr(Stdio::null()).status();
        assert!(has_socket()?.success(), "nothing has looked at it");
        drop(InheritedListeners::from_env());
        assert!(!has_socket()?.success());
        return Ok(());
    }
    let directory = rotor_test_kit::Directory::create();
    #[expect(clippy::disallowed_methods, reason = "the parent is no loop")]
    let [tcp, udp] =
        [StdListener::bind("127.0.0.1:0")?.into(), OwnedFd::from(UdpSocket::bind("127.0.0.1:0")?)];
    let unix = UnixListener::bind(directory.join("stream"))?.into();
    let datagram = UnixDatagram::bind(directory.join("datagram"))?.into();
    for socket in [tcp, udp, unix, datagram] {
        assert!(start_child(TEST, socket)?.wait()?.success());
    }
    Ok(())
}

#[test]
fn inherited_datagram_sockets_can_be_taken() -> io::Result<()> {
    const TEST: &str = "inherited_datagram_sockets_can_be_taken";
    if std::env::var_os(CHILD).is_some() {
        return with_scope(|scope| {
            let mut inherited = InheritedListeners::from_env();
            if let Ok(socket) = inherited.take_udp(0, scope) {
                assert!(inherited.take_udp(0, scope)?.is_none(), "it was taken");
                return send_back(socket.expect("one was handed over"));
            }
            let socket = inherited.take_unix_datagram(0, scope)?;
            assert!(inherited.take_unix_datagram(0, scope)?.is_none(), "it was taken");
            send_back(socket.expect("it is there after the error"))
        });
    }
    let mut buffer = [0; 9];
    #[expect(clippy::disallowed_methods, reason = "the parent is no loop")]
    let [given, client] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0"));
    let (given, client) = (given?, client?);
    client.send_to(b"hello", given.local_addr()?)?;
    assert!(start_child(TEST, given.into())?.wait()?.success());
    client.set_nonblocking(true)?;
    assert_eq!((client.recv(&mut buffer)?, &buffer[..5]), (5, &b"hello"[..]));
    let directory = rotor_test_kit::Directory::create();
    let paths = ["given", "client"].map(|name| directory.join(name));
    let [given, client] = paths.each_ref().map(UnixDatagram::bind);
    let (given, client) = (given?, client?);
    client.send_to(b"hallo", &paths[0])?;
    assert!(start_child(TEST, given.into())?.wait()?.success());
    client.set_nonblocking(true)?;
    assert_eq!((client.recv(&mut buffer)?, &buffer[..5]), (5, &b"hallo"[..]));
    Ok(())
}

/// Sends the pending datagram back.
fn send_back(mut socket: impl DatagramSocket) -> io::Result<()> {
    let mut buffer = [0; 9];
    let (len, from) = socket.receive_from(&mut buffer)?;
    socket.send_to(&buffer[..len], &from).map(drop)
}

/// Runs a closure with the scope of a machine.
fn with_scope<T>(ask: impl FnOnce(&EarlyScope<'_>) -> io::Result<T>) -> io::Result<T> {
    let mut answer = Err(io::ErrorKind::Other.into());
    let _made = Loop::<Server>::new(&Config::new())?.add_machine_with(|scope| {
        answer = ask(scope);
        Response::done()
    });
    answer
}

/// Runs this program again for one test, with a listener; then acts as its client.
fn assert_served_by_child(test: &str) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the parent is no loop")]
    let listener = StdListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut child = start_child(test, listener.into())?;
    let mut client = connect(address);
    client.set_nonblocking(false)?;
    client.write_all(b"hello\n")?;
    let mut answer = [0; 6];
    io::Read::read_exact(&mut client, &mut answer)?;
    assert_eq!(&answer, b"hello\n");
    drop(client);
    assert!(child.wait()?.success());
    Ok(())
}

/// Runs this program again for one test, with a socket.
fn start_child(test: &str, socket: OwnedFd) -> io::Result<Child> {
    // The shell duplicates it to the first descriptor after the standard ones, as service managers
    // do.
    Command::new("sh")
        .args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" --exact \"$1\" 3<&0"])
        .arg(std::env::current_exe()?)
        .arg(test)
        .env(CHILD, "1")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

fn serve_one_connection(
    listener: impl FnOnce(&EarlyScope<'_>) -> io::Result<rotor_core::net::TcpListener>,
) -> io::Result<()> {
    let mut creator = Loop::<Server>::new(&Config::new())?;
    creator
        .add_machine_with(|scope| match listener(scope) {
            Ok(listener) => {
                let seed = seed(StreamConfig::new(), echo_lines);
                Accept::listen(listener, seed, AcceptConfig::new(), scope)
            }
            Err(error) => Response::error(error),
        })
        .expect("a listener");
    let mut instance = creator.instantiate(Log::new());
    while instance.stats().read().ended == 0 {
        instance.turn(None)?;
    }
    Ok(())
}
