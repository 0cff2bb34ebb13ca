//! Runs the same machines with the same scripts on the kernel's sockets through mio and through
//! io_uring, on a user-space stack, and on simulated sockets. The transcripts must be equal, except
//! for dates.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::HttpAccept;
use rotor::net::{Inet, ListenOptions, Listener, Net, StreamSocket};
use rotor::stream::{Accept, AcceptConfig, Stream, WithOutbox};
use rotor::{BoxError, Compose2, Config, Loop, LoopInstance, Machine, Response, Scope};
use rotor_sim::net::SimNet;
use rotor_sim::{Host, Script, ScriptClient, Sim, SimBackend, Transcript, TranscriptHandle};
use rotor_smoltcp::{MemoryConfig, MemoryDevice, Smoltcp, SmoltcpInet, StackConfig};
use rotor_uring::{Uring, UringConfig, UringInet};

use crate::chat::Chat;
use crate::echo::Total;
use crate::examples::line_chat::Client;
use crate::examples::tcp_echo_server::EchoServer;
use crate::examples::tcp_proxy::{Proxy, Route};
use crate::hello;
use crate::hello::Hello;
use crate::lines::{self, Lines};

/// How long to wait for something that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(100);

/// A family of sockets with IP addresses.
trait Addressed:
    Net<
        Stream: StreamSocket<Target = SocketAddr>,
        Listener: Listener<Address = SocketAddr, Socket = <Self as Net>::Stream>,
    >
{
}

impl Addressed for Inet {}
impl Addressed for SimNet {}
impl Addressed for UringInet {}
impl Addressed for SmoltcpInet {}

/// A loop on some backend, with its machines.
trait Rig<M: Machine> {
    /// Adds a machine. `make` returns a value beside the machine.
    fn add<R>(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> (Response<M>, R),
    ) -> Result<R, BoxError>;

    fn run_until(&mut self, is_done: impl Fn() -> bool) -> Result<(), BoxError>;
}

impl<M: Machine, B: rotor::Backend> Rig<M> for LoopInstance<M, B> {
    fn add<R>(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> (Response<M>, R),
    ) -> Result<R, BoxError> {
        add(self, make)
    }

    fn run_until(&mut self, is_done: impl Fn() -> bool) -> Result<(), BoxError> {
        let until = self.now() + PATIENCE;
        while !is_done() {
            if self.now() >= until {
                return Err("it takes too long".into());
            }
            self.turn(Some(Duration::from_secs(1)))?;
        }
        Ok(())
    }
}

impl<M: Machine<Context: 'static> + 'static> Rig<M> for (Sim, Host<M>) {
    fn add<R>(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> (Response<M>, R),
    ) -> Result<R, BoxError> {
        self.0.with(self.1, |instance| add(instance, make)).ok_or("the host is down")?
    }

    fn run_until(&mut self, is_done: impl Fn() -> bool) -> Result<(), BoxError> {
        Ok(self.0.run_until(PATIENCE, |_| is_done())?)
    }
}

fn add<M: Machine, B: rotor::Backend, R>(
    instance: &mut LoopInstance<M, B>,
    make: impl FnOnce(&mut Scope<'_, M::Context>) -> (Response<M>, R),
) -> Result<R, BoxError> {
    let mut beside = None;
    let added = instance.add_machine_with(|scope| {
        let (response, value) = make(scope);
        beside = Some(value);
        response
    });
    added.map_err(|error| error.to_string())?;
    beside.ok_or_else(|| "it was not made".into())
}

fn on_kernel<M: Machine<Context: Default> + 'static>() -> Result<LoopInstance<M>, BoxError> {
    Ok(Loop::new(&Config::new())?.instantiate(M::Context::default()))
}

/// Returns `None` if the kernel refuses io_uring.
fn on_uring<M: Machine<Context: Default> + 'static>()
-> Result<Option<LoopInstance<M, Uring>>, BoxError> {
    let uring = match Uring::open(&UringConfig::new()) {
        Ok(uring) => uring,
        Err(refused) => {
            eprintln!("skipped: {refused}");
            return Ok(None);
        }
    };
    Ok(Some(Loop::with_backend(uring, &Config::new())?.instantiate(M::Context::default())))
}

/// A loop with a stack that connects to itself.
fn on_smoltcp<M: Machine<Context: Default> + 'static>() -> Result<LoopInstance<M, Smoltcp>, BoxError>
{
    let device = MemoryDevice::loopback(&MemoryConfig::new())?;
    let config = StackConfig::new().address(any().ip(), 8);
    let backend = Smoltcp::open(device, &config)?;
    Ok(Loop::with_backend(backend, &Config::new())?.instantiate(M::Context::default()))
}

fn on_simulation<M: Machine<Context: Default> + 'static>() -> Result<(Sim, Host<M>), BoxError> {
    let mut sim = Sim::new(1);
    let host = sim.host("host", |boot| {
        let instance: LoopInstance<M, SimBackend> =
            boot.new_loop()?.instantiate(M::Context::default());
        Ok(instance)
    })?;
    Ok((sim, host))
}

