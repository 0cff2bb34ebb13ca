//! A protocol that does anything at random, with a peer that does anything at random. It is called
//! whenever what it waits for is there, and for nothing else; what it wrote arrives in order; and a
//! peer that did not get everything sees no orderly end.

mod probe;

use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use probe::{Event, Probe, probe_with};
use rotor_core::Time;
use rotor_stream::testing::Driver;
use rotor_stream::{Exception, Expectation, FrameLength, Intent, StreamConfig, Transport};
use rotor_test_kit::Directory;

/// What the protocol waits for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Input {
    Nothing,
    Held,
    Bytes(usize),
    Poll,
    Line,
    Frame,
}

impl Input {
    fn is_wanted(self) -> bool {
        !matches!(self, Input::Nothing | Input::Held)
    }
}

const LINE_MAX: usize = 12;
const FRAME_MAX: usize = 6;
const INPUT_MAX: usize = 16;

/// The first byte of a frame is its length.
fn frame_length(input: &[u8]) -> FrameLength {
    match input.first() {
        Some(0) => FrameLength::Malformed,
        Some(first) => FrameLength::Bytes(usize::from(*first)),
        None => FrameLength::Unknown,
    }
}

/// The protocol, its peer, and what was found wrong.
struct Model {
    rng: Rng,
    file: Arc<File>,
    /// Whether files often turn out to be too short.
    has_short_files: bool,
    high_water: usize,
    /// What the peer has sent, and how much of it the protocol has consumed.
    sent: Vec<u8>,
    consumed: usize,
    /// What the protocol has written, up to the first byte that cannot be sent.
    written: Vec<u8>,
    has_lost_output: bool,
    input: Input,
    flush: Option<usize>,
    deadline: Option<Time>,
    has_ended_output: bool,
    has_input_ended: bool,
    /// How the protocol has ended.
    end: Option<&'static str>,
    must_end: bool,
    wrong: Vec<String>,
}

/// The number of bytes in the file.
const FILE_BYTES: usize = 10;

