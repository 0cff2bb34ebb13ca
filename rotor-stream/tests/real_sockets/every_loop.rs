//! Properties of a stream on every loop.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::net::ListenOptions;
use rotor_core::{Config, Exit, Scope};
use rotor_stream::{Accept, AcceptConfig, Intent, Stream, StreamConfig, Transport};
use rotor_test_kit::Directory;

use crate::loops::{End, ListenerOn, OnLoop, Rig, StreamOn, local, on_every_loop};
use crate::probe::{Event, Log, Probe, Seed, echo_lines, seed};

pub(crate) type Server<L> = Accept<Stream<Probe, StreamOn<L>>, ListenerOn<L>>;

/// A server of probes on its own port.
pub(crate) fn serve<L: OnLoop>(seed: Seed) -> (Rig<Server<L>, L>, SocketAddr) {
    serve_with(&Config::new(), seed)
}

fn serve_with<L: OnLoop>(config: &Config, seed: Seed) -> (Rig<Server<L>, L>, SocketAddr) {
    let mut rig = Rig::<Server<L>, L>::new(config, Log::new());
    rig.add(|scope| {
        Accept::bind(&local(), &ListenOptions::new(), seed, AcceptConfig::new(), scope)
    });
    let address = rig.with(|instance| {
        instance.machines().iter().find_map(|(_, machine)| machine.local_address())
    });
    (rig, address.expect("the listener has an address"))
}

fn echo<L: OnLoop>() -> (Rig<Server<L>, L>, SocketAddr) {
    serve(seed(StreamConfig::new(), echo_lines))
}

/// Sends a line and waits for its echo.
pub(crate) fn assert_echoes<L: OnLoop>(rig: &mut Rig<Server<L>, L>, end: &mut (impl Read + Write)) {
    rig.send(end, b"hello\n").expect("it is connected");
    assert_eq!(rig.receive(end, Some(6)).expect("an answer"), b"hello\n");
}

/// Resets the connection: dropping an end with unread input does that.
fn reset<L: OnLoop>(rig: &mut Rig<Server<L>, L>, mut end: L::End) {
    rig.send(&mut end, b"unread\n").expect("it is connected");
    assert_eq!(rig.receive(&mut end, Some(3)).expect("an answer"), b"unr");
    drop(end);
}

on_every_loop!(an_echo_server_answers_each_line_and_closes_in_order);
fn an_echo_server_answers_each_line_and_closes_in_order<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) = echo::<L>();
    let mut end = rig.connect(address);
    end.write_all(b"hello\nwor")?;
    assert_eq!(rig.receive(&mut end, Some(6))?, b"hello\n");
    end.write_all(b"ld\n")?;
    assert_eq!(rig.receive(&mut end, Some(6))?, b"world\n");
    end.write_all(b"last\nhalf a li")?;
    end.end()?;
    assert_eq!(rig.receive(&mut end, None)?, b"last\n");
    rig.until(|rig| rig.machines() == 1);
    Ok(())
}

on_every_loop!(data_and_the_end_in_one_edge_are_both_seen);
fn data_and_the_end_in_one_edge_are_both_seen<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) = echo::<L>();
    let mut end = rig.connect(address);
    assert_echoes(&mut rig, &mut end);
    end.write_all(b"one\ntwo\n")?;
    end.end()?;
    assert_eq!(rig.receive(&mut end, None)?, b"one\ntwo\n");
    rig.until(|rig| rig.machines() == 1);
    Ok(())
}

on_every_loop!(all_input_of_a_peer_that_hangs_up_is_read);
fn all_input_of_a_peer_that_hangs_up_is_read<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) = echo::<L>();
    let mut end = rig.connect(address);
    end.write_all(b"first\nlast words\n")?;
    drop(end);
    rig.until(|rig| rig.context(|calls| calls.len() >= 3) && rig.machines() == 1);
    let calls = rig.context(|calls| calls[..3].to_vec());
    assert_eq!(calls, ["create", "read \"first\"", "read \"last words\""]);
    Ok(())
}

on_every_loop!(all_input_of_a_peer_that_resets_is_read);
fn all_input_of_a_peer_that_resets_is_read<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) = echo::<L>();
    let mut end = rig.connect(address);
    assert_echoes(&mut rig, &mut end);
    reset(&mut rig, end);
    rig.until(|rig| rig.machines() == 1);
    let calls = rig.context(|calls| calls.clone());
    assert_eq!(calls[2], "read \"unread\"");
    assert!(calls[3].starts_with("fatal: "), "{calls:?}");
    Ok(())
}

