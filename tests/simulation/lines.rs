//! A line protocol: each line is echoed; `more` returns a long answer, `quit` a long answer and the
//! end of the connection.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rotor::stream::{
    Accept, Exception, Intent, Matched, Protocol, Stream, StreamConfig, Transport,
};
use rotor::{BoxError, Scope, Time};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Family, Fault, Host, Network, Script, Sim, Watched};

use crate::stage::{self, Clients};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 300;
/// Small limits, so that they are reached.
const INPUT_MAX: usize = 512;
const OUTPUT_HIGH: usize = 512;
/// The longest answer to one line: more than the smallest window, and than the high-water mark.
pub(crate) const MUCH: usize = 1_200;
/// By how much one read may exceed the limit of the input.
const BLOCK: usize = 16 * 1_024;

/// The server's side of a connection.
pub(crate) struct Lines;

/// The lines of one client are unique: no other client's line may come back.
pub(crate) fn script(number: u32) -> Script {
    script_with(number, |request| stage::think_time(number, request))
}

/// The same with other pauses.
pub(crate) fn script_with(number: u32, pause: impl Fn(u32) -> Duration) -> Script {
    let line = |request: u32| {
        let mut line = format!("client {number}, request {request}: ");
        line.extend(
            (0..(number * 37 + request * 11) % 200).map(|n| char::from(b'a' + (n % 26) as u8)),
        );
        (line + "\n").into_bytes()
    };
    let mut script = stage::persistent_script();
    for request in 0..4 {
        script = script.send(&line(request)).expect(&line(request)).pause(pause(request));
    }
    // Several lines at a time, cut anywhere.
    let several: Vec<u8> = (4..7).flat_map(line).collect();
    script = script.send(&several).expect(&several).pause(pause(7));
    match number % 4 {
        // The end of the stream comes with the last bytes, from either side.
        0 => script.send(&line(8)).shutdown().expect(&line(8)).expect_end(),
        1 => script.send(b"more\n").shutdown().expect(&vec![b'+'; MUCH]).expect_end(),
        2 => script.send(b"quit\n").expect(&vec![b'-'; MUCH]).expect_end(),
        _ => script
            .send(b"more\nquit\n")
            .expect(&vec![b'+'; MUCH])
            .expect(&vec![b'-'; MUCH])
            .expect_end(),
    }
}

impl Lines {
    fn wait(self, scope: &Scope<'_, ()>) -> Intent<Self> {
        Intent::of(self)
            .delimiter(b"\n", LINE_BYTES_MAX)
            .deadline(scope.now() + Duration::from_secs(100))
    }
}

impl Protocol for Lines {
    type Context = ();
    type Seed = ();

    fn config(_: &()) -> Arc<StreamConfig> {
        StreamConfig::new().input_max(INPUT_MAX).output_high_water(OUTPUT_HIGH).share()
    }

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
        Lines.wait(scope)
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        let text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        let (answer, ends) = match &text[..] {
            b"more\n" => (vec![b'+'; MUCH], false),
            b"quit\n" => (vec![b'-'; MUCH], true),
            _ => (text, false),
        };
        let is_last = scope.draining_until().is_some() && transport.input.is_empty();
        match transport.output.write_all(&answer) {
            Ok(()) if ends || is_last => Intent::done(),
            Ok(()) => self.wait(scope),
            Err(error) => Intent::error(error),
        }
    }

    /// Usually the end of the input: pending answers are still sent.
    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        if transport.input.is_empty() {
            return Intent::done();
        }
        Intent::of(self).keep().keep_deadline()
    }
}

pub(crate) type Server = Accept<Stream<Lines, SimTcpStream>, SimTcpListener>;

/// A host that serves lines. Its buffers are checked.
pub(crate) fn serve(sim: &mut Sim, name: &str) -> Result<Host<Watched<Server>>, BoxError> {
    let server = stage::serve(sim, name, |address, scope| stage::accept(&address, (), scope))?;
    sim.always("buffers are bounded", move |sim| {
        let held = sim.machines(server, |_, machine| {
            let held =
                |stream: &Stream<Lines, SimTcpStream>| (stream.input_len(), stream.output_len());
            machine.machine().connection().map_or((0, 0), held)
        });
        let is_bounded = |(input, output): &(usize, usize)| {
            *input <= INPUT_MAX + BLOCK && *output <= OUTPUT_HIGH + MUCH
        };
        if held.iter().all(is_bounded) { Ok(()) } else { Err(format!("{held:?} bytes")) }
    });
    Ok(server)
}

/// Each fault that concerns streams must strike while a client waits for a line.
#[test]
fn every_line_is_echoed_once_the_network_heals() {
    let faults = stage::faults(|family| {
        !matches!(family, Family::Datagram | Family::Offload | Family::Packet | Family::MiddleBox)
    });
    // Seldom does anybody here close a connection with unread input while output is under way.
    let faults = faults.filter(|fault| *fault != Fault::ResetOvertakes);
    Check::new().seeds(40).must_strike(faults).run(|sim| {
        let server = serve(sim, "server")?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..8 {
            clients.add(sim, script(number));
        }
        stage::play(sim, server, &clients)
    });
}

/// The limits are really tested: much output is pending where the window is small, and some input
/// as well.
#[test]
fn buffers_fill_and_stay_within_their_limits() {
    Check::new().seeds(3).calm().run(|sim| {
        sim.set_network(Network::new().window(64));
        let server = serve(sim, "server")?;
        let (input, output) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let peaks = (input.clone(), output.clone());
        sim.always("peaks", move |sim| {
            sim.machines(server, |_, machine| {
                if let Some(stream) = machine.machine().connection() {
                    peaks.0.set(peaks.0.get().max(stream.input_len()));
                    peaks.1.set(peaks.1.get().max(stream.output_len()));
                }
            });
            Ok(())
        });
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..8 {
            clients.add(sim, script(number));
        }
        clients.assert_all_complete(sim)?;
        assert!(
            input.get() > 0 && output.get() > OUTPUT_HIGH,
            "{} and {}",
            input.get(),
            output.get()
        );
        Ok(())
    });
}
