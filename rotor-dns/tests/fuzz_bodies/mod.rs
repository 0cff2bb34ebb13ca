//! The body of the fuzz target, as an ordinary function: the target in `fuzz/` calls it under
//! libFuzzer, `tests/corpus.rs` calls it on every saved input.
//!
//! **Any bytes are a valid answer; a panic is a finding.** A resolver in an in-memory loop receives
//! them once by datagram and once over TCP. Both must have the same result, and the records found
//! must be of the kind that was asked for.
//!
//! The TCP query follows a truncated datagram, so that both queries have the same ids: a name may
//! point at the id of its message.

#[path = "../servers/machine.rs"]
mod machine;
#[path = "../servers/simulated.rs"]
mod simulated;

use std::net::SocketAddr;
use std::time::Duration;

use machine::Served;
use rotor_dns::{
    Data, Kind, LookupError, LookupResult, Question, ResolvConf, Resolver, ResolverConfig,
};
use rotor_sim::Sim;
use rotor_sim::net::SimNet;
use simulated::serving;

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
pub(super) const TARGETS: [Target; 1] = [("dns_answer", run)];

/// The length of a header.
const HEADER: usize = 12;
/// How many bytes of an input are used: they fit into a datagram.
const INPUT_MAX: usize = 1_200;
/// The flags of a truncated answer (RFC 1035 §4.1.1).
const TRUNCATED: [u8; 1] = [0x02];
/// New kinds are added at the end, since the corpus refers to kinds by number.
const KINDS: [Kind; 7] =
    [Kind::A, Kind::Aaaa, Kind::Cname, Kind::Srv, Kind::Txt, Kind::Mx, Kind::Ptr];

/// The first byte selects the kind of the question, the next eight bytes are the flags and counts
/// of the header, and the rest follows the question. The id and the question are those of the
/// query, so that the answer is not ignored.
fn run(input: &[u8]) {
    let (choice, input) = input.split_first().unwrap_or((&0, &[]));
    let kind = KINDS[usize::from(*choice) % KINDS.len()];
    let input = &input[..input.len().min(INPUT_MAX)];
    let by_datagram = ask(kind, false, input);
    let over_tcp = ask(kind, true, input);
    assert_eq!(
        format!("{by_datagram:?}"),
        format!("{over_tcp:?}"),
        "left by datagram, right over TCP"
    );
    match by_datagram {
        Ok(answer) => {
            assert!(
                !answer.data.is_empty() && answer.data.iter().all(|data| is_of(kind, data)),
                "{answer:?}"
            );
        }
        Err(LookupError::NoSuchName(_) | LookupError::NoRecords(_) | LookupError::Server(..)) => {}
        // A timeout or a panic, although there was an answer.
        Err(error) => panic!("{error:?}"),
    }
}

fn is_of(kind: Kind, data: &Data) -> bool {
    match data {
        Data::A(_) => kind == Kind::A,
        Data::Aaaa(_) => kind == Kind::Aaaa,
        Data::Cname(_) => kind == Kind::Cname,
        Data::Srv { .. } => kind == Kind::Srv,
        Data::Txt(_) => kind == Kind::Txt,
        Data::Mx { .. } => kind == Kind::Mx,
        Data::Ptr(_) => kind == Kind::Ptr,
        _ => false,
    }
}

/// What a resolver makes of the input, in its own loop and in virtual time.
fn ask(kind: Kind, is_tcp: bool, input: &[u8]) -> LookupResult {
    let mut sim = Sim::new(1);
    let bytes = input.to_vec();
    let served = Served::new(move |query, has_come_over_tcp, _| {
        vec![message(query, if is_tcp && !has_come_over_tcp { &TRUNCATED } else { &bytes })]
    });
    let server = serving(&mut sim, "server", &served).expect("the server starts");
    let mut conf = ResolvConf::default();
    conf.attempts = 1;
    let address = SocketAddr::new(sim.address(server), 53);
    let config = ResolverConfig::new(conf).servers(vec![address]);
    let resolver = sim.host("resolver", move |boot| {
        let mut creator = boot.new_loop::<Resolver<SimNet, _>>()?;
        let mut dns = None;
        creator.add_machine_with(|scope| {
            let (handle, response) = Resolver::new(config.clone(), scope);
            dns = Some(handle);
            response
        })?;
        Ok(creator.instantiate(dns.expect("made above")))
    });
    let dns =
        sim.with(resolver.expect("the resolver starts"), |instance| instance.context().clone());
    let question = Question { name: "www.example".parse().expect("a name"), kind };
    let reply = dns.expect("it is up").records().ask_from_thread(question).expect("there is room");
    sim.run_for(Duration::from_secs(1)).expect("nothing goes wrong by itself");
    assert!(reply.is_ready(), "an answer ends the exchange");
    reply.wait().expect("none goes unanswered")
}

fn message(query: &[u8], input: &[u8]) -> Vec<u8> {
    let mut at = HEADER;
    while query[at] != 0 {
        at += 1 + usize::from(query[at]);
    }
    let mut message = query[..at + 5].to_vec();
    let (header, rest) = input.split_at(input.len().min(8));
    let mut fields = [0; 8];
    fields[..header.len()].copy_from_slice(header);
    message[2..4].copy_from_slice(&fields[..2]);
    message[2] = message[2] & 0b0000_0111 | 0b1000_0000; // a response to a query
    message[6..HEADER].copy_from_slice(&fields[2..]);
    message.extend(rest);
    message
}