impl Model {
    fn check(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.wrong.push(what());
        }
    }

    /// Returns whether the unread bytes fulfil what it waits for, or can never.
    fn is_input_due(&self, unread: &[u8]) -> bool {
        match self.input {
            Input::Nothing | Input::Held => false,
            Input::Poll => true,
            Input::Bytes(count) => unread.len() >= count.min(INPUT_MAX + 1),
            Input::Line => unread.len() >= LINE_MAX || unread.contains(&b'\n'),
            Input::Frame => match unread.first() {
                None => false,
                Some(first) => {
                    let len = usize::from(*first);
                    len == 0 || len > FRAME_MAX || unread.len() >= len
                }
            },
        }
    }

    fn on_event(
        &mut self,
        me: Probe,
        event: &Event,
        transport: &mut Transport<'_>,
        now: Time,
    ) -> Intent<Probe> {
        let unread = transport.input.to_vec();
        let expected = self.sent.get(self.consumed..self.consumed + unread.len());
        let is_content_right = expected == Some(&unread[..]);
        self.check(is_content_right, || format!("the input is {unread:?}"));
        self.check(self.end.is_none(), || format!("called for {event:?} after its end"));
        let before = (self.input, self.flush);
        match event {
            Event::Create | Event::Wakeup | Event::Draining(_) => {}
            Event::Read(matched) => {
                let is_due = self.is_input_due(&unread) && matched.len() <= unread.len();
                self.check(is_due, || format!("{before:?}: called for {unread:?}, {matched:?}"));
                let is_gated = transport.output.len() > self.high_water;
                self.check(!is_gated, || "called above the high-water mark".into());
            }
            Event::Flushed => {
                let left = transport.output.len();
                let is_due = self.flush.is_some_and(|most| left <= most);
                self.check(is_due, || format!("{before:?}: flushed to {left}"));
            }
            Event::Timeout => {
                let is_due = self.deadline.take().is_some_and(|deadline| deadline <= now);
                self.check(is_due, || format!("a timeout at {now:?}"));
            }
            Event::Exception(exception) => {
                self.check(before.0.is_wanted(), || format!("{exception} for nothing"));
                if let Exception::EndOfStream | Exception::Truncated = exception {
                    let all = self.consumed + unread.len() == self.sent.len();
                    let is_due = self.has_input_ended && all;
                    let poll = before.0 == Input::Poll;
                    let is_met = self.is_input_due(&unread) && !poll;
                    self.check(is_due && !is_met, || {
                        format!("{before:?}: {exception}, {unread:?}")
                    });
                }
                // Nothing that it waits for will come.
                self.input = Input::Nothing;
            }
        }
        self.act(me, event, transport, now)
    }

    fn act(
        &mut self,
        me: Probe,
        event: &Event,
        transport: &mut Transport<'_>,
        now: Time,
    ) -> Intent<Probe> {
        // Bytes are consumed at any call, but certainly if the protocol was called for them.
        let is_read = matches!(event, Event::Read(_));
        let unread = transport.input.len();
        if unread > 0 && (is_read || self.rng.u8(0..6) == 0) {
            let count = match event {
                Event::Read(matched) if matched.len() > 0 && self.rng.bool() => matched.len(),
                _ => self.rng.usize(1..=unread),
            };
            transport.input.consume(count);
            self.consumed += count;
        }
        // What follows lost output is lost, too.
        let writes = self.rng.u8(0..3) > u8::from(self.has_lost_output);
        if !self.has_ended_output && writes {
            self.write(transport);
        }
        if !self.has_ended_output && self.rng.u8(0..40) == 0 {
            transport.shutdown_write();
            self.has_ended_output = true;
        }
        // Few calls follow lost output.
        let fates = if self.must_end {
            2
        } else if self.has_lost_output {
            9
        } else {
            120
        };
        let fate = self.rng.u8(0..fates);
        match fate {
            0 => {
                self.end = Some("done");
                return Intent::done();
            }
            1 => {
                self.end = Some("error");
                return Intent::error("as planned");
            }
            2 => {
                self.end = Some("reset");
                return Intent::reset();
            }
            _ => {}
        }
        self.wait(me, event, unread, now)
    }

    fn write(&mut self, transport: &mut Transport<'_>) {
        let count = self.rng.usize(1..40);
        let bytes: Vec<u8> = (0..count).map(|_| self.rng.u8(..)).collect();
        let is_kept = !self.has_lost_output;
        let kind = if self.has_short_files { self.rng.u8(0..3) } else { self.rng.u8(0..30) };
        match kind {
            0 => {
                let most = if self.has_short_files { FILE_BYTES + 5 } else { FILE_BYTES + 1 };
                let count = self.rng.usize(1..most);
                transport.output.push_file(self.file.clone(), 0, count).expect("open");
                if is_kept {
                    self.written.extend(vec![b'f'; count.min(FILE_BYTES)]);
                    self.has_lost_output = count > FILE_BYTES;
                }
                return;
            }
            1 => {
                let block: Vec<u8> = bytes.iter().copied().cycle().take(600).collect();
                transport.output.push_block(block.clone()).expect("open");
                if is_kept {
                    self.written.extend(block);
                }
                return;
            }
            _ => transport.output.write_all(&bytes).expect("open"),
        }
        if is_kept {
            self.written.extend(bytes);
        }
    }

    /// Decides what to wait for next: not again for what was there and was not consumed.
    fn wait(&mut self, me: Probe, event: &Event, unread: usize, now: Time) -> Intent<Probe> {
        let is_exception = matches!(event, Event::Exception(_));
        let can_keep =
            matches!(event, Event::Wakeup | Event::Draining(_) | Event::Timeout) && self.rng.bool();
        let wait = if can_keep {
            Intent::of(me).keep()
        } else {
            let read_nothing = unread == 0 && matches!(event, Event::Read(_));
            self.input = match self.rng.u8(0..8) {
                _ if is_exception || self.has_input_ended && self.rng.bool() => Input::Nothing,
                0 if !read_nothing && self.rng.bool() => Input::Held,
                0 if !read_nothing => Input::Nothing,
                1 if !read_nothing => Input::Poll,
                2 => Input::Line,
                3 => Input::Frame,
                _ => Input::Bytes(self.rng.usize(1..8)),
            };
            // Not the same flush again, if nothing was written since.
            let had_flush = matches!(event, Event::Flushed);
            self.flush = (!had_flush && self.rng.u8(0..3) == 0)
                .then(|| if self.rng.bool() { 0 } else { self.rng.usize(0..30) });
            let me = Intent::of(me);
            let wait = match self.input {
                Input::Nothing => me.sleep(),
                Input::Held => me.hold(),
                Input::Bytes(count) => me.bytes(count),
                Input::Poll => me.poll(),
                Input::Line => me.delimiter(b"\n", LINE_MAX),
                Input::Frame => me.frame(frame_length, FRAME_MAX),
            };
            match self.flush {
                Some(left) => wait.or(Expectation::Flush(left)),
                None => wait,
            }
        };
        match self.rng.u8(0..4) {
            0 => {
                let deadline = now + Duration::from_millis(self.rng.u64(1..60));
                self.deadline = Some(deadline);
                wait.deadline(deadline)
            }
            1 => {
                self.deadline = None;
                wait.no_deadline()
            }
            _ => wait.keep_deadline(),
        }
    }

    /// Checks a stream that has come to rest.
    fn check_at_rest(&mut self, unsent: usize, received: usize, has_room: bool, is_lost: bool) {
        if self.end.is_some() || is_lost || self.has_lost_output {
            return;
        }
        let all_taken = unsent == 0;
        self.check(all_taken || !has_room, || format!("{unsent} bytes wait though there is room"));
        if self.flush.is_some_and(|left| unsent <= left) {
            self.wrong.push(format!("{:?}: not told of {unsent}", self.flush));
        }
        let unread = self.sent[self.consumed..].to_vec();
        if all_taken && self.input.is_wanted() {
            let is_due = self.is_input_due(&unread) || self.has_input_ended;
            self.check(!is_due, || format!("not called for {unread:?}"));
        }
        let is_all = received == self.written.len();
        self.check(!all_taken || is_all, || format!("{received} arrived, and nothing waits"));
    }
}

