//! Runs the same machines with the same scripts on every loop. The transcripts must be equal.

use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, Net, StreamSocket};
use rotor_core::{Compose2, Config, Response};
use rotor_sim::net::SimUnix;
use rotor_sim::{Script, ScriptClient, Transcript, TranscriptHandle};
use rotor_test_kit::Directory;

use crate::echo::{Echo, OUTPUT_MAX};
use crate::loops::{Mio, OnKernel, OnLoop, OnSmoltcp, Rig, Simulated, local};

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

/// Plays each script with a client of an echo server, all in one loop.
fn play<L: OnLoop, N: Net>(
    address: &<N::Listener as Listener>::Address,
    target: impl Fn(&N::Listener) -> <N::Stream as StreamSocket>::Target,
) -> Vec<Transcript> {
    let mut rig = Rig::<Both<N>, L>::new(&Config::new(), ());
    let mut targets = Vec::new();
    rig.add(|scope| {
        Response::attempt(|| {
            let listener = N::Listener::bind(address, &ListenOptions::new(), scope)?;
            targets.extend(scripts().iter().map(|_| target(&listener)));
            Ok(Echo::listen(listener, scope).wrap(Compose2::A))
        })
    });
    let mut transcripts = Vec::new();
    for (script, target) in scripts().into_iter().zip(targets) {
        let (client, transcript) = script.client(target);
        rig.add(|scope| client.start(scope).wrap(Compose2::B));
        transcripts.push(transcript);
    }
    rig.until(|_| transcripts.iter().all(TranscriptHandle::has_ended));
    transcripts.iter().map(TranscriptHandle::read).collect()
}

fn outcomes(transcripts: &[Transcript]) -> Vec<&Option<Result<(), String>>> {
    transcripts.iter().map(|transcript| &transcript.outcome).collect()
}

fn play_at_addresses<L: OnLoop>() -> Vec<Transcript> {
    play::<L, L::Net>(&local(), |listener| listener.local_address().expect("it has one"))
}

fn assert_equal(first: &[Transcript], second: &[Transcript]) {
    assert!(first == second, "{:?}\n{:?}", outcomes(first), outcomes(second));
}

#[test]
fn transcripts_over_addresses_are_equal() {
    let on_mio = play_at_addresses::<Mio>();
    assert_equal(&on_mio, &play_at_addresses::<Simulated>());
    assert_equal(&on_mio, &play_at_addresses::<OnSmoltcp>());
    #[cfg(target_os = "linux")]
    match <crate::loops::OnUring as OnLoop>::refusal() {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => assert_equal(&on_mio, &play_at_addresses::<crate::loops::OnUring>()),
    }
    let outcomes: Vec<bool> =
        on_mio.iter().map(|transcript| transcript.outcome == Some(Ok(()))).collect();
    assert_eq!(outcomes, [true, true, true, true, false, false, false, true, false, false, false]);
    // Only a refused connection would have been worth another attempt.
    assert_eq!((on_mio[9].attempts, on_mio[10].attempts), (2, 1));
}

fn play_at_path<L: OnKernel>() -> Vec<Transcript> {
    let directory = Directory::create();
    let path = directory.join("echo");
    play::<L, L::Unix>(&path, |_| path.clone())
}

/// smoltcp is left out: it has no Unix sockets.
#[test]
fn transcripts_over_paths_are_equal() {
    let on_mio = play_at_path::<Mio>();
    let simulated = play::<Simulated, SimUnix>(&"/run/echo".into(), |_| "/run/echo".into());
    assert_equal(&on_mio, &simulated);
    #[cfg(target_os = "linux")]
    match <crate::loops::OnUring as OnLoop>::refusal() {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => assert_equal(&on_mio, &play_at_path::<crate::loops::OnUring>()),
    }
}
