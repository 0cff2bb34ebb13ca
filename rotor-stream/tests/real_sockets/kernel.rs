//! What only kernel sockets have: paths, descriptors, urgent bytes, the kernel's own buffers.

use std::cell::RefCell;
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::IoSlice;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnix;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::Config;
use rotor_core::net::{ListenOptions, listen_unix};
use rotor_stream::buf::BLOCK_BYTES;
use rotor_stream::{Accept, AcceptConfig, Connect, Intent, Stream, StreamConfig};
use rotor_test_kit::Directory;
#[cfg(target_os = "linux")]
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::every_loop::{Server, assert_echoes, serve};
use crate::loops::{
    Adopt, ListenerOn, OnKernel, Rig, UnixListenerOn, UnixStreamOn, local, on_kernel_loops,
};
use crate::probe::{Event, Log, Probe, Seed, echo_lines, seed};

on_kernel_loops!(an_urgent_byte_stays_in_its_place, "others have no urgent bytes");
fn an_urgent_byte_stays_in_its_place<L: OnKernel>() -> io::Result<()> {
    let (mut rig, address) = serve::<L>(seed(StreamConfig::new(), echo_lines));
    let mut client = rig.connect(address);
    client.write_all(b"ab")?;
    SockRef::from(&client).send_out_of_band(b"!")?;
    client.write_all(b"cd\n")?;
    assert_eq!(rig.receive(&mut client, Some(6))?, b"ab!cd\n");
    Ok(())
}

on_kernel_loops!(
    a_turn_writes_at_most_its_budget_of_a_file_to_a_fast_reader,
    "elsewhere nobody reads while a turn writes"
);
/// A reader as fast as the writer: since there is always room, one system call would go on forever.
fn a_turn_writes_at_most_its_budget_of_a_file_to_a_fast_reader<L: OnKernel>() -> io::Result<()> {
    const LEN: usize = 256 << 20;
    const BUDGET: usize = 1 << 20;
    let directory = Directory::create();
    let path = directory.join("zeros");
    File::create_new(&path)?.set_len(LEN as u64)?;
    let file = Arc::new(File::open(&path)?);
    drop(directory);
    let config = StreamConfig::new().write_budget(BUDGET);
    let (mut rig, address) =
        serve::<L>(seed(config, move |me: Probe, event, transport, _| match event {
            Event::Create => {
                transport.output.push_file(file.clone(), 0, LEN).expect("open");
                Intent::of(me).flush(0).no_deadline()
            }
            _ => Intent::done(),
        }));
    let mut client = rig.connect(address);
    client.set_nonblocking(false)?;
    let (mut left, mut most) = (LEN, 0);
    std::thread::scope(|threads| {
        let reading = threads.spawn(|| io::copy(&mut client, &mut io::sink()));
        while left > 0 {
            rig.turn();
            // There is no output before the connection is accepted and after it has ended.
            let now = output_len(&mut rig).unwrap_or(if left == LEN { LEN } else { 0 });
            (most, left) = (most.max(left - now), now);
        }
        drop(rig);
        assert_eq!(reading.join().expect("it does not panic")?, LEN as u64);
        io::Result::Ok(())
    })?;
    assert!(most <= BUDGET, "{most} bytes in one turn");
    Ok(())
}

#[cfg(target_os = "linux")]
on_kernel_loops!(
    system_buffers_for_a_peer_that_does_not_read_can_be_bounded,
    "others have no buffers of the kernel"
);
#[cfg(target_os = "linux")]
fn system_buffers_for_a_peer_that_does_not_read_can_be_bounded<L: OnKernel>() -> io::Result<()> {
    const LEN: usize = 16 << 20;
    let taken = |config: StreamConfig| {
        let (mut rig, address) = serve::<L>(seed(config, |me: Probe, event, transport, _| {
            if let Event::Create = event {
                transport.output.push_block(vec![b'x'; LEN]).expect("open");
            }
            Intent::of(me).sleep().no_deadline()
        }));
        let _client = rig.connect(address);
        let mut before = None;
        // Until the output stops changing: the loopback peer acknowledges in between.
        loop {
            rig.with(|instance| instance.turn(Some(Duration::from_millis(50))))?;
            let now = output_len(&mut rig);
            if now.is_some() && now == before {
                return io::Result::Ok(LEN - now.unwrap_or(LEN));
            }
            before = now;
        }
    };
    let free = taken(StreamConfig::new())?;
    for (name, config) in [
        ("SO_SNDBUF", StreamConfig::new().send_buffer(Some(16 * 1024))),
        ("SO_SNDBUF of nothing", StreamConfig::new().send_buffer(Some(0))),
        ("TCP_NOTSENT_LOWAT", StreamConfig::new().unsent_max(Some(16 * 1024))),
        ("TCP_NOTSENT_LOWAT of nothing", StreamConfig::new().unsent_max(Some(0))),
    ] {
        let bounded = taken(config)?;
        assert!(bounded < free / 2, "{bounded} bytes with {name}, {free} without");
    }
    Ok(())
}

