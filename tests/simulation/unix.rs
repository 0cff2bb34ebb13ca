//! The line protocol on Unix streams. The server and its clients are on one host, since a path
//! names a socket of its host.

use std::path::PathBuf;
use std::time::Duration;

use rotor::stream::{Accept, Stream};
use rotor::{BoxError, Compose2, LoopInstance};
use rotor_sim::net::{SimUnixListener, SimUnixStream};
use rotor_sim::{Fault, ScriptClient, Sim, SimBackend, TranscriptHandle, Watched};

use crate::lines::{self, Lines};
use crate::stage;

type Server = Accept<Stream<Lines, SimUnixStream>, SimUnixListener>;
type Machine = Compose2<Watched<Server>, ScriptClient<SimUnixStream, ()>>;

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    // Nothing would restart the listener.
    let faults = sim.faults();
    sim.set_faults(faults.set(Fault::HandlerPanics, 0.0).set(Fault::SmallSlab, 0.0));
    let path = PathBuf::from("/run/lines");
    let at = path.clone();
    let host = sim.host("host", move |boot| {
        let mut creator = boot.new_loop::<Machine>()?;
        creator.add_machine_with(|scope| {
            Watched::make(scope, |scope| stage::accept::<_, SimUnixListener>(&at, (), scope))
                .wrap(Compose2::A)
        })?;
        Ok(creator.instantiate(()))
    })?;
    sim.protect(host);
    let mut transcripts = Vec::new();
    for number in 0..8 {
        let (client, transcript) = lines::script(number).client(path.clone());
        let add = |instance: &mut LoopInstance<Machine, SimBackend>| {
            instance.add_machine_with(|scope| client.start(scope).wrap(Compose2::B)).is_ok()
        };
        assert_eq!(sim.with(host, add), Some(true));
        transcripts.push(transcript);
    }
    sim.run_for(stage::FAULTY)?;
    let have_ended = |_: &mut Sim| transcripts.iter().all(TranscriptHandle::has_ended);
    sim.eventually(Duration::from_secs(900), have_ended)?;
    for transcript in &transcripts {
        assert_eq!(transcript.read().outcome, Some(Ok(())));
    }
    stage::drain(sim, host)
}

#[test]
fn every_line_is_echoed_over_unix_sockets_once_faults_end() {
    stage::check(scenario);
}
