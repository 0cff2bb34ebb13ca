//! Requests one after the other on a connection of HTTP/1.1, which is drained, half-closed or reset
//! at times.

use std::collections::VecDeque;

use super::requests::Request;
use super::{Observed, Random, Seen, check, connect, happen, happen_all};
use crate::probe::seconds;
use crate::wire::{Answer, take};

/// A head, or a body.
struct Part {
    request: usize,
    /// It is sent only once the server asks for it, or has responded.
    waits: bool,
    bytes: Vec<u8>,
}

/// The peer: what it has to send, and what it has got.
struct Client {
    parts: VecDeque<Part>,
    /// How many requests were begun.
    begun: usize,
    output: Vec<u8>,
}

impl Client {
    fn new(requests: &[Request], random: &mut Random) -> Client {
        let mut parts = VecDeque::new();
        for (at, request) in requests.iter().enumerate() {
            let (head, body) = request.on_http1(random);
            parts.push_back(Part { request: at, waits: false, bytes: head });
            if !body.is_empty() {
                let waits = request.expects && random.one_in(2);
                parts.push_back(Part { request: at, waits, bytes: body });
            }
        }
        Client { parts, begun: 0, output: Vec::new() }
    }

    /// Returns the whole responses, and what is left of the output.
    fn answers(&self) -> (Vec<Answer>, &[u8]) {
        let (mut rest, mut answers) = (&self.output[..], Vec::new());
        loop {
            let before = rest;
            match take(&mut rest) {
                Ok(answer) => answers.push(answer),
                Err(defect) if defect == "cut" => return (answers, before),
                Err(defect) => panic!("{defect}: {}", before.escape_ascii()),
            }
        }
    }

    /// Returns what to send next; empty if there is nothing, or not yet.
    fn next(&mut self, random: &mut Random) -> Vec<u8> {
        if self.parts.front().is_some_and(|part| part.bytes.is_empty()) {
            self.parts.pop_front();
        }
        let Some(part) = self.parts.front() else { return Vec::new() };
        if part.waits {
            let (answers, rest) = self.answers();
            let is_final = |answer: &&Answer| answer.status >= 200;
            let finals = answers.iter().filter(is_final).count();
            let last = answers.last().map_or(0, |answer| answer.status);
            let has_begun = rest.windows(4).any(|bytes| bytes == b"\r\n\r\n");
            if finals > part.request {
                // Nobody wants the body, so the connection closes.
                self.parts.clear();
                return Vec::new();
            }
            if finals < part.request || !(last == 100 || has_begun) {
                return Vec::new();
            }
        }
        let Some(part) = self.parts.front_mut() else { return Vec::new() };
        self.begun = part.request + 1;
        let count = random.one_of(&[1, 10, 1_000, 100_000]).min(part.bytes.len());
        part.bytes.drain(..count).collect()
    }
}

pub(super) fn run(seed: u64) {
    let random = &mut Random::with_seed(seed);
    let (mut driver, observed) = connect(random);
    let requests: Vec<_> = (0..=random.below(6)).map(|_| Request::random(random)).collect();
    let what = format!("seed {seed}: {requests:?}");
    let mut client = Client::new(&requests, random);
    let (drains_at, resets_at) = (random.step_or_never(4), random.step_or_never(6));
    let (mut ends, mut begun_at_drain) = (random.one_in(3), usize::MAX);
    let mut idle = 0;
    for step in 0.. {
        if step == drains_at {
            begun_at_drain = client.begun;
            driver.drain(seconds(900));
        }
        if step == resets_at {
            driver.reset();
        }
        client.output.extend(driver.take_received());
        if driver.is_ended() || step == resets_at || idle > 900 {
            break;
        }
        let bytes = client.next(random);
        idle += usize::from(bytes.is_empty());
        if !bytes.is_empty() {
            driver.send(&bytes);
        } else if client.parts.is_empty() && std::mem::take(&mut ends) {
            driver.end();
        }
        match step < 200 && !bytes.is_empty() {
            true => happen(&mut driver, random),
            false => happen_all(&mut driver),
        }
    }
    if resets_at == usize::MAX {
        (0..300).for_each(|_| happen_all(&mut driver));
        client.output.extend(driver.take_received());
        check_answers(&client, &requests, driver.is_ended(), begun_at_drain, &observed, &what);
    }
    assert_eq!(driver.failures(), [""; 0], "{what}");
    drop(driver);
    observed.check_end(&what);
}

/// Checks that each request got its response, up to one after which none can follow.
fn check_answers(
    client: &Client,
    requests: &[Request],
    is_ended: bool,
    begun_at_drain: usize,
    observed: &Observed,
    what: &str,
) {
    let (answers, rest) = client.answers();
    let finals: Vec<_> = answers.iter().filter(|answer| answer.status >= 200).collect();
    for (request, Answer { status, body, fields }) in requests.iter().zip(&finals) {
        check(request, &Seen { status: *status, body, fields, is_whole: true }, what);
    }
    let count = finals.len();
    assert!(count <= requests.len(), "{what}");
    if count < requests.len() {
        let may_be_cut = requests[count].outcome().may_be_cut;
        let is_last = count.checked_sub(1).is_some_and(|at| {
            let is_left = requests[at].has_body() && !requests[at].is_received();
            finals[at].closes() || is_left || requests[at].outcome().may_be_cut
        });
        let may_end = if rest.is_empty() { is_last || count >= begun_at_drain } else { may_be_cut };
        assert!(may_end && is_ended, "{what}: {count} responses, then {}", rest.escape_ascii());
    }
    let log = observed.log();
    if !log.is_empty() {
        let statuses: Vec<_> = log.iter().map(|line| line.0).collect();
        let expected: Vec<_> = finals.iter().map(|answer| answer.status).collect();
        assert!(statuses.starts_with(&expected) && log.len() <= count + 1, "{what}: {log:?}");
        if requests.iter().all(|request| !request.expects) {
            let sum: u64 = log.iter().map(|line| line.1).sum();
            assert_eq!(sum, client.output.len() as u64, "{what}: {log:?}");
        }
    }
}