on_every_loop!(a_reset_in_the_middle_of_a_write_ends_that_connection_only);
fn a_reset_in_the_middle_of_a_write_ends_that_connection_only<L: OnLoop>() -> io::Result<()> {
    const LEN: usize = 32 << 20;
    let (mut rig, address) =
        serve::<L>(seed(StreamConfig::new(), |me, event, transport, scope| {
            if let Event::Read(line) = event
                && line.len() == 2
            {
                line.consume(transport.input);
                transport.output.push_block(vec![b'x'; LEN]).expect("open");
                return Intent::of(me).flush(0).no_deadline();
            }
            echo_lines(me, event, transport, scope)
        }));
    let mut other = rig.connect(address);
    let mut end = rig.connect(address);
    end.write_all(b"!\n")?;
    assert_eq!(rig.receive(&mut end, Some(1))?, b"x");
    // With much unread input.
    drop(end);
    rig.until(|rig| {
        rig.context(|calls| calls.last().is_some_and(|call| call.starts_with("fatal")))
    });
    assert_echoes(&mut rig, &mut other);
    Ok(())
}

on_every_loop!(a_reset_connection_does_not_look_ended_to_the_peer);
fn a_reset_connection_does_not_look_ended_to_the_peer<L: OnLoop>() {
    const LEN: usize = 32 << 20;
    let (mut rig, address) =
        serve::<L>(seed(StreamConfig::new(), |me, event, transport, scope| match event {
            Event::Read(line) if line.len() == 2 => Intent::reset(),
            // It fails with more output than the system accepts in one call.
            Event::Read(line) if line.len() == 3 => {
                transport.output.push_block(vec![b'x'; LEN]).expect("open");
                Intent::of(me).flush(0).deadline(scope.now() + Duration::from_millis(10))
            }
            Event::Timeout => Intent::error("as asked"),
            _ => echo_lines(me, event, transport, scope),
        }));
    let mut other = rig.connect(address);
    for line in ["!\n", "??\n"] {
        let mut end = rig.connect(address);
        assert_echoes(&mut rig, &mut end);
        rig.send(&mut end, line.as_bytes()).expect("it is connected");
        rig.until(|rig| rig.machines() == 2);
        let cut = rig.receive(&mut end, None);
        let kind = cut.map(|bytes| bytes.len()).map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::ConnectionReset), "{line:?}");
    }
    assert_echoes(&mut rig, &mut other);
}

on_every_loop!(
    requests_that_had_arrived_before_a_drain_are_answered,
    not simulated: "what was sent is on its way when the drain begins; rotor-sim's own suite has it arrive"
);
fn requests_that_had_arrived_before_a_drain_are_answered<L: OnLoop>() -> io::Result<()> {
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
    let (mut rig, address) = serve::<L>(seed(StreamConfig::new(), polite));
    let mut ends: Vec<_> = (0..CLIENTS).map(|_| rig.connect(address)).collect();
    rig.until(|rig| rig.machines() == 1 + CLIENTS);
    for end in &mut ends {
        end.write_all(b"request\n")?;
    }
    rig.with(|instance| instance.handle().drain(Duration::from_secs(60)));
    // The loop ends when the clients have seen EOF.
    let mut answered = 0;
    let mut left: Vec<_> = ends.into_iter().map(|end| (end, Vec::new())).collect();
    rig.until(|rig| {
        left.retain_mut(|(end, got)| {
            let mut chunk = [0; 100];
            match end.read(&mut chunk) {
                Ok(0) => {
                    answered += usize::from(got == b"request\n");
                    false
                }
                Ok(count) => {
                    got.extend_from_slice(&chunk[..count]);
                    true
                }
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            }
        });
        rig.exit().is_some() && left.is_empty()
    });
    assert_eq!((answered, rig.exit()), (CLIENTS, Some(Exit::Drained { dropped: 0 })));
    Ok(())
}

