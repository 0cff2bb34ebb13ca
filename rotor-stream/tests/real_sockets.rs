//! Streams and listeners on the kernel's sockets.

mod probe;
mod real;

use std::cell::RefCell;
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::{self, IoSlice, Read, Write};
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener as StdListener};
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnix;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use probe::{Event, Log, Probe, Seed, echo_lines, seed};
use real::{Server, assert_echoes, connect, receive, serve, serve_with, turn_until};
use rotor_core::net::{ListenOptions, TcpListener, TcpStream, UnixListener, UnixStream, is_plain};
use rotor_core::{Config, Exit, Loop, LoopInstance, Scope};
use rotor_stream::buf::BLOCK_BYTES;
use rotor_stream::{Accept, AcceptConfig, Intent, Stream, StreamConfig, Transport};
#[cfg(target_os = "linux")]
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use socket2::{SockRef, Socket};

fn echo() -> (LoopInstance<Server>, SocketAddr) {
    serve(seed(StreamConfig::new(), echo_lines))
}

/// Has the kernel reset the connection when this end is dropped.
fn reset(client: std::net::TcpStream) {
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("an option of every socket");
}

#[test]
fn an_echo_server_answers_each_line_and_closes_in_order() -> io::Result<()> {
    let (mut instance, address) = echo();
    let mut client = connect(address);
    client.write_all(b"hello\nwor")?;
    assert_eq!(receive(&mut instance, &mut client, Some(6))?, b"hello\n");
    client.write_all(b"ld\n")?;
    assert_eq!(receive(&mut instance, &mut client, Some(6))?, b"world\n");
    client.write_all(b"last\nhalf a li")?;
    client.shutdown(Shutdown::Write)?;
    assert_eq!(receive(&mut instance, &mut client, None)?, b"last\n");
    turn_until(&mut instance, |instance| instance.machines().len() == 1);
    Ok(())
}

#[test]
fn data_and_the_end_in_one_edge_are_both_seen() -> io::Result<()> {
    let (mut instance, address) = echo();
    let mut client = connect(address);
    assert_echoes(&mut instance, &mut client);
    client.write_all(b"one\ntwo\n")?;
    client.shutdown(Shutdown::Write)?;
    assert_eq!(receive(&mut instance, &mut client, None)?, b"one\ntwo\n");
    turn_until(&mut instance, |instance| instance.machines().len() == 1);
    Ok(())
}

#[test]
fn an_urgent_byte_stays_in_its_place() -> io::Result<()> {
    let (mut instance, address) = echo();
    let mut client = connect(address);
    client.write_all(b"ab")?;
    SockRef::from(&client).send_out_of_band(b"!")?;
    client.write_all(b"cd\n")?;
    assert_eq!(receive(&mut instance, &mut client, Some(6))?, b"ab!cd\n");
    Ok(())
}

#[test]
fn a_peer_that_hangs_up_is_heard_to_the_end() -> io::Result<()> {
    let (mut instance, address) = echo();
    let mut client = connect(address);
    client.write_all(b"first\nlast words\n")?;
    drop(client);
    turn_until(&mut instance, |instance| {
        instance.context().len() >= 3 && instance.machines().len() == 1
    });
    assert_eq!(instance.context()[..3], ["create", "read \"first\"", "read \"last words\""]);
    Ok(())
}

#[test]
fn a_peer_that_resets_after_its_last_line_is_heard_to_the_end() -> io::Result<()> {
    let (mut instance, address) = echo();
    let mut client = connect(address);
    assert_echoes(&mut instance, &mut client);
    client.write_all(b"last words\n")?;
    reset(client);
    turn_until(&mut instance, |instance| instance.machines().len() == 1);
    assert_eq!(instance.context()[2], "read \"last words\"");
    assert!(instance.context()[3].starts_with("fatal: "), "{:?}", instance.context());
    Ok(())
}