fn one_of(rng: &mut Rng, values: &[usize]) -> usize {
    *rng.choice(values).expect("there are some")
}

fn run<const D: bool>(seed: u64, file: &Arc<File>) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let high_water = one_of(&mut rng, &[1, 5, 20, 65_536]);
    let config = StreamConfig::new()
        .input_max(INPUT_MAX)
        .output_high_water(high_water)
        .read_budget(one_of(&mut rng, &[1, 10, 65_536]))
        .write_budget(one_of(&mut rng, &[1, 7, 15, 65_536]))
        .calls_budget(one_of(&mut rng, &[1, 3, 1_000]) as u32);
    let model = Rc::new(RefCell::new(Model {
        rng: rng.fork(),
        file: file.clone(),
        has_short_files: rng.u8(0..4) == 0,
        high_water,
        sent: Vec::new(),
        consumed: 0,
        written: Vec::new(),
        has_lost_output: false,
        input: Input::Nothing,
        flush: None,
        deadline: None,
        has_ended_output: false,
        has_input_ended: false,
        end: None,
        must_end: false,
        wrong: Vec::new(),
    }));
    let of_handler = model.clone();
    let is_limited = rng.bool();
    let (room, write_max) = (rng.usize(0..60), rng.bool().then(|| rng.usize(1..9)));
    let read_max = (!D && rng.bool()).then(|| rng.usize(1..5));
    let mut driver: Driver<Probe, D> = probe_with(
        config,
        |peer| {
            if is_limited {
                peer.limit_room(room);
            }
            write_max.iter().for_each(|bytes| peer.limit_writes(*bytes));
            read_max.iter().for_each(|bytes| peer.limit_reads(*bytes));
        },
        move |me, event, transport, scope| {
            of_handler.borrow_mut().on_event(me, event, transport, scope.now())
        },
    );
    let (mut received, mut room) = (Vec::new(), if is_limited { room } else { usize::MAX });
    // The connection is gone, or its output cannot be sent any more.
    let mut is_lost = false;
    // Its peer has not taken the output in time.
    let mut is_discarded = false;
    for _ in 0..rng.usize(1..60) {
        let taken = received.len();
        received.extend(driver.take_received());
        room = if is_limited { room - (received.len() - taken).min(room) } else { room };
        match rng.u8(0..26) {
            0..8 if !model.borrow().has_input_ended => {
                let count = rng.usize(1..10);
                let bytes: Vec<u8> = (0..count)
                    .map(|_| if rng.u8(0..6) == 0 { b'\n' } else { rng.u8(0..8) })
                    .collect();
                model.borrow_mut().sent.extend(&bytes);
                driver.send(&bytes);
            }
            8..13 if is_limited => {
                let more = rng.usize(1..60);
                room += more;
                driver.make_room(more);
            }
            13 | 14 => driver.wakeup(),
            15..18 => driver.advance(Duration::from_millis(rng.u64(1..40))),
            18 => {
                driver.peer().report_spuriously();
                driver.settle();
            }
            19 if rng.bool() => {
                model.borrow_mut().has_input_ended = true;
                driver.end();
            }
            20 if rng.u8(0..4) == 0 => {
                (is_lost, model.borrow_mut().has_input_ended) = (true, true);
                driver.reset();
            }
            21 if rng.u8(0..4) == 0 => {
                is_lost = true;
                driver.peer().fail_writes(ErrorKind::BrokenPipe);
                driver.settle();
            }
            22 if rng.u8(0..4) == 0 => {
                driver.peer().report_falsely();
                driver.settle();
            }
            23 if rng.u8(0..8) == 0 => driver.drain(Duration::from_secs(1_000_000)),
            24 if rng.u8(0..8) == 0 => {
                driver.advance(Duration::from_secs(31));
                // A protocol that holds its input is told behind it that its output is discarded.
                is_discarded |= model.borrow().input == Input::Held;
            }
            _ => continue,
        }
        let taken = received.len();
        received.extend(driver.take_received());
        room = if is_limited { room - (received.len() - taken).min(room) } else { room };
        let is_fatal = driver.context().iter().any(|call| call.starts_with("fatal"));
        let unsent = driver_output_len(&mut driver);
        let model = &mut *model.borrow_mut();
        if is_fatal {
            let is_slow = driver.context().iter().any(|call| call.contains("fatal: the peer"));
            model.check(model.input != Input::Held || is_slow || model.end.is_some(), || {
                "told of a loss while it held its input".into()
            });
            model.end = model.end.or(Some("fatal"));
        }
        model.check_at_rest(unsent, received.len(), room > 0, is_lost || is_discarded);
        if !model.wrong.is_empty() {
            break;
        }
    }
    // The end: all is taken, and the protocol ends.
    model.borrow_mut().must_end = true;
    if is_limited {
        driver.make_room(1_000_000);
    }
    for _ in 0..100 {
        driver.wakeup();
    }
    model.borrow_mut().has_input_ended = true;
    driver.end();
    received.extend(driver.take_received());
    let (is_alive, operations) = (driver.is_alive(), driver.operations());
    let calls = driver.context().join(", ");
    let model = &mut *model.borrow_mut();
    let is_fatal = calls.contains("fatal");
    let fits = model.written.starts_with(&received);
    model.check(fits, || format!("{received:?} arrived"));
    model.check(!is_alive, || "it is still alive".into());
    let written = model.written.len();
    let is_complete = received.len() == written && !model.has_lost_output;
    let is_cut_off = operations.resets > 0 || is_lost;
    model.check(is_complete || is_cut_off, || {
        format!("{} of {written} bytes, then an end", received.len())
    });
    let is_needless = is_complete && operations.resets > 0 && !is_lost && !is_fatal;
    let end = model.end;
    model.check(!is_needless || end == Some("reset"), || "a reset though all was taken".into());
    let failures = driver.failures();
    let only_planned = failures.iter().all(|failure| failure.contains("as planned"));
    model.check(only_planned, || format!("{failures:?}"));
    if model.wrong.is_empty() {
        return Ok(());
    }
    Err(format!("seed {seed}, {D}: {:?}\n{calls}\n{:?}", model.wrong, model.end))
}

fn driver_output_len<const D: bool>(driver: &mut Driver<Probe, D>) -> usize {
    let machines = driver.test().instance().machines();
    machines.iter().map(|(_, stream)| stream.output_len()).sum()
}

#[test]
fn a_random_protocol_is_called_in_time_and_loses_nothing_unnoticed() {
    let directory = Directory::create();
    let file = File::open(directory.file("content", [b'f'; FILE_BYTES])).expect("it is there");
    let file = Arc::new(file);
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("SEED").unwrap_or(0);
    for seed in first..first + number("SEEDS").unwrap_or(400) {
        for result in [run::<false>(seed, &file), run::<true>(seed, &file)] {
            if let Err(wrong) = result {
                panic!("{wrong}");
            }
        }
    }
}