/// Any port of the local host.
fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Opens a listener and returns its address.
fn open<L, C>(scope: &Scope<'_, C>) -> Result<(L, SocketAddr), BoxError>
where
    L: Listener<Address = SocketAddr>,
{
    let listener = L::bind(&any(), &ListenOptions::new(), scope)?;
    let address = listener.local_address().ok_or("a listener has an address")?;
    Ok((listener, address))
}

/// Adds a listening machine and returns its address.
fn listen<M: Machine, L: Listener<Address = SocketAddr>>(
    rig: &mut impl Rig<M>,
    make: impl FnOnce(L, &mut Scope<'_, M::Context>) -> Response<M>,
) -> Result<SocketAddr, BoxError> {
    rig.add(|scope| match open::<L, _>(scope) {
        Ok((listener, address)) => (make(listener, scope), Ok(address)),
        Err(error) => (Response::done(), Err(error)),
    })?
}

/// Adds a client for each script.
fn clients<M: Machine, S: StreamSocket<Target = SocketAddr>, C>(
    rig: &mut impl Rig<M>,
    target: SocketAddr,
    scripts: Vec<Script>,
    wrap: impl Fn(ScriptClient<S, C>) -> M,
) -> Result<Vec<TranscriptHandle>, BoxError> {
    let add = |script: Script| {
        rig.add(|scope| {
            let (client, transcript) = script.client(target);
            (client.start(scope).wrap(&wrap), transcript)
        })
    };
    scripts.into_iter().map(add).collect()
}

fn play<M: Machine>(
    rig: &mut impl Rig<M>,
    transcripts: &[TranscriptHandle],
) -> Result<Vec<Transcript>, BoxError> {
    rig.run_until(|| transcripts.iter().all(TranscriptHandle::has_ended))?;
    Ok(transcripts.iter().map(TranscriptHandle::read).collect())
}

/// All clients have played their scripts to the end, with equal transcripts on both.
fn assert_equal(kernel: &[Transcript], simulated: &[Transcript]) {
    for (kernel, simulated) in kernel.iter().zip(simulated) {
        let text =
            |transcript: &Transcript| String::from_utf8_lossy(&transcript.received).into_owned();
        assert_eq!(text(kernel), text(simulated));
        assert_eq!(kernel, simulated);
        assert_eq!(kernel.outcome, Some(Ok(())));
    }
    assert!(!kernel.is_empty() && kernel.len() == simulated.len());
}

type Echoing<N> =
    Compose2<EchoServer<Total, <N as Net>::Listener>, ScriptClient<<N as Net>::Stream, Total>>;

fn echo<N: Addressed>(rig: &mut impl Rig<Echoing<N>>) -> Result<Vec<Transcript>, BoxError> {
    let address = listen::<_, N::Listener>(rig, |listener, scope| {
        Response::attempt(|| {
            Ok(Response::ok(EchoServer::listen(listener, scope)?).wrap(Compose2::A))
        })
    })?;
    let text = vec![b'x'; 4_000];
    let scripts = vec![
        Script::new()
            .send(b"one")
            .expect(b"one")
            .send(b"two")
            .shutdown()
            .expect(b"two")
            .expect_end(),
        Script::new().send(&text).shutdown().expect(&text).expect_end(),
        Script::new().shutdown().expect_end(),
    ];
    let transcripts = clients(rig, address, scripts, Compose2::B)?;
    play(rig, &transcripts)
}

#[test]
fn echoes_are_equal_on_every_loop() -> Result<(), BoxError> {
    let kernel = echo::<Inet>(&mut on_kernel()?)?;
    assert_equal(&kernel, &echo::<SimNet>(&mut on_simulation()?)?);
    assert_equal(&kernel, &echo::<SmoltcpInet>(&mut on_smoltcp()?)?);
    if let Some(mut rig) = on_uring()? {
        assert_equal(&kernel, &echo::<UringInet>(&mut rig)?);
    }
    Ok(())
}

type LineServer<N> = Accept<Stream<Lines, <N as Net>::Stream>, <N as Net>::Listener>;
type Talking<N> = Compose2<
    LineServer<N>,
    Compose2<
        Accept<Proxy<<N as Net>::Stream, <N as Net>::Stream, ()>, <N as Net>::Listener>,
        ScriptClient<<N as Net>::Stream, ()>,
    >,
>;

fn lines<N: Addressed>(
    rig: &mut impl Rig<Talking<N>>,
    is_proxied: bool,
) -> Result<Vec<Transcript>, BoxError> {
    let mut address = listen::<_, N::Listener>(rig, |listener, scope| {
        Accept::listen(listener, (), AcceptConfig::new(), scope).wrap(Compose2::A)
    })?;
    if is_proxied {
        address = listen::<_, N::Listener>(rig, |listener, scope| {
            Accept::listen(listener, Route::new(move |_, _| address), AcceptConfig::new(), scope)
                .wrap(|proxy| Compose2::B(Compose2::A(proxy)))
        })?;
    }
    let scripts =
        (0..8).map(|number| lines::script_with(number, |_| Duration::from_millis(1))).collect();
    let transcripts = clients(rig, address, scripts, |client| Compose2::B(Compose2::B(client)))?;
    play(rig, &transcripts)
}

#[test]
fn lines_are_equal_on_every_loop() -> Result<(), BoxError> {
    let kernel = lines::<Inet>(&mut on_kernel()?, false)?;
    assert_equal(&kernel, &lines::<SimNet>(&mut on_simulation()?, false)?);
    assert_equal(&kernel, &lines::<SmoltcpInet>(&mut on_smoltcp()?, false)?);
    if let Some(mut rig) = on_uring()? {
        assert_equal(&kernel, &lines::<UringInet>(&mut rig, false)?);
    }
    Ok(())
}

#[test]
fn lines_through_the_proxy_are_equal_on_every_loop() -> Result<(), BoxError> {
    let kernel = lines::<Inet>(&mut on_kernel()?, true)?;
    assert_equal(&kernel, &lines::<SimNet>(&mut on_simulation()?, true)?);
    assert_equal(&kernel, &lines::<SmoltcpInet>(&mut on_smoltcp()?, true)?);
    if let Some(mut rig) = on_uring()? {
        assert_equal(&kernel, &lines::<UringInet>(&mut rig, true)?);
    }
    // The clients cannot tell that there is a proxy.
    assert_equal(&kernel, &lines::<SimNet>(&mut on_simulation()?, false)?);
    Ok(())
}

type Chatting<N> = Compose2<
    Accept<Stream<WithOutbox<Client<Chat>>, <N as Net>::Stream>, <N as Net>::Listener>,
    ScriptClient<<N as Net>::Stream, Chat>,
>;

fn chat<N: Addressed>(rig: &mut impl Rig<Chatting<N>>) -> Result<Vec<Transcript>, BoxError> {
    let address = listen::<_, N::Listener>(rig, |listener, scope| {
        Accept::listen(listener, (), AcceptConfig::new(), scope).wrap(Compose2::A)
    })?;
    let first = Script::new()
        .expect(b"* you are 1\n* 2 joined\n")
        .send(b"hello\nare you there?\n")
        .expect(b"2: yes\n* 2 left\n")
        .shutdown()
        .expect_end();
    let second = Script::new()
        .expect(b"* you are 2\n1: hello\n1: are you there?\n")
        .send(b"yes\n")
        .shutdown()
        .expect_end();
    let mut transcripts = clients(rig, address, vec![first], Compose2::B)?;
    // The first client to connect gets number 1.
    rig.run_until(|| !transcripts[0].read().received.is_empty())?;
    transcripts.extend(clients(rig, address, vec![second], Compose2::B)?);
    play(rig, &transcripts)
}

#[test]
fn chats_are_equal_on_every_loop() -> Result<(), BoxError> {
    let kernel = chat::<Inet>(&mut on_kernel()?)?;
    assert_equal(&kernel, &chat::<SimNet>(&mut on_simulation()?)?);
    assert_equal(&kernel, &chat::<SmoltcpInet>(&mut on_smoltcp()?)?);
    if let Some(mut rig) = on_uring()? {
        assert_equal(&kernel, &chat::<UringInet>(&mut rig)?);
    }
    Ok(())
}

type Greeting<N> =
    Compose2<HttpAccept<Hello, <N as Net>::Listener>, ScriptClient<<N as Net>::Stream, ()>>;

fn greet<N: Addressed>(rig: &mut impl Rig<Greeting<N>>) -> Result<Vec<Transcript>, BoxError> {
    let address = listen::<_, N::Listener>(rig, |listener, scope| {
        hello::serve(listener, scope).wrap(Compose2::A)
    })?;
    let transcripts = clients(
        rig,
        address,
        vec![hello::ask(Script::new(), Duration::from_millis(1))],
        Compose2::B,
    )?;
    let mut played = play(rig, &transcripts)?;
    for transcript in &mut played {
        transcript.received = without_dates(&transcript.received)?;
    }
    Ok(played)
}

/// The two loops have different wall clocks.
fn without_dates(received: &[u8]) -> Result<Vec<u8>, BoxError> {
    let text = std::str::from_utf8(received)?;
    let dates = text.split("\r\n").filter(|line| line.starts_with("Date: ")).count();
    assert_eq!(dates, 4, "{text}");
    let kept: Vec<&str> = text.split("\r\n").filter(|line| !line.starts_with("Date: ")).collect();
    Ok(kept.join("\r\n").into_bytes())
}

#[test]
fn http_answers_are_equal_on_every_loop() -> Result<(), BoxError> {
    let kernel = greet::<Inet>(&mut on_kernel()?)?;
    assert_equal(&kernel, &greet::<SimNet>(&mut on_simulation()?)?);
    assert_equal(&kernel, &greet::<SmoltcpInet>(&mut on_smoltcp()?)?);
    if let Some(mut rig) = on_uring()? {
        assert_equal(&kernel, &greet::<UringInet>(&mut rig)?);
    }
    Ok(())
}
