//! The example `line_chat`: every member receives each line of the others completely, once, and in
//! the order in which it was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use rotor::BoxError;
use rotor::stream::{Accept, Stream, WithOutbox};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Script, Sim};

use crate::examples::line_chat::{Client, HasRoom, Room};
use crate::stage::{self, Clients};

/// The context.
#[derive(Default)]
pub(crate) struct Chat {
    pub(crate) room: Room,
}

impl HasRoom for Chat {
    fn room(&mut self) -> &mut Room {
        &mut self.room
    }
}

type Server = Accept<Stream<WithOutbox<Client<Chat>>, SimTcpStream>, SimTcpListener>;

const LINES: u32 = 6;
/// Only the crier sends this.
const END: &[u8] = b"that is all\n";

/// Sends its lines, then stays to the end.
fn talker(number: u32) -> Script {
    let mut script = stage::persistent_script().receive_until(b"* you are ");
    for line in 0..LINES {
        let pause = Duration::from_millis(u64::from(number * 41 + line * 97) % 300);
        script = script.send(format!("{number}.{line}\n").as_bytes()).pause(pause);
    }
    script.receive_until(END)
}

/// Repeats the end line for longer than any client needs to reconnect.
fn crier() -> Script {
    let script =
        Script::new().attempts(100).patience(Duration::from_secs(600)).receive_until(b"* you are ");
    (0..80).fold(script, |script, _| script.send(END).pause(Duration::from_secs(2)))
}

/// Checks what a member has received.
fn check_transcript(heard: &[u8]) -> Result<(), BoxError> {
    let heard = std::str::from_utf8(heard)?;
    // From a connection's number to its client, and the number of the last line received from it.
    let mut speakers: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
    for line in heard.strip_suffix('\n').ok_or("it ends within a line")?.split('\n') {
        if let Some(notice) = line.strip_prefix("* ") {
            let words: Vec<&str> = notice.split(' ').collect();
            let is_known = matches!(words[..], ["you", "are", _] | [_, "joined" | "left"]);
            is_known.then_some(()).ok_or_else(|| format!("notice {line:?}"))?;
            continue;
        }
        let (connection, said) = line.split_once(": ").ok_or_else(|| format!("line {line:?}"))?;
        if said.as_bytes() == END.trim_ascii_end() {
            continue;
        }
        let (who, number) = said.split_once('.').ok_or_else(|| format!("line {line:?}"))?;
        let number: u32 = number.parse()?;
        if let Some(before) = speakers.insert(connection, (who, number))
            && before != (who, number.wrapping_sub(1))
        {
            return Err(format!("{line:?} after {before:?}").into());
        }
    }
    Ok(())
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    let server =
        stage::serve::<Server>(sim, "server", |address, scope| stage::accept(&address, (), scope))?;
    let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
    let transcripts: Vec<_> = (0..6).map(|number| clients.add(sim, talker(number))).collect();
    sim.run_for(stage::FAULTY)?;
    stage::heal(sim, server)?;
    clients.add(sim, crier());
    clients.assert_all_complete(sim)?;
    for transcript in transcripts {
        // It begins with the notice of the client's own number.
        check_transcript(&transcript.read().received)?;
    }
    let is_left =
        |sim: &mut Sim| sim.with(server, |instance| instance.context().room.len()) == Some(0);
    sim.run_until(Duration::from_secs(120), is_left)?;
    stage::drain(sim, server)
}

#[test]
fn each_present_client_receives_each_line_once_and_in_order() {
    stage::check(scenario);
}

#[test]
fn a_missing_misordered_or_torn_line_is_detected() {
    assert!(
        check_transcript(b"* you are 2\n* 1 left\n3: 7.4\n3: 7.5\n4: 8.0\n4: that is all\n")
            .is_ok()
    );
    for wrong in [
        "3: 7.4\n3: 7.6\n",
        "3: 7.4\n3: 7.4\n",
        "3: 7.4\n3: 8.5\n",
        "3: 7.4\n3",
        "3: 7\n",
        "* who\n",
    ] {
        assert!(check_transcript(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