/// A reader that is as fast as the writer: as long as there is room, one system call would go on
/// for ever.
#[test]
fn a_turn_writes_no_more_of_a_file_than_its_budget_whatever_the_peer_takes() -> io::Result<()> {
    const LEN: usize = 256 << 20;
    const BUDGET: usize = 1 << 20;
    let path = std::env::temp_dir().join(format!("rotor-file-budget-{}", std::process::id()));
    File::create_new(&path)?.set_len(LEN as u64)?;
    let file = Arc::new(File::open(&path)?);
    std::fs::remove_file(&path)?;
    let config = StreamConfig::new().write_budget(BUDGET);
    let (mut instance, address) =
        serve(seed(config, move |me: Probe, event, transport, _| match event {
            Event::Create => {
                transport.output.push_file(file.clone(), 0, LEN).expect("open");
                Intent::of(me).flush(0).no_deadline()
            }
            _ => Intent::done(),
        }));
    let mut client = connect(address);
    client.set_nonblocking(false)?;
    let waiting = |instance: &mut LoopInstance<Server>| {
        instance.machines().iter().find_map(|(_, machine)| Some(machine.connection()?.output_len()))
    };
    let (mut left, mut most) = (LEN, 0);
    std::thread::scope(|threads| {
        let reading = threads.spawn(|| io::copy(&mut client, &mut io::sink()));
        while left > 0 {
            instance.turn(Some(Duration::from_secs(10)))?;
            // Before it is accepted, and once it has ended, there is none.
            let now = waiting(&mut instance).unwrap_or(if left == LEN { LEN } else { 0 });
            (most, left) = (most.max(left - now), now);
        }
        drop(instance);
        assert_eq!(reading.join().expect("it does not panic")?, LEN as u64);
        io::Result::Ok(())
    })?;
    assert!(most <= BUDGET, "{most} bytes in one turn");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn what_the_system_keeps_for_a_peer_that_does_not_read_can_be_bounded() -> io::Result<()> {
    const LEN: usize = 16 << 20;
    let taken = |config: StreamConfig| {
        let (mut instance, address) = serve(seed(config, |me: Probe, event, transport, _| {
            if let Event::Create = event {
                transport.output.push_block(vec![b'x'; LEN]).expect("open");
            }
            Intent::of(me).sleep().no_deadline()
        }));
        let _client = connect(address);
        let left = |instance: &mut LoopInstance<Server>| {
            instance
                .machines()
                .iter()
                .find_map(|(_, machine)| Some(machine.connection()?.output_len()))
        };
        let mut before = None;
        // Until it stands still: the peer's end of the loopback answers in between.
        loop {
            instance.turn(Some(Duration::from_millis(50)))?;
            let now = left(&mut instance);
            if now.is_some() && now == before {
                return io::Result::Ok(LEN - now.unwrap_or(LEN));
            }
            before = now;
        }
    };
    let free = taken(StreamConfig::new())?;
    for (name, config) in [
        ("SO_SNDBUF", StreamConfig::new().send_buffer(Some(16 * 1024))),
        ("TCP_NOTSENT_LOWAT", StreamConfig::new().unsent_max(Some(16 * 1024))),
    ] {
        let bounded = taken(config)?;
        assert!(bounded < free / 2, "{bounded} bytes with {name}, {free} without");
    }
    Ok(())
}

#[test]
fn a_reset_in_the_middle_of_a_write_ends_that_connection_only() -> io::Result<()> {
    let (mut instance, address) =
        serve(seed(StreamConfig::new(), |me, event, transport, scope| {
            if let Event::Read(line) = event
                && line.len() == 2
            {
                line.consume(transport.input);
                transport.output.push_block(vec![b'x'; 32 << 20]).expect("open");
                return Intent::of(me).flush(0).no_deadline();
            }
            echo_lines(me, event, transport, scope)
        }));
    let mut other = connect(address);
    let mut client = connect(address);
    client.write_all(b"!\n")?;
    let begun = receive(&mut instance, &mut client, Some(1))?;
    assert!(!begun.is_empty() && begun.len() < 32 << 20);
    reset(client);
    turn_until(&mut instance, |instance| {
        instance.context().last().is_some_and(|call| call.starts_with("fatal"))
    });
    assert_echoes(&mut instance, &mut other);
    Ok(())
}

#[test]
fn requests_that_had_arrived_before_a_drain_are_answered_by_the_kernels_sockets_too()
-> io::Result<()> {
    const CLIENTS: usize = 200;
    let polite =
        |me: Probe, event: &Event, transport: &mut Transport<'_>, scope: &mut Scope<'_, Log>| {
            let is_told = matches!(event, Event::Draining(_));
            if is_told && transport.input.is_empty() {
                return Intent::done();
            }
            let intent = echo_lines(me, event, transport, scope);
            let is_last = matches!(event, Event::Read(_)) && scope.draining_until().is_some();
            if is_last && transport.input.is_empty() { Intent::done() } else { intent }
        };
    for is_accepted in [false, true] {
        let (mut instance, address) = serve(seed(StreamConfig::new(), polite));
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| connect(address)).collect();
        if is_accepted {
            turn_until(&mut instance, |instance| instance.machines().len() == 1 + CLIENTS);
        }
        for client in &mut clients {
            client.write_all(b"request\n")?;
        }
        instance.handle().drain(Duration::from_secs(60));
        let mut served = 0;
        let exit = std::thread::scope(|threads| {
            // The loop ends when they have seen the end of its side.
            let reading = threads.spawn(|| {
                let answers = clients.iter_mut().map(|client| {
                    client.set_nonblocking(false)?;
                    let mut got = Vec::new();
                    client.read_to_end(&mut got)?;
                    client.shutdown(Shutdown::Both)?;
                    io::Result::Ok(got)
                });
                answers
                    .filter(|answer| answer.as_ref().is_ok_and(|got| got == b"request\n"))
                    .count()
            });
            let exit = instance.run();
            served = reading.join().expect("it does not panic");
            exit
        })?;
        assert_eq!(
            (served, exit),
            (CLIENTS, Exit::Drained { dropped: 0 }),
            "accepted: {is_accepted}"
        );
    }
    Ok(())
}

