//! The same machines and the same scripts on the kernel's sockets and on simulated ones: the
//! transcripts are equal.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rotor_core::net::{Inet, ListenOptions, Listener, Net, StreamSocket, Unix};
use rotor_core::{BoxError, Compose2, Config, Loop, LoopInstance, Response};
use rotor_sim::net::{SimNet, SimUnix};
use rotor_sim::{Script, ScriptClient, Sim, SimBackend, Transcript, TranscriptHandle};

#[path = "machines/echo.rs"]
mod echo;

use echo::{Echo, OUTPUT_MAX};

type Both<N> = Compose2<Echo<N>, ScriptClient<<N as Net>::Stream, ()>>;

fn scripts() -> Vec<Script> {
    let long = vec![b'x'; 10 * OUTPUT_MAX + 7];
    vec![
        Script::new().send(b"hello\n").expect(b"hello\n").shutdown().expect_end(),
        Script::new().shutdown().expect_end(),
        Script::new().send(&long).expect(&long).send(b"!").receive(1),
        Script::new()
            .send(b"a")
            .expect(b"a")
            .pause(Duration::from_millis(20))
            .send(b"b")
            .expect(b"b"),
        Script::new().send(b"one").expect(b"two"),
        Script::new().send(b"x").shutdown().receive(5),
        Script::new().send(b"xy").receive(1).expect_end(),
        Script::new()
            .send(b"aab-aaab!rest")
            .receive_until(b"aaab!")
            .expect(b"rest")
            .shutdown()
            .expect_end(),
        Script::new().send(b"no more").shutdown().receive_until(b"more!"),
        Script::new().send(b"408 late").may_refuse(b"408").attempts(2).expect(b"200 fine"),
        Script::new().send(b"500 oops").may_refuse(b"408").attempts(2).expect(b"200 fine"),
    ]
}

/// Adds an echo server and a client for each script, all in one loop; answers where the transcripts
/// are.
fn add<N, B>(
    creator: &mut Loop<Both<N>, B>,
    address: &<N::Listener as Listener>::Address,
    target: impl Fn(&N::Listener) -> <N::Stream as StreamSocket>::Target,
) -> Result<Vec<TranscriptHandle>, BoxError>
where
    N: Net,
    B: rotor_core::Backend,
{
    let mut bound = None;
    let mut targets = Vec::new();
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = N::Listener::bind(address, &ListenOptions::new(), scope)?;
            targets.extend((0..scripts().len()).map(|_| target(&listener)));
            bound = Some(());
            Ok(Echo::listen(listener, scope).wrap(Compose2::A))
        })
    })?;
    let mut transcripts = Vec::new();
    for (script, target) in scripts().into_iter().zip(targets) {
        let (client, transcript) = script.client(target);
        creator.add_machine_with(|scope| client.start(scope).wrap(Compose2::B))?;
        transcripts.push(transcript);
    }
    Ok(transcripts)
}

fn read(transcripts: &[TranscriptHandle]) -> Vec<Transcript> {
    transcripts.iter().map(TranscriptHandle::read).collect()
}

fn on_kernel<N: Net>(
    address: <N::Listener as Listener>::Address,
    target: impl Fn(&N::Listener) -> <N::Stream as StreamSocket>::Target,
) -> Result<Vec<Transcript>, BoxError> {
    let mut creator: Loop<Both<N>> = Loop::new(&Config::new())?;
    let transcripts = add(&mut creator, &address, target)?;
    let mut instance = creator.instantiate(());
    let until = instance.now() + Duration::from_secs(10);
    while !transcripts.iter().all(TranscriptHandle::has_ended) && instance.now() < until {
        instance.turn(Some(Duration::from_secs(1)))?;
    }
    Ok(read(&transcripts))
}

fn on_simulation<N: Net>(
    address: <N::Listener as Listener>::Address,
    target: impl Fn(&N::Listener) -> <N::Stream as StreamSocket>::Target + Copy + 'static,
) -> Result<Vec<Transcript>, BoxError>
where
    <N::Listener as Listener>::Address: 'static,
{
    let mut sim = Sim::new(1);
    let (sender, receiver) = std::sync::mpsc::channel();
    sim.host("host", move |boot| {
        let mut creator: Loop<Both<N>, SimBackend> = boot.new_loop()?;
        sender.send(add(&mut creator, &address, target)?)?;
        let instance: LoopInstance<Both<N>, SimBackend> = creator.instantiate(());
        Ok(instance)
    })?;
    let transcripts = receiver.recv()?;
    sim.run_until(Duration::from_secs(10), |_| {
        transcripts.iter().all(TranscriptHandle::has_ended)
    })?;
    Ok(read(&transcripts))
}

fn outcomes(transcripts: &[Transcript]) -> Vec<&Option<Result<(), String>>> {
    transcripts.iter().map(|transcript| &transcript.outcome).collect()
}

#[test]
fn transcripts_over_addresses_are_equal() -> Result<(), BoxError> {
    let address: SocketAddr = "127.0.0.1:0".parse()?;
    let kernel =
        on_kernel::<Inet>(address, |listener| listener.local_address().expect("it has one"))?;
    let simulated =
        on_simulation::<SimNet>(address, |listener| listener.local_address().expect("it has one"))?;
    assert!(kernel == simulated, "{:?}\n{:?}", outcomes(&kernel), outcomes(&simulated));
    let outcomes: Vec<bool> =
        kernel.iter().map(|transcript| transcript.outcome == Some(Ok(()))).collect();
    assert_eq!(outcomes, [true, true, true, true, false, false, false, true, false, false, false]);
    // Only a refusal would have been worth another attempt.
    assert_eq!((kernel[9].attempts, kernel[10].attempts), (2, 1));
    Ok(())
}

#[test]
fn transcripts_over_paths_are_equal() -> Result<(), BoxError> {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("echo-{}", std::process::id()));
    let target = path.clone();
    let kernel = on_kernel::<Unix>(path.clone(), |_| target.clone());
    std::fs::remove_file(&path)?;
    let simulated = on_simulation::<SimUnix>("/run/echo".into(), |_| "/run/echo".into())?;
    let kernel = kernel?;
    assert!(kernel == simulated, "{:?}\n{:?}", outcomes(&kernel), outcomes(&simulated));
    Ok(())
}