/// Output bytes that the only connection has not sent yet.
fn output_len<L: OnKernel>(rig: &mut Rig<Server<L>, L>) -> Option<usize> {
    rig.with(|instance| {
        instance.machines().iter().find_map(|(_, machine)| Some(machine.connection()?.output_len()))
    })
}

type UnixServer<L> = Accept<Stream<Probe, UnixStreamOn<L>>, UnixListenerOn<L>>;

/// A server on a path, and a client connected to it.
fn serve_unix<L: OnKernel>(
    path: &Path,
    seed: Seed,
) -> io::Result<(Rig<UnixServer<L>, L>, StdUnix)> {
    let mut rig = Rig::<UnixServer<L>, L>::new(&Config::new(), Log::new());
    let path = path.to_path_buf();
    rig.add(|scope| Accept::bind(&path, &ListenOptions::new(), seed, AcceptConfig::new(), scope));
    let client = StdUnix::connect(&path)?;
    client.set_nonblocking(true)?;
    Ok((rig, client))
}

fn assert_unix_echoes<L: OnKernel>(rig: &mut Rig<UnixServer<L>, L>, client: &mut StdUnix) {
    client.write_all(b"hello\n").expect("there is room");
    assert_eq!(rig.receive(client, Some(6)).expect("an answer"), b"hello\n");
}

/// Sends bytes together with a descriptor, as described in unix(7).
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

#[cfg(target_os = "linux")]
on_kernel_loops!(
    bytes_after_those_with_a_passed_descriptor_are_read_too,
    "others have no descriptors"
);
#[cfg(target_os = "linux")]
fn bytes_after_those_with_a_passed_descriptor_are_read_too<L: OnKernel>() -> io::Result<()> {
    let directory = Directory::create();
    let path = directory.join("socket");
    let (mut rig, mut client) = serve_unix::<L>(&path, seed(StreamConfig::new(), echo_lines))?;
    assert_unix_echoes(&mut rig, &mut client);
    // Both are there before the loop polls, so one edge reports both; a read ends between them.
    send_with_descriptor(&client, b"on")?;
    client.write_all(b"e\n")?;
    assert_eq!(rig.receive(&mut client, Some(4))?, b"one\n");
    Ok(())
}

on_kernel_loops!(
    large_input_is_read_in_few_calls_and_small_input_in_one_block,
    "it is about recv(2)"
);
fn large_input_is_read_in_few_calls_and_small_input_in_one_block<L: OnKernel>() -> io::Result<()> {
    let directory = Directory::create();
    let path = directory.join("socket");
    let calls = Rc::new(RefCell::new(Vec::new()));
    let lengths = calls.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, _| {
        if let Event::Read(_) = event {
            lengths.borrow_mut().push(transport.input.len());
            transport.input.clear();
        }
        Intent::of(me).bytes(1).no_deadline()
    });
    let (mut rig, mut client) = serve_unix::<L>(&path, seed)?;
    let mut read = |bytes: usize| -> io::Result<Vec<usize>> {
        client.write_all(&vec![b'x'; bytes])?;
        rig.until(|_| calls.borrow().iter().sum::<usize>() >= bytes);
        Ok(calls.take())
    };
    assert_eq!(read(100)?, [100]);
    // One block, then four at a time, then less than one; after that short read, one block again.
    let [block, large] = [BLOCK_BYTES, 4 * BLOCK_BYTES];
    assert_eq!(read(block + 2 * large + 100)?, [block, large, large, 100]);
    assert_eq!(read(block + 100)?, [block, 100]);
    Ok(())
}

on_kernel_loops!(
    messages_longer_than_a_block_are_read_at_once_after_the_first,
    "it is about recv(2)"
);
fn messages_longer_than_a_block_are_read_at_once_after_the_first<L: OnKernel>() -> io::Result<()> {
    const MESSAGE: usize = BLOCK_BYTES + 8;
    let directory = Directory::create();
    let path = directory.join("socket");
    let calls = Rc::new(RefCell::new(Vec::new()));
    let lengths = calls.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, _| {
        if let Event::Read(_) = event {
            lengths.borrow_mut().push(transport.input.len());
            if transport.input.len() < MESSAGE {
                return Intent::of(me).bytes(MESSAGE).no_deadline();
            }
            transport.input.clear();
        }
        Intent::of(me).bytes(1).no_deadline()
    });
    let (mut rig, mut client) = serve_unix::<L>(&path, seed)?;
    for expected in [&[BLOCK_BYTES, MESSAGE][..], &[MESSAGE], &[MESSAGE]] {
        client.write_all(&[b'x'; MESSAGE])?;
        rig.until(|_| calls.borrow().last() == Some(&MESSAGE));
        assert_eq!(calls.take(), expected);
    }
    Ok(())
}