on_every_loop!(each_side_may_end_on_its_own);
fn each_side_may_end_on_its_own<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) =
        serve::<L>(seed(StreamConfig::new(), |me, event, transport, _| match event {
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
    let mut end = rig.connect(address);
    assert_eq!(rig.receive(&mut end, None)?, b"all that I have to say");
    end.write_all(b"and the peer goes on")?;
    end.end()?;
    rig.until(|rig| rig.machines() == 1);
    let calls = rig.context(|calls| calls.clone());
    assert_eq!(calls[1], "exception: the peer has ended the stream");
    Ok(())
}

on_every_loop!(files_and_blocks_arrive_in_order);
fn files_and_blocks_arrive_in_order<L: OnLoop>() -> io::Result<()> {
    let content: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    let file = Arc::new(File::open(Directory::create().file("content", &content))?);
    let block: Arc<[u8]> = vec![b'b'; 100_000].into();
    let block_of_server = block.clone();
    let (mut rig, address) = serve::<L>(seed(StreamConfig::new(), move |_, _, transport, _| {
        let output = &mut *transport.output;
        output.write_all(b"begin ").expect("open");
        output.push_block(block_of_server.clone()).expect("open");
        output.push_file(file.clone(), 1, 2_999_999).expect("open");
        output.write_all(b" end").expect("open");
        Intent::done()
    }));
    let mut end = rig.connect(address);
    let got = rig.receive(&mut end, None)?;
    assert!(got == [b"begin ", &block[..], &content[1..], b" end"].concat(), "{} bytes", got.len());
    Ok(())
}

on_every_loop!(a_full_slab_leaves_connections_waiting);
fn a_full_slab_leaves_connections_waiting<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) =
        serve_with::<L>(&Config::new().machines_max(2), seed(StreamConfig::new(), echo_lines));
    let mut ends = vec![rig.begin(address), rig.begin(address)];
    for end in &mut ends {
        rig.until(|_| end.has_connected().expect("there is room in the queue"));
        end.write_all(b"hello\n")?;
    }
    let mut served = None;
    rig.until(|_| {
        served = ends.iter_mut().position(|end| end.read(&mut [0; 9]).is_ok());
        served.is_some()
    });
    let mut served = ends.remove(served.expect("as asked"));
    let mut waiting = ends.remove(0);
    assert_echoes(&mut rig, &mut served);
    let nothing = waiting.read(&mut [0; 9]).expect_err("there is no slot");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    drop(served);
    assert_eq!(rig.receive(&mut waiting, Some(6))?, b"hello\n");
    Ok(())
}

on_every_loop!(many_connections_in_a_row_leave_nothing_behind);
fn many_connections_in_a_row_leave_nothing_behind<L: OnLoop>() -> io::Result<()> {
    let (mut rig, address) =
        serve_with::<L>(&Config::new().machines_max(8), seed(StreamConfig::new(), echo_lines));
    for round in 0..300 {
        let mut end = rig.connect(address);
        assert_echoes(&mut rig, &mut end);
        match round % 3 {
            0 => drop(end),
            1 => reset(&mut rig, end),
            _ => end.end()?,
        }
        rig.until(|rig| rig.machines() == 1);
    }
    assert_eq!(rig.with(|instance| instance.stats().read().failed), 0);
    Ok(())
}

type Client<L> = Stream<Probe, StreamOn<L>>;

fn client<L: OnLoop>(address: SocketAddr, config: StreamConfig) -> Rig<Client<L>, L> {
    let mut rig = Rig::new(&Config::new(), Log::new());
    connect_from(&mut rig, address, config);
    rig
}

fn connect_from<L: OnLoop>(rig: &mut Rig<Client<L>, L>, address: SocketAddr, config: StreamConfig) {
    rig.add(|scope| Stream::connect(&address, seed(config, echo_lines), scope));
}

on_every_loop!(a_client_connects_and_exchanges_lines);
fn a_client_connects_and_exchanges_lines<L: OnLoop>() -> io::Result<()> {
    let mut rig = Rig::<Client<L>, L>::new(&Config::new(), Log::new());
    let (mut door, address) = rig.peer_listener();
    connect_from(&mut rig, address, StreamConfig::new());
    let mut end = rig.accept_peer(&mut door);
    rig.until(|rig| rig.context(|calls| *calls == ["create"]));
    end.write_all(b"hello\n")?;
    assert_eq!(rig.receive(&mut end, Some(6))?, b"hello\n");
    drop(end);
    assert_eq!(rig.run(), Exit::Empty);
    Ok(())
}

on_every_loop!(a_refused_connection_is_reported);
fn a_refused_connection_is_reported<L: OnLoop>() {
    let (_port, address) = L::closed();
    let mut rig = client::<L>(address, StreamConfig::new());
    assert_eq!(rig.run(), Exit::Empty);
    let calls = rig.context(|calls| calls.clone());
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("not connected: cannot connect: "), "{calls:?}");
}

on_every_loop!(a_hanging_connection_attempt_times_out);
fn a_hanging_connection_attempt_times_out<L: OnLoop>() {
    let (_silent, address) = L::silent();
    let patience = Duration::from_millis(20);
    let mut rig = client::<L>(address, StreamConfig::new().connect_timeout(patience));
    assert_eq!(rig.run(), Exit::Empty);
    rig.context(|calls| assert_eq!(*calls, ["not connected: connecting took too long"]));
}
