//! Groups of loops in which a handler of one loop does not return. What becomes of the connections,
//! those that wait in a queue included, and whether the group ends.
#![cfg(target_os = "linux")]

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rotor::net::{ListenOptions, TcpListener, TcpListeners};
use rotor::stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};
use rotor::threads::LoopGroup;
use rotor::{
    Blocking, BoxError, Config, Exit, Loop, LoopInstance, OnPanic, Response, Scope, SharedContext,
    StuckReport,
};

use crate::driving::{PATIENCE, allow_many_sockets};

/// Enough clients that both loops get some: the chance that one loop gets all is 2⁻⁶³.
const CLIENTS: usize = 64;

/// What a loop does about handlers that do not return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Nothing.
    Plain,
    /// It is handed over in sections that are declared.
    HandedOver,
    /// It is taken over.
    TakenOver,
}

/// How the loops share the address.
#[derive(Clone, Copy, Debug)]
enum Queues {
    /// Each has a queue of its own (SO_REUSEPORT).
    Own,
    /// They accept from one queue.
    Shared,
}

/// The context of all loops of a group.
#[derive(Clone)]
struct Handle(Arc<Common>);

impl SharedContext for Handle {}

struct Common {
    way: Way,
    /// Tells that a handler is stuck.
    began: Mutex<Sender<()>>,
    /// Ends when the test releases the handler.
    end: Mutex<Receiver<()>>,
    answered: AtomicUsize,
}

impl Common {
    fn block(&self) {
        let _ = self.began.lock().expect("nobody panics with it").send(());
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }
}

/// Answers one byte, after which the connection ends.
struct Answerer;

/// The byte that makes the handler wait for the end of the test.
const BLOCK: u8 = b'b';

/// The byte that makes the handler panic.
const PANIC: u8 = b'p';

impl Protocol for Answerer {
    type Context = Handle;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, Handle>) -> Intent<Self> {
        Intent::of(Answerer).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        bytes: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Handle>,
    ) -> Intent<Self> {
        let byte = bytes.content(transport.input)[0];
        let common = scope.0.clone();
        match (byte, common.way) {
            (PANIC, _) => panic!("as the client wishes"),
            (BLOCK, Way::HandedOver) => scope.blocking(|| common.block()),
            (BLOCK, _) => common.block(),
            _ => {}
        }
        common.answered.fetch_add(1, Relaxed);
        let _gone = transport.output.write_all(&[byte]);
        bytes.consume(transport.input);
        Intent::done()
    }
}

type Answering = Accept<Stream<Answerer, rotor::net::TcpStream>, TcpListener>;

fn make_loop(
    config: &Config,
    listener: std::net::TcpListener,
    handle: Handle,
) -> Result<LoopInstance<Answering>, BoxError> {
    let mut creator = Loop::new(config)?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::from_std(listener, scope)?;
            Ok(Accept::listen(listener, (), AcceptConfig::new(), scope))
        })
    })?;
    let way = handle.0.way;
    let instance = creator.instantiate(handle);
    Ok(match way {
        Way::Plain => instance,
        Way::HandedOver => instance.handing_over(),
        Way::TakenOver => instance.taking_over(),
    })
}

/// A group of two loops, one of which is stuck in the handler of `blocker`.
struct Group {
    group: LoopGroup,
    address: SocketAddr,
    common: Arc<Common>,
    /// The name of the stuck loop.
    stuck: String,
    blocker: TcpStream,
    /// Dropped to release the handler.
    key: Sender<()>,
}

impl Group {
    /// Returns when the watchdog has named the loop that is stuck.
    fn start(way: Way, queues: Queues) -> Group {
        allow_many_sockets();
        let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let listeners = match queues {
            Queues::Own => TcpListeners::bind(any, &ListenOptions::new(), 2),
            Queues::Shared => std::net::TcpListener::bind(any)
                .and_then(|listener| TcpListeners::from_std(listener, 2)),
        };
        let listeners = listeners.expect("a free port");
        let address = listeners.local_address();
        let ((began, begins), (key, end)) = (channel(), channel());
        let common = Arc::new(Common {
            way,
            began: Mutex::new(began),
            end: Mutex::new(end),
            answered: AtomicUsize::new(0),
        });
        let (reports, reported) = channel();
        let reports = Arc::new(Mutex::new(reports));
        let report = move |report: &StuckReport<'_>| {
            let named = (report.loop_name.to_owned(), report.machine.to_owned());
            let _ = reports.lock().expect("nobody panics with it").send(named);
        };
        // A section that is handed over is reported at a hundred times the patience.
        let blocking = Blocking::new()
            .patience(Duration::from_millis(1))
            .patience_declared(Duration::ZERO)
            .on_stuck(report.clone())
            .on_still_stuck(report);
        let config = Config::new().blocking(blocking).on_panic(OnPanic::StopLoop);
        let group = LoopGroup::start(listeners, {
            let common = common.clone();
            move |listener, _| make_loop(&config, listener, Handle(common.clone()))
        });
        let group = group.expect("threads are left");
        let blocker = ask(address, BLOCK);
        begins.recv_timeout(PATIENCE).expect("its handler is called");
        let stuck = loop {
            let (name, machine) = reported.recv_timeout(PATIENCE).expect("it is noticed");
            // On a busy computer, the listener may be reported first.
            if machine.contains("Answerer") {
                break name;
            }
        };
        Group { group, address, common, stuck, blocker, key }
    }

    /// Asks that many times; the clients wait for their answers.
    fn ask_all(&self) -> Vec<TcpStream> {
        (0..CLIENTS).map(|_| ask(self.address, b'?')).collect()
    }

    fn answered(&self) -> usize {
        self.common.answered.load(Relaxed)
    }

    /// The number of the stuck loop.
    fn stuck_index(&self) -> usize {
        match &*self.stuck {
            "loop-0" => 0,
            "loop-1" => 1,
            other => panic!("no such loop: {other}"),
        }
    }
}

