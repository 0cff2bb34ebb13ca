//! What the forger of an answer would have to guess.

use rotor_dns::ResolvConf;

use crate::machine::Served;
use crate::wire::{asked, found};
use crate::{SECOND, Stage, outcome, right_answer, serve, silent, wire};

#[test]
fn ids_ports_and_cases_come_only_from_the_secure_source() {
    let marks = |seed, fast| {
        let mut stage =
            Stage::with_seeds(seed, fast, vec![serve(right_answer)], ResolvConf::default(), |c| c);
        for text in ["a.long.name.example", "another.long.name.example"] {
            assert!(stage.look_up(text).is_ok());
        }
        let server = &stage.servers[0];
        // In equal questions, only the id and the case of the name vary.
        (server.queries.take(), server.ports.take())
    };
    let (queries, ports) = marks(1, 1);
    assert_eq!(marks(1, 2), (queries.clone(), ports.clone()), "the fast numbers have no say");
    let (other_queries, other_ports) = marks(2, 1);
    for (query, other) in queries.iter().zip(&other_queries) {
        assert_ne!(query[..2], other[..2], "the id");
        assert!(
            query[12..] != other[12..] && query[12..].eq_ignore_ascii_case(&other[12..]),
            "the case"
        );
    }
    assert!(ports.iter().zip(&other_ports).all(|(port, other)| port != other));
}

#[test]
fn ids_ports_and_cases_are_spread_over_the_whole_range() {
    let mut stage = Stage::of(right_answer);
    for number in 100..300 {
        assert!(stage.look_up(&format!("h{number}.example")).is_ok());
    }
    let queries = stage.servers[0].queries.take();
    let ids: Vec<u16> =
        queries.iter().map(|query| u16::from_be_bytes([query[0], query[1]])).collect();
    let ports = stage.servers[0].ports.take();
    for (what, first, numbers) in [("ids", 0, &ids), ("ports", 1024, &ports)] {
        assert_eq!(numbers.len(), 200, "{what}");
        assert!(numbers.iter().all(|number| *number >= first), "{what}: {numbers:?}");
        let mut steps: Vec<u16> =
            numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        steps.sort();
        steps.dedup();
        assert!(steps.len() >= 190, "{what} in steps: {numbers:?}");
        // Each eighth of the range occurs often enough; the mean is 25.
        let eighth = |number: u16| usize::from(number - first) * 8 / (65_536 - usize::from(first));
        let count = |part| numbers.iter().filter(|number| eighth(**number) == part).count();
        assert!((0..8).all(|part| count(part) >= 8), "{what}: {numbers:?}");
    }
    // The letters behind the length bytes of the labels: `h`, then those of the domain.
    for at in [13].into_iter().chain(18..25) {
        let capitals = queries.iter().filter(|query| query[at].is_ascii_uppercase()).count();
        assert!((60..=140).contains(&capitals), "{capitals} of 200 at {at}");
    }
}

#[test]
fn each_try_has_its_own_id_port_and_case() {
    let mut stage =
        Stage::new(vec![silent()], ResolvConf::parse("options attempts:5"), |config| config);
    let reply = stage.start_lookup("eighteen-letters-long.example");
    stage.run_for(30 * SECOND);
    assert!(outcome(reply).is_err());
    let queries = stage.servers[0].queries.take();
    let distinct = |mut of: Vec<Vec<u8>>| {
        of.sort();
        of.dedup();
        of.len()
    };
    assert_eq!(queries.len(), 5);
    assert_eq!(distinct(queries.iter().map(|query| query[..2].to_vec()).collect()), 5);
    assert_eq!(distinct(queries.iter().map(|query| query[12..].to_vec()).collect()), 5);
    let ports = stage.servers[0].ports.take();
    assert_eq!(distinct(ports.iter().map(|port| port.to_be_bytes().to_vec()).collect()), 5);
}

#[test]
fn a_case_changing_server_without_tcp_is_asked_in_lower_case_at_last() {
    for (attempts, is_answered) in [(1, false), (2, true)] {
        let script = |query: &[u8], is_tcp: bool, _| {
            let mut message = right_answer(query);
            message[12..wire::question_end(query)].make_ascii_lowercase();
            if is_tcp { vec![] } else { vec![message] }
        };
        let mut conf = ResolvConf::default();
        (conf.timeout, conf.attempts) = (SECOND, attempts);
        let mut stage = Stage::new(vec![Served::new(script)], conf, |config| config);
        let reply = stage.start_lookup("a.long.name.example");
        stage.run_for(3 * SECOND);
        assert_eq!(outcome(reply).is_ok(), is_answered, "{attempts}");
        let queries = stage.servers[0].queries.take();
        let is_mixed = |query: &Vec<u8>| query[12..].iter().any(u8::is_ascii_uppercase);
        let expected = [&[true, true][..], &[false][..usize::from(is_answered)]].concat();
        assert_eq!(queries.iter().map(is_mixed).collect::<Vec<_>>(), expected, "{attempts}");
    }
}

/// The answer to the first name is only an alias, so another question has to be asked.
#[test]
fn a_case_changing_server_with_tcp_is_never_asked_in_lower_case() {
    let script = |query: &[u8], _, _| {
        let is_alias = asked(query).0 == "the.first.name.example";
        let alias = wire::alias("the.first.name.example", "the.other.name.example");
        let mut message = if is_alias { found(query, &[alias]) } else { right_answer(query) };
        message[12..wire::question_end(query)].make_ascii_lowercase();
        vec![message]
    };
    let mut stage = Stage::new(vec![Served::new(script)], ResolvConf::default(), |config| config);
    stage.look_up("the.first.name.example").expect("it has an address");
    let queries = stage.servers[0].queries.take();
    let is_mixed = |query: &Vec<u8>| query[12..].iter().any(u8::is_ascii_uppercase);
    assert_eq!(queries.iter().map(is_mixed).collect::<Vec<_>>(), [true; 4]);
}