#[test]
fn each_side_may_end_on_its_own() -> io::Result<()> {
    let (mut instance, address) =
        serve(seed(StreamConfig::new(), |me, event, transport, _| match event {
            Event::Create => {
                transport.output.write_all(b"all that I have to say").expect("open");
                transport.shutdown_write();
                Intent::of(me).bytes(1000).no_deadline()
            }
            Event::Exception(_) => {
                assert_eq!(&transport.input[..], b"and the peer goes on");
                Intent::done()
            }
            _ => Intent::of(me).keep().keep_deadline(),
        }));
    let mut client = connect(address);
    assert_eq!(receive(&mut instance, &mut client, None)?, b"all that I have to say");
    client.write_all(b"and the peer goes on")?;
    client.shutdown(Shutdown::Write)?;
    turn_until(&mut instance, |instance| instance.machines().len() == 1);
    assert_eq!(instance.context()[1], "exception: the peer has ended the stream");
    Ok(())
}

#[test]
fn files_and_blocks_arrive_in_order() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("rotor-real-file-{}", std::process::id()));
    let content: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, &content)?;
    let file = Arc::new(File::open(&path)?);
    std::fs::remove_file(&path)?;
    let block: Arc<[u8]> = vec![b'b'; 100_000].into();
    let (file_of_server, block_of_server) = (file, block.clone());
    let (mut instance, address) = serve(seed(StreamConfig::new(), move |_, _, transport, _| {
        let output = &mut *transport.output;
        output.write_all(b"begin ").expect("open");
        output.push_block(block_of_server.clone()).expect("open");
        output.push_file(file_of_server.clone(), 1, 2_999_999).expect("open");
        output.write_all(b" end").expect("open");
        Intent::done()
    }));
    let mut client = connect(address);
    let got = receive(&mut instance, &mut client, None)?;
    assert!(got == [b"begin ", &block[..], &content[1..], b" end"].concat(), "{} bytes", got.len());
    Ok(())
}

#[test]
fn a_full_slab_leaves_connections_waiting() -> io::Result<()> {
    let (mut instance, address) = serve_with(
        Config::new().machines_max(2),
        AcceptConfig::new(),
        seed(StreamConfig::new(), echo_lines),
    );
    let mut first = connect(address);
    let mut second = connect(address);
    assert_echoes(&mut instance, &mut first);
    second.write_all(b"waiting\n")?;
    assert_echoes(&mut instance, &mut first);
    drop(first);
    assert_eq!(receive(&mut instance, &mut second, Some(8))?, b"waiting\n");
    Ok(())
}