on_kernel_loops!(a_read_exceeds_the_input_limit_by_at_most_that_limit, "it is about recv(2)");
fn a_read_exceeds_the_input_limit_by_at_most_that_limit<L: OnKernel>() -> io::Result<()> {
    const MAX: usize = 4 * BLOCK_BYTES;
    let directory = Directory::create();
    let path = directory.join("socket");
    let unread = Rc::new(RefCell::new(Vec::new()));
    let lengths = unread.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, _| match event {
        Event::Create => Intent::of(me).delimiter(b"\n", MAX).no_deadline(),
        _ => {
            lengths.borrow_mut().push((transport.input.len(), transport.input.capacity()));
            Intent::done()
        }
    });
    let (mut rig, mut client) = serve_unix::<L>(&path, seed)?;
    client.write_all(&[b'x'; MAX - 1])?;
    while input_len(&mut rig) != Some(MAX - 1) {
        rig.turn();
    }
    // More than fits into a buffer of twice the limit.
    client.write_all(&[b'x'; MAX + BLOCK_BYTES])?;
    rig.until(|_| !unread.borrow().is_empty());
    let (len, capacity) = unread.borrow()[0];
    assert!(len <= 2 * MAX && capacity <= 2 * MAX, "{len} bytes in {capacity}");
    Ok(())
}

/// Input bytes that the only connection has not consumed yet.
fn input_len<L: OnKernel>(rig: &mut Rig<UnixServer<L>, L>) -> Option<usize> {
    rig.with(|instance| {
        instance.machines().iter().find_map(|(_, machine)| Some(machine.connection()?.input_len()))
    })
}

on_kernel_loops!(
    unix_sockets_are_served_and_a_missing_path_is_refused,
    "smoltcp has no paths; those of the simulator: tests/simulation, unix"
);
fn unix_sockets_are_served_and_a_missing_path_is_refused<L: OnKernel>() -> io::Result<()> {
    let directory = Directory::create();
    let path = directory.join("socket");
    let (mut rig, mut client) = serve_unix::<L>(&path, seed(StreamConfig::new(), echo_lines))?;
    assert_unix_echoes(&mut rig, &mut client);
    client.write_all(b"last words\n")?;
    drop(client);
    rig.until(|rig| rig.context(|calls| calls.iter().any(|call| call == "read \"last words\"")));
    std::fs::remove_file(&path)?;

    let mut rig = Rig::<Stream<Probe, UnixStreamOn<L>>, L>::new(&Config::new(), Log::new());
    let refused = rig.with(|instance| {
        let connecting = instance.add_machine_with(|scope| {
            Stream::connect(&path, seed(StreamConfig::new(), echo_lines), scope)
        });
        connecting.map(drop)
    });
    assert!(refused.is_err(), "nobody listens there any more");
    Ok(())
}

on_kernel_loops!(
    a_client_waits_for_room_in_the_queue_of_a_unix_listener,
    "smoltcp has no paths; the simulator's sockets wait likewise: tests/connecting.rs"
);
fn a_client_waits_for_room_in_the_queue_of_a_unix_listener<L: OnKernel>() -> io::Result<()> {
    let directory = Directory::create();
    let path = directory.join("socket");
    let listener = listen_unix(&path, &ListenOptions::new().backlog(1))?;
    let mut waiting = Vec::new();
    loop {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&SockAddr::unix(&path)?) {
            Ok(()) => waiting.push(socket),
            Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    let mut rig = Rig::<Connect<Probe, UnixStreamOn<L>>, L>::new(&Config::new(), Log::new());
    rig.add(|scope| Connect::new(&path, seed(StreamConfig::new(), echo_lines), scope));
    rig.turn();
    assert!(rig.context(|calls| calls.is_empty()), "it waits");
    for _ in &waiting {
        listener.accept()?;
    }
    rig.until(|rig| rig.context(|calls| calls.iter().any(|call| call == "create")));
    let (mut client, _) = listener.accept()?;
    client.set_nonblocking(true)?;
    client.write_all(b"hello\n")?;
    assert_eq!(rig.receive(&mut client, Some(6))?, b"hello\n");
    Ok(())
}

on_kernel_loops!(an_external_listener_can_be_adopted, "others have no descriptors");
fn an_external_listener_can_be_adopted<L: OnKernel>() -> io::Result<()> {
    let listener = std::net::TcpListener::bind(local())?;
    let address = listener.local_addr()?;
    let mut rig = Rig::<Server<L>, L>::new(&Config::new(), Log::new());
    rig.add(|scope| match ListenerOn::<L>::adopt(listener, scope) {
        Ok(listener) => {
            let seed = seed(StreamConfig::new(), echo_lines);
            Accept::listen(listener, seed, AcceptConfig::new(), scope)
        }
        Err(error) => rotor_core::Response::error(error),
    });
    let mut client = rig.connect(address);
    assert_echoes(&mut rig, &mut client);
    Ok(())
}
