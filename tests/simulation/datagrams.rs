//! The example `udp_echo_server`: datagrams are lost, duplicated and reordered, and a client that
//! repeats its request gets a response.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{BoxError, EventSet, Infallible, Interest, Machine, Response, Scope};
use rotor_sim::net::SimUdpSocket;
use rotor_sim::{Busy, Check, Fault, Faults, Sim};

use crate::examples::udp_echo_server::UdpEcho;
use crate::stage::{self, FAULTY, PORT};

const QUESTIONS: u32 = 20;

/// The results of the requests.
#[derive(Default)]
struct Answers {
    unanswered: BTreeSet<u32>,
    asked: u32,
    came: u32,
    wrong: Option<Vec<u8>>,
}

/// Repeats every request that is not answered.
struct Asker {
    socket: SimUdpSocket,
    server: SocketAddr,
    busy: Option<Busy>,
}

impl Asker {
    fn ask(&mut self, answers: &mut Answers) -> io::Result<()> {
        for question in answers.unanswered.clone() {
            answers.asked += 1;
            self.socket.send_to(format!("question {question}").as_bytes(), &self.server)?;
        }
        Ok(())
    }

    fn hear(&mut self, answers: &mut Answers) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            let (length, from) = self.socket.receive_from(&mut buffer)?;
            answers.came += 1;
            let text = String::from_utf8_lossy(&buffer[..length]);
            let number = text.strip_prefix("question ").and_then(|number| number.parse().ok());
            match number {
                Some(number) if from == self.server && (0..QUESTIONS).contains(&number) => {
                    answers.unanswered.remove(&number);
                }
                _ => answers.wrong = Some(buffer[..length].to_vec()),
            }
        }
    }
}

impl Machine for Asker {
    type Context = Answers;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Answers>) -> Response<Self, Infallible> {
        loop {
            match self.hear(scope) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Response::keep(self),
                _ => {}
            }
        }
    }

    fn timeout(mut self, scope: &mut Scope<'_, Answers>) -> Response<Self, Infallible> {
        // A request that was not sent now is sent the next time.
        let _unsent = self.ask(scope);
        self.busy = (!scope.unanswered.is_empty()).then(|| Busy::new(scope));
        self.ready(EventSet::EMPTY, scope).deadline(scope.now() + Duration::from_millis(500))
    }
}

fn scenario(sim: &mut Sim) -> Result<Answers, BoxError> {
    let server = stage::serve(sim, "server", |address, scope| {
        Response::attempt(|| {
            let socket = SimUdpSocket::bind(&address, scope)?;
            Ok(Response::ok(UdpEcho::new(socket, scope)?))
        })
    })?;
    let target = SocketAddr::new(sim.address(server), PORT);
    let asker = sim.host("asker", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), 0);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let mut socket = SimUdpSocket::bind(&address, scope)?;
                scope.register(&mut socket, Interest::Both)?;
                Ok(Response::ok(Asker { socket, server: target, busy: None }).deadline(scope.now()))
            })
        })?;
        Ok(creator
            .instantiate(Answers { unanswered: (0..QUESTIONS).collect(), ..Answers::default() }))
    })?;
    sim.protect(asker);
    sim.run_for(FAULTY)?;
    stage::heal(sim, server)?;
    let are_answered = |sim: &mut Sim| {
        sim.with(asker, |instance| instance.context().unanswered.is_empty()) == Some(true)
    };
    sim.run_until(Duration::from_secs(60), are_answered)?;
    let answers =
        sim.with(asker, |instance| std::mem::take(instance.context_mut())).ok_or("it is up")?;
    if let Some(wrong) = answers.wrong {
        return Err(format!("nobody asked {wrong:?}").into());
    }
    stage::drain(sim, server)?;
    Ok(answers)
}

#[test]
fn every_query_is_answered_in_the_end() {
    stage::check(|sim| scenario(sim).map(drop));
}

#[test]
fn lost_datagrams_are_retried_and_duplicates_arrive_twice() {
    Check::new().seeds(3).calm().run(|sim| {
        sim.set_faults(Faults::none().set(Fault::DatagramLost, 0.3));
        let lossy = scenario(sim)?;
        assert!(lossy.asked > QUESTIONS, "{} asked", lossy.asked);
        Ok(())
    });
    Check::new().seeds(3).calm().run(|sim| {
        sim.set_faults(Faults::none().set(Fault::DatagramTwice, 0.5).set(Fault::DatagramLate, 0.5));
        let doubled = scenario(sim)?;
        assert!(
            doubled.came > doubled.asked,
            "{} came, {} were asked",
            doubled.came,
            doubled.asked
        );
        Ok(())
    });
}