fn ask(address: SocketAddr, byte: u8) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("a listener is open");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.write_all(&[byte]).expect("the system takes it");
    // So that the server need not wait for the end of this side once it has answered.
    socket.shutdown(Shutdown::Write).expect("it is connected");
    socket
}

/// Returns everything that the server sent, and whether it ended the connection in order.
fn receive(mut socket: TcpStream) -> (Vec<u8>, bool) {
    let mut received = Vec::new();
    match socket.read_to_end(&mut received) {
        Ok(_) => (received, true),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => (received, false),
        Err(error) => panic!("neither an answer nor an end: {error}"),
    }
}

fn assert_answered(clients: Vec<TcpStream>, why: impl fmt::Debug) {
    for client in clients {
        assert_eq!(receive(client), (b"?".to_vec(), true), "{why:?}");
    }
}

const QUEUES: [Queues; 2] = [Queues::Own, Queues::Shared];

#[test]
fn clients_of_a_loop_that_goes_on_are_answered_and_its_drain_ends_in_time() {
    for way in [Way::HandedOver, Way::TakenOver] {
        for queues in QUEUES {
            let group = Group::start(way, queues);
            let stuck = group.stuck_index();
            assert_answered(group.ask_all(), (way, queues));
            assert_eq!(group.answered(), CLIENTS);
            // All others have ended, so only the stuck machine can be left.
            group.group.handle().drain(Duration::from_millis(1));
            let mut exits = group.group.join().into_iter().map(|exit| exit.expect("it waits"));
            for index in 0..2 {
                let dropped = usize::from(index == stuck);
                assert_eq!(exits.next(), Some(Exit::Drained { dropped }), "{way:?} {queues:?}");
            }
            drop(group.key);
            // A section unwinds when it ends. A handler that was taken over has written its answer.
            let answer = if way == Way::HandedOver { vec![] } else { vec![BLOCK] };
            assert_eq!(receive(group.blocker), (answer, true), "{way:?} {queues:?}");
        }
    }
}

#[test]
fn clients_in_the_queue_of_a_stuck_loop_are_answered_in_its_late_drain() {
    for queues in QUEUES {
        let mut group = Group::start(Way::Plain, queues);
        let stuck = group.stuck_index();
        let clients = group.ask_all();
        group.group.handle().drain(PATIENCE);
        // The other loop answers the clients in its queue, and ends.
        let ended = group.group.wait_for_one().expect("it is told");
        assert_eq!(ended.index, 1 - stuck);
        assert_eq!(ended.exit.expect("it waits"), Exit::Drained { dropped: 0 });
        let in_time = group.answered();
        match queues {
            Queues::Own => assert!((1..CLIENTS).contains(&in_time), "{in_time} of {CLIENTS}"),
            Queues::Shared => assert_eq!(in_time, CLIENTS),
        }
        drop(group.key);
        for exit in group.group.join() {
            assert_eq!(exit.expect("it waits"), Exit::Drained { dropped: 0 }, "{queues:?}");
        }
        assert_answered(clients, queues);
        assert_eq!(receive(group.blocker), (vec![BLOCK], true), "{queues:?}");
    }
}

#[test]
fn stopped_groups_end_though_a_loop_is_stuck_unless_it_cannot_go_on() {
    for way in [Way::Plain, Way::HandedOver, Way::TakenOver] {
        for queues in QUEUES {
            let mut group = Group::start(way, queues);
            let stuck = group.stuck_index();
            let clients = group.ask_all();
            group.group.handle().stop();
            if way == Way::Plain {
                let ended = group.group.wait_for_one().expect("it is told");
                assert_eq!(ended.index, 1 - stuck);
                assert_eq!(ended.exit.expect("it waits"), Exit::Stopped);
                drop(group.key);
            }
            for exit in group.group.join() {
                assert_eq!(exit.expect("it waits"), Exit::Stopped, "{way:?} {queues:?}");
            }
            // Nobody waits in vain: each gets its answer or learns that there will be none.
            for client in clients {
                let (received, _) = receive(client);
                assert!(received.is_empty() || received == b"?", "{way:?} {queues:?}");
            }
        }
    }
}

#[test]
fn a_failed_loop_ends_its_group_though_another_loop_is_stuck() {
    for way in [Way::HandedOver, Way::TakenOver] {
        let group = Group::start(way, Queues::Own);
        // Either loop may get it: the one whose handler is stuck goes on.
        let client = ask(group.address, PANIC);
        let exits = group.group.join();
        let failed = |exit: &std::io::Result<Exit>| matches!(exit, Ok(Exit::Panicked { .. }));
        let stopped = |exit: &std::io::Result<Exit>| matches!(exit, Ok(Exit::Stopped));
        assert_eq!(exits.iter().filter(|exit| failed(exit)).count(), 1, "{exits:?}");
        assert_eq!(exits.iter().filter(|exit| stopped(exit)).count(), 1, "{exits:?}");
        assert_eq!(receive(client).0, b"");
        drop(group.key);
        let answer = if way == Way::HandedOver { vec![] } else { vec![BLOCK] };
        assert_eq!(receive(group.blocker), (answer, true), "{way:?}");
    }
}
