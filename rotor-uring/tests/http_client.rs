//! An HTTP client whose response ends with its connection: a reset is not such an end, although the
//! kernel reports it to a send of the same turn.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the server is no machine")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rotor::http::client::{
    ByAddress, Client, ClientConfig, ClientError, Head, Next, NoUpgrade, PoolConfig, PoolMachine,
    PoolRequest, RecvMode, Request, Scope,
};
use rotor::http::{Method, Trailers};
use rotor::{Config, ExitPolicy, Loop, LoopInstance, Notifier};
use rotor_uring::{Uring, UringConfig, UringTcpStream};
use socket2::SockRef;

type Pool = PoolMachine<Upload, ByAddress<UringTcpStream>>;

/// Writes a piece of its body each time that it is woken, and returns the body of the response.
struct Upload {
    began: Sender<Notifier>,
    pieces: Arc<AtomicUsize>,
    received: Arc<AtomicUsize>,
    body: Vec<u8>,
}

impl Client for Upload {
    type Context = ();
    type Output = Vec<u8>;
    type Upgrade = NoUpgrade<()>;

    fn prepare_request(self, request: &mut Request<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
        request.start(Method::Post, "/").expect("the first");
        request.add_header("Host", "a").expect("a field");
        request.add_chunked().expect("a body");
        request.done_headers().expect("the end of the fields");
        self.began.send(scope.notifier()).expect("the test waits");
        Next::go_on(self).no_deadline()
    }

    fn wakeup(self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        request.write_body(b"piece").expect("it goes on");
        self.pieces.fetch_add(1, Ordering::Relaxed);
        Next::go_on(self).no_deadline()
    }

    fn headers_received(
        self,
        _: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(self, RecvMode::Progressive(1)).no_deadline()
    }

    fn response_chunk(
        mut self,
        chunk: &[u8],
        _: &mut Request<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.body.extend_from_slice(chunk);
        self.received.store(self.body.len(), Ordering::Relaxed);
        Next::go_on(self).no_deadline()
    }

    fn response_end(self, _: &Trailers, _: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::finished(self.body)
    }
}

/// Takes turns until the condition holds.
fn until(instance: &mut LoopInstance<Pool, Uring>, mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        instance.turn(Some(Duration::from_millis(1))).expect("the loop goes on");
    }
    panic!("it does not come to that");
}

/// A server responds with a part of a body, and `end`s the connection when the client has written
/// more of its request, which has not been sent yet.
fn outcome(uring: Uring, end: impl FnOnce(&TcpStream)) -> Result<Vec<u8>, ClientError> {
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = Loop::<Pool, _>::with_backend(uring, &config).expect("there is memory");
    let mut pool = None;
    let made = creator.add_machine_with(|scope| {
        let (handle, machine) = Pool::new(PoolConfig::new(), ClientConfig::new(), scope);
        pool = Some(handle);
        machine
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it can be");
    let (began, notifiers) = channel();
    let (pieces, received) = (Arc::default(), Arc::<AtomicUsize>::default());
    let upload =
        Upload { began, pieces: Arc::clone(&pieces), received: received.clone(), body: Vec::new() };
    let request = PoolRequest::new(listener.local_addr().expect("it is bound"), upload);
    let pool = pool.expect("the closure ran");
    let reply = pool.service().ask_from_thread(request).expect("there is room");
    let mut server = None;
    until(&mut instance, || {
        server = listener.accept().ok();
        server.is_some()
    });
    let (mut server, _) = server.expect("as asked");
    server.set_nonblocking(true).expect("it can be");
    let mut head = Vec::new();
    until(&mut instance, || {
        let mut bytes = [0; 1_024];
        let count = server.read(&mut bytes).unwrap_or(0);
        head.extend_from_slice(&bytes[..count]);
        head.ends_with(b"\r\n\r\n")
    });
    server.write_all(b"HTTP/1.1 200 OK\r\n\r\npart").expect("it fits");
    until(&mut instance, || received.load(Ordering::Relaxed) == 4);
    assert!(notifiers.try_recv().expect("it began").wakeup());
    until(&mut instance, || pieces.load(Ordering::Relaxed) == 1);
    end(&server);
    drop(server);
    until(&mut instance, || reply.is_ready());
    reply.wait().expect("the pool answers")
}

#[test]
fn a_body_until_the_end_of_its_connection_is_not_complete_after_a_reset() {
    for is_reset in [true, false] {
        let uring = match Uring::open(&UringConfig::new()) {
            Ok(uring) => uring,
            Err(refused) => return eprintln!("skipped: {refused}"),
        };
        let outcome = outcome(uring, |server| match is_reset {
            true => SockRef::from(server).set_linger(Some(Duration::ZERO)).expect("it can be"),
            false => server.shutdown(Shutdown::Write).expect("it is connected"),
        });
        match outcome {
            Ok(body) => assert_eq!((&*body, is_reset), (&b"part"[..], false)),
            Err(error) => assert!(is_reset, "{error}"),
        }
    }
}
