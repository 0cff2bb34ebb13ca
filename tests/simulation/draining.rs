//! Drains at any moment. A request that the network had delivered before the drain began is
//! answered, whether or not its connection had been accepted and the request read. Of pipelined
//! requests, HTTP answers those up to the response that says `Connection: close`.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::BoxError;
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Family, Fault, Host, Network, Script, ScriptClient, Sim, TranscriptHandle};

use crate::stage::PORT;
use crate::{lines, requests};

const CLIENTS: u32 = 6;
/// Far longer than anything here takes except a stall.
const DRAIN: Duration = Duration::from_secs(60);

type ClientHost = Host<ScriptClient<SimTcpStream, ()>>;

/// A request, and how a script waits for its response.
struct Exchange {
    request: Vec<u8>,
    is_answered: fn(&[u8], Script) -> Script,
}

/// A client on a host of its own, so it is known how much of its input the network has delivered.
struct Client {
    host: ClientHost,
    /// In the order in which they are sent.
    requests: Vec<Vec<u8>>,
    transcript: TranscriptHandle,
}

impl Client {
    /// Sends requests one by one, then `at_once` in one write, and starts over.
    fn add<M>(
        sim: &mut Sim,
        server: Host<M>,
        number: u32,
        at_once: u32,
        exchange: impl Fn(u32) -> Exchange,
    ) -> Result<Client, BoxError> {
        let faults = sim.faults();
        sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
        let host: ClientHost = sim.host("client", |boot| Ok(boot.new_loop()?.instantiate(())))?;
        sim.set_faults(faults);
        sim.protect(host);
        let pause =
            |request: u32| Duration::from_millis(u64::from(number * 37 + request * 61) % 200);
        let mut script = Script::new().pause(pause(1) * 5);
        let mut requests = Vec::new();
        for round in 0..10 {
            let group: Vec<Exchange> = match round % 3 {
                2 => (0..at_once).map(|n| exchange(requests.len() as u32 + n)).collect(),
                _ => vec![exchange(requests.len() as u32)],
            };
            let sent: Vec<u8> =
                group.iter().flat_map(|exchange| exchange.request.clone()).collect();
            script = script.send(&sent);
            for exchange in group {
                script = (exchange.is_answered)(&exchange.request, script);
                requests.push(exchange.request);
            }
            script = script.pause(pause(round));
        }
        let target = SocketAddr::new(sim.address(server), PORT);
        let (client, transcript) = script.client(target);
        let added = sim
            .with(host, |instance| instance.add_machine_with(|scope| client.start(scope)).is_ok());
        assert_eq!(added, Some(true), "there is room");
        Ok(Client { host, requests, transcript })
    }

    /// How many of its requests have arrived completely at the server's host.
    fn delivered<M>(&self, sim: &Sim, server: Host<M>) -> usize {
        let mut left = sim.delivered(self.host, server) as usize;
        let is_whole = |request: &&Vec<u8>| {
            let is_whole = request.len() <= left;
            left = left.saturating_sub(request.len());
            is_whole
        };
        self.requests.iter().take_while(is_whole).count()
    }
}

/// Leaves out the faults that close connections by themselves, or that use up the time of the
/// drain.
pub(crate) fn set_faults(sim: &mut Sim) {
    let excused = [
        Family::Reset,
        Family::Crash,
        Family::Panic,
        Family::Register,
        Family::Clock,
        Family::Latency,
        Family::Partition,
    ];
    let faults = excused.into_iter().fold(sim.faults(), |faults, family| faults.without(family));
    sim.set_faults(
        faults
            .set(Fault::AcceptAborted, 0.0)
            .set(Fault::SlowReader, 0.0)
            .set(Fault::WouldBlock, 0.0),
    );
    // A window wide enough that a script never waits with a request half sent.
    let latency = Duration::from_micros(100)..Duration::from_millis(30);
    sim.set_network(Network::swarm(sim.seed()).window(8_192).latency(latency));
}

/// Drains the server while its clients send requests, at a moment that the seed chooses. In half of
/// the runs this follows a stall, so much input is unread. `answers` tells how many of a client's
/// requests are answered by what it received.
fn scenario<M>(
    sim: &mut Sim,
    serve: impl Fn(&mut Sim) -> Result<Host<M>, BoxError>,
    at_once: u32,
    exchange: impl Fn(u32, u32) -> Exchange,
    answers: impl Fn(&[Vec<u8>], &[u8]) -> usize,
) -> Result<(), BoxError> {
    set_faults(sim);
    let server = serve(sim)?;
    sim.protect(server);
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients
            .push(Client::add(sim, server, number, at_once, |request| exchange(number, request))?);
    }
    let moment = Duration::from_millis(sim.random_u64() % 2_000);
    sim.run_for(moment)?;
    if sim.random_u64().is_multiple_of(2) {
        sim.pause(server, Duration::from_millis(300));
        sim.run_for(Duration::from_millis(290))?;
    }
    let delivered: Vec<usize> =
        clients.iter().map(|client| client.delivered(sim, server)).collect();
    sim.note(format!("the drain begins; of each client were delivered {delivered:?}"));
    sim.drain_losing_nothing(server, DRAIN)?;
    sim.run_for(Duration::from_secs(5))?;
    for (number, (client, delivered)) in clients.iter().zip(delivered).enumerate() {
        let transcript = client.transcript.read();
        let answered = answers(&client.requests[..delivered], &transcript.received);
        if answered < delivered {
            let outcome = transcript.outcome;
            return Err(format!(
                "client {number}: {answered} of {delivered} were answered; {outcome:?}"
            )
            .into());
        }
    }
    Ok(())
}

#[test]
fn a_line_that_arrived_before_a_drain_is_echoed() {
    Check::new().seeds(60).run(|sim| {
        let exchange = |number, request| Exchange {
            request: format!("client {number}, line {request}\n").into_bytes(),
            is_answered: |line, script| script.expect(line),
        };
        let answers = |lines: &[Vec<u8>], received: &[u8]| {
            let mut left = received;
            lines
                .iter()
                .take_while(|line| {
                    left.strip_prefix(&line[..]).inspect(|rest| left = rest).is_some()
                })
                .count()
        };
        // More than one read returns, and more than may be unread.
        scenario(sim, |sim| lines::serve(sim, "server"), 300, exchange, answers)
    });
}

#[test]
fn a_request_that_arrived_before_a_drain_is_answered() {
    Check::new().seeds(60).run(|sim| {
        let exchange = |number, request| Exchange {
            request: format!(
                "POST / HTTP/1.1\r\nHost: server\r\nX-Tag: c{number}r{request}\r\nContent-Length: 4\r\n\r\npay!"
            )
            .into_bytes(),
            is_answered: |_, script| {
                script.expect(b"HTTP/1.1 200 OK\r\n").receive_until(b"\r\n\r\n").expect(b"pay!")
            },
        };
        let answers = |requests: &[Vec<u8>], received: &[u8]| {
            let text = String::from_utf8_lossy(received).to_lowercase();
            let last = text.rsplit("http/1.1 200 ok\r\n").next().unwrap_or_default();
            match text.matches("pay!").count() {
                // The response told the client that later requests were not processed.
                answered if answered > 0 && last.contains("connection: close\r\n") => answered.max(requests.len()),
                answered => answered,
            }
        };
        scenario(sim, requests::serve, 3, exchange, answers)
    });
}
