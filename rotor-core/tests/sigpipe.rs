//! When the peer has hung up, a write returns an error and raises no signal, even in a program that
//! does not ignore SIGPIPE.
//!
//! Runs in its own process, since signal dispositions apply to the whole process. Rust's runtime
//! ignores SIGPIPE; this process installs a handler, which is as far from that as safe code can
//! get.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::net::UnixStream as StdUnix;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rotor_core::net::{StreamSocket, TcpStream, UnixStream};
use rotor_core::{Config, EarlyScope, EventSet, Infallible, Loop, Machine, Response, Scope};

struct IdleMachine;

impl Machine for IdleMachine {
    type Context = ();
    type Seed = Infallible;
    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }
}

/// A socket whose peer has gone, which the kernel already knows.
fn abandoned_tcp(scope: &EarlyScope<'_>) -> io::Result<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    #[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
    let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (peer, _) = listener.accept()?;
    // Unread bytes make the kernel reset the connection when the peer closes it.
    (&socket).write_all(b"unread")?;
    peer.peek(&mut [0; 6])?;
    drop(peer);
    let reset = io::Read::read(&mut &socket, &mut [0; 1]);
    assert_eq!(reset.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    TcpStream::from_std(socket, scope)
}

fn abandoned_unix(scope: &EarlyScope<'_>) -> io::Result<UnixStream> {
    let (socket, _peer) = StdUnix::pair()?;
    UnixStream::from_std(socket, scope)
}

/// Writes in every way; each write fails.
fn assert_writes_fail<S: StreamSocket>(socket: &mut S) -> io::Result<()> {
    let file = File::open(std::env::current_exe()?)?;
    let slices = [IoSlice::new(b"to "), IoSlice::new(b"nobody")];
    for written in
        [socket.write(b"to nobody"), socket.write_vectored(&slices), socket.send_file(&file, 0, 9)]
    {
        assert_eq!(written.map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe));
    }
    Ok(())
}

#[test]
fn a_write_to_a_closed_peer_is_an_error_and_raises_no_signal() -> io::Result<()> {
    let raised = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, raised.clone())?;
    let mut creator = Loop::<IdleMachine>::new(&Config::new())?;
    let made = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            assert_writes_fail(&mut abandoned_tcp(scope)?)?;
            assert_writes_fail(&mut abandoned_unix(scope)?)?;
            Ok(Response::ok(IdleMachine))
        })
    });
    made.expect("every write was refused");
    assert!(!raised.load(SeqCst), "a signal was raised");

    // The handler would have noticed: the standard library's vectored write raises the signal.
    let (mut socket, peer) = StdUnix::pair()?;
    drop(peer);
    assert!(socket.write_vectored(&[IoSlice::new(b"to nobody")]).is_err());
    assert!(raised.load(SeqCst));
    Ok(())
}
