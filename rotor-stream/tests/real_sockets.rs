//! Streams and listeners on the kernel's sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use rotor_core::net::{ListenOptions, TcpListener, TcpStream};
use rotor_core::{Config, Loop, LoopInstance, Scope};
use rotor_stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};

type Server<P> = Accept<Stream<P, TcpStream>, TcpListener>;

struct Echo;

impl Protocol for Echo {
    type Context = ();
    type Seed = ();
    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Echo).delimiter(b"\n", 1024).no_deadline()
    }
    fn bytes_read(self, line: Matched, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        if transport.output.write_all(&transport.input[..line.len()]).is_err() {
            return Intent::done();
        }
        line.consume(transport.input);
        Intent::of(self).keep().keep_deadline()
    }
    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }
}

/// A listener on a port of its own, and its address.
fn serve<P: Protocol<Context = (), Seed = ()>>() -> (LoopInstance<Server<P>>, SocketAddr) {
    let mut creator = Loop::<Server<P>>::new(&Config::new()).expect("a loop");
    let address = "127.0.0.1:0".parse().expect("an address");
    creator
        .add_machine_with(|scope| {
            Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
        })
        .expect("a listener");
    let mut instance = creator.instantiate(());
    let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
    (instance, address.expect("the listener has an address"))
}

#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
fn connect(address: SocketAddr) -> StdStream {
    let client = StdStream::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    client
}

/// Takes turns until the client has got what it waits for, or everything until the end of the stream.
fn receive<M: rotor_core::Machine>(
    instance: &mut LoopInstance<M>,
    client: &mut StdStream,
    count: Option<usize>,
) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    while count.is_none_or(|count| got.len() < count) {
        let mut chunk = [0; 4096];
        match client.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => got.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                instance.turn(Some(Duration::from_millis(20)))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[test]
fn an_echo_server_answers_each_line_and_closes_in_order() -> io::Result<()> {
    let (mut instance, address) = serve::<Echo>();
    let mut client = connect(address);
    client.write_all(b"hello\nwor")?;
    assert_eq!(receive(&mut instance, &mut client, Some(6))?, b"hello\n");
    client.write_all(b"ld\n")?;
    assert_eq!(receive(&mut instance, &mut client, Some(6))?, b"world\n");
    client.write_all(b"last\nhalf a li")?;
    client.shutdown(Shutdown::Write)?;
    assert_eq!(receive(&mut instance, &mut client, None)?, b"last\n");
    while instance.machines().len() > 1 {
        instance.turn(None)?;
    }
    Ok(())
}