#[test]
fn many_connections_in_a_row_leave_nothing_behind() -> io::Result<()> {
    let (mut instance, address) = serve_with(
        Config::new().machines_max(8),
        AcceptConfig::new(),
        seed(StreamConfig::new(), echo_lines),
    );
    for round in 0..500 {
        let mut client = connect(address);
        assert_echoes(&mut instance, &mut client);
        match round % 3 {
            0 => drop(client),
            1 => reset(client),
            _ => client.shutdown(Shutdown::Write)?,
        }
        turn_until(&mut instance, |instance| instance.machines().len() == 1);
    }
    assert_eq!(instance.stats().read().failed, 0);
    Ok(())
}

type Client = Stream<Probe, TcpStream>;

fn client(address: SocketAddr, config: StreamConfig) -> io::Result<LoopInstance<Client>> {
    let mut creator = Loop::<Client>::new(&Config::new())?;
    let seed = seed(config, echo_lines);
    creator
        .add_machine_with(|scope| Stream::connect(&address, seed, scope))
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(creator.instantiate(Log::new()))
}

#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
fn listen() -> io::Result<(StdListener, SocketAddr)> {
    let listener = StdListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[test]
fn a_client_connects_and_talks() -> io::Result<()> {
    let (listener, address) = listen()?;
    let mut instance = client(address, StreamConfig::new())?;
    turn_until(&mut instance, |instance| *instance.context() == ["create"]);
    let (mut server, _) = listener.accept()?;
    server.set_nonblocking(true)?;
    assert_echoes(&mut instance, &mut server);
    drop(server);
    assert_eq!(instance.run()?, rotor_core::Exit::Empty);
    Ok(())
}

#[test]
fn a_refused_connection_is_told() -> io::Result<()> {
    // Bound, so that nobody else listens there, and not listening.
    let closed = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    closed.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    let address = closed.local_addr()?.as_socket().expect("it is IPv4");
    let mut instance = client(address, StreamConfig::new())?;
    assert_eq!(instance.run()?, rotor_core::Exit::Empty);
    assert_eq!(instance.context().len(), 1);
    assert!(
        instance.context()[0].starts_with("not connected: cannot connect: "),
        "{:?}",
        instance.context()
    );
    Ok(())
}

#[test]
fn a_connection_that_hangs_is_given_up() -> io::Result<()> {
    let (listener, address) = listen()?;
    SockRef::from(&listener).listen(0)?;
    // Once the queue of the listener is full, the kernel leaves further attempts without an answer.
    let mut filling = Vec::new();
    for _ in 0..4 {
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let _in_progress = socket.connect(&address.into());
        filling.push(socket);
    }
    let mut instance =
        client(address, StreamConfig::new().connect_timeout(Duration::from_millis(20)))?;
    assert_eq!(instance.run()?, rotor_core::Exit::Empty);
    assert_eq!(*instance.context(), ["not connected: connecting took too long"]);
    Ok(())
}

fn unix_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rotor-{name}-{}.sock", std::process::id()))
}

type UnixServer = Accept<Stream<Probe, UnixStream>, UnixListener>;

/// A server at a path, and a client of it.
fn serve_unix(path: &Path, seed: Seed) -> io::Result<(LoopInstance<UnixServer>, StdUnix)> {
    let mut creator = Loop::<UnixServer>::new(&Config::new())?;
    let path = path.to_path_buf();
    creator
        .add_machine_with(|scope| {
            Accept::bind(&path, &ListenOptions::new(), seed, AcceptConfig::new(), scope)
        })
        .expect("a listener");
    let client = StdUnix::connect(&path)?;
    client.set_nonblocking(true)?;
    Ok((creator.instantiate(Log::new()), client))
}

