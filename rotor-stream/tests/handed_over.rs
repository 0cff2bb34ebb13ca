//! A process that is started with a listener, as service managers do it.

mod probe;
mod real;

use std::io::{self, Write};
use std::net::TcpListener as StdListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use probe::{Log, echo_lines, seed};
use real::{Server, connect};
use rotor_core::{Config, Loop};
use rotor_stream::{Accept, AcceptConfig, HandedOver, StreamConfig};

/// Set for the child of the test below, which is this program once more.
const CHILD: &str = "ROTOR_TEST_HANDED_OVER";

#[test]
fn a_process_serves_the_listener_that_it_was_started_with() -> io::Result<()> {
    if std::env::var_os(CHILD).is_some() {
        return serve_one_connection();
    }
    #[expect(clippy::disallowed_methods, reason = "the parent is no loop")]
    let listener = StdListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    // The shell moves the listener to the first descriptor after the standard ones, as service managers do.
    let mut child = Command::new("sh")
        .args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" --exact \"$1\" 3<&0"])
        .arg(std::env::current_exe()?)
        .arg("a_process_serves_the_listener_that_it_was_started_with")
        .env(CHILD, "1")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
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

fn serve_one_connection() -> io::Result<()> {
    let mut handed_over = HandedOver::from_env();
    assert_eq!(handed_over.len(), 1);
    let mut creator = Loop::<Server>::new(&Config::new())?;
    creator
        .add_machine_with(|scope| match handed_over.take_tcp(0, scope) {
            Ok(Some(listener)) => {
                let seed = seed(StreamConfig::new(), echo_lines);
                Accept::listen(listener, seed, AcceptConfig::new(), scope)
            }
            Ok(None) => rotor_core::Response::error("no listener was handed over"),
            Err(error) => rotor_core::Response::error(error),
        })
        .expect("a listener");
    let mut instance = creator.instantiate(Log::new());
    while instance.stats().read().ended == 0 {
        instance.turn(None)?;
    }
    Ok(())
}