/// Sends bytes that a descriptor comes with, as unix(7) has it.
#[cfg(target_os = "linux")]
fn send_with_descriptor(client: &StdUnix, bytes: &[u8]) -> io::Result<()> {
    let descriptors = [client.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(client, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty())?;
    assert_eq!(sent, bytes.len());
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn what_follows_bytes_that_came_with_a_descriptor_is_read_too() -> io::Result<()> {
    let path = unix_path("descriptor");
    let (mut instance, mut client) = serve_unix(&path, seed(StreamConfig::new(), echo_lines))?;
    assert_echoes(&mut instance, &mut client);
    // Both are there before the loop looks, so one edge tells of both; a read ends between them.
    send_with_descriptor(&client, b"on")?;
    client.write_all(b"e\n")?;
    assert_eq!(receive(&mut instance, &mut client, Some(4))?, b"one\n");
    std::fs::remove_file(&path)
}

#[test]
fn much_that_comes_at_once_is_read_in_few_calls_and_little_in_a_small_block() -> io::Result<()> {
    // On io_uring a socket copies what the kernel has put elsewhere: it is lent a block at a time.
    if !is_plain::<UnixStream>() {
        return Ok(());
    }
    let path = unix_path("much");
    let calls = Rc::new(RefCell::new(Vec::new()));
    let noted = calls.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, _| {
        if let Event::Read(_) = event {
            noted.borrow_mut().push(transport.input.len());
            transport.input.clear();
        }
        Intent::of(me).bytes(1).no_deadline()
    });
    let (mut instance, mut client) = serve_unix(&path, seed)?;
    let mut read = |bytes: usize| -> io::Result<Vec<usize>> {
        client.write_all(&vec![b'x'; bytes])?;
        turn_until(&mut instance, |_| calls.borrow().iter().sum::<usize>() >= bytes);
        Ok(calls.take())
    };
    assert_eq!(read(100)?, [100]);
    // One block, then four at a time, then less than one; and after that short read a block again.
    let [block, large] = [BLOCK_BYTES, 4 * BLOCK_BYTES];
    assert_eq!(read(block + 2 * large + 100)?, [block, large, large, 100]);
    assert_eq!(read(block + 100)?, [block, 100]);
    std::fs::remove_file(&path)
}

#[test]
fn messages_of_a_block_and_a_header_are_each_read_at_once_but_for_the_first() -> io::Result<()> {
    if !is_plain::<UnixStream>() {
        return Ok(());
    }
    const MESSAGE: usize = BLOCK_BYTES + 8;
    let path = unix_path("messages");
    let calls = Rc::new(RefCell::new(Vec::new()));
    let noted = calls.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, _| {
        if let Event::Read(_) = event {
            noted.borrow_mut().push(transport.input.len());
            if transport.input.len() < MESSAGE {
                return Intent::of(me).bytes(MESSAGE).no_deadline();
            }
            transport.input.clear();
        }
        Intent::of(me).bytes(1).no_deadline()
    });
    let (mut instance, mut client) = serve_unix(&path, seed)?;
    for expected in [&[BLOCK_BYTES, MESSAGE][..], &[MESSAGE], &[MESSAGE]] {
        client.write_all(&[b'x'; MESSAGE])?;
        turn_until(&mut instance, |_| calls.borrow().last() == Some(&MESSAGE));
        assert_eq!(calls.take(), expected);
    }
    std::fs::remove_file(&path)
}

#[test]
fn unix_sockets_are_served_and_connected_to() -> io::Result<()> {
    let path = unix_path("echo");
    let (mut instance, mut client) = serve_unix(&path, seed(StreamConfig::new(), echo_lines))?;
    assert_echoes(&mut instance, &mut client);
    client.write_all(b"last words\n")?;
    drop(client);
    turn_until(&mut instance, |instance| {
        instance.context().iter().any(|call| call == "read \"last words\"")
    });
    std::fs::remove_file(&path)?;

    let mut creator = Loop::<Stream<Probe, UnixStream>>::new(&Config::new())?;
    let refused = creator.add_machine_with(|scope| {
        Stream::connect(&path, seed(StreamConfig::new(), echo_lines), scope)
    });
    assert!(refused.is_err(), "nobody listens there any more");
    Ok(())
}

#[test]
fn a_listener_made_elsewhere_is_adopted() -> io::Result<()> {
    let (listener, address) = listen()?;
    let mut creator = Loop::<Server>::new(&Config::new())?;
    creator
        .add_machine_with(|scope| match TcpListener::from_std(listener, scope) {
            Ok(listener) => {
                let seed = seed(StreamConfig::new(), echo_lines);
                Accept::listen(listener, seed, AcceptConfig::new(), scope)
            }
            Err(error) => rotor_core::Response::error(error),
        })
        .expect("a listener");
    let mut instance = creator.instantiate(Log::new());
    assert_echoes(&mut instance, &mut connect(address));
    Ok(())
}
