//! The handler that runs a program.

use std::collections::VecDeque;
use std::sync::Arc;

use rotor_core::{Port, Time};
use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor_http::{MessageError, Method, Status, Trailers};
use rotor_stream::Block;

use super::MILLISECOND;
use crate::probe::seconds;

/// What a test and the handlers share.
#[derive(Default)]
pub(super) struct Shared {
    /// What the handlers wait for.
    pub(super) ports: Vec<Port<()>>,
    /// Each handler has a clone.
    pub(super) alive: Arc<()>,
}

/// A handler whose path is its program.
///
/// | step | what it does |
/// |--|--|
/// | `i`, `a` | sends an interim response; adds a field to any response |
/// | `1`, `2`, `3`, `4` | receives the body as a whole, in pieces, in blocks, stored |
/// | `5`, `6`, `7`, `8` | receives the body in pieces, and goes on after each when woken, after a time, or with a value |
/// | `9` | sends the body back as there is room |
/// | `z`, `v` | waits in its place for a time, or for a value |
/// | `u`, `t`, `x` | waits for a wake-up, for a time to be woken at, for its deadline |
/// | `s`, `n`, `e` | begins a response: of unknown length, of a known length, without content |
/// | `w`, `W`, `k` | writes a few bytes, many, a block |
/// | `f` | waits for room |
/// | `d`, `D` | ends the response, with trailers |
/// | `r` | replies with what was received |
/// | `F`, `G`, `p`, `.` | fails with 503 or 502, panics, finishes |
pub(super) struct Program {
    steps: VecDeque<u8>,
    body: Vec<u8>,
    sum: String,
    awaits: Awaits,
    /// The step that receives the body.
    receiving: u8,
    _alive: Arc<()>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Awaits {
    /// Nothing that calls a method.
    Nothing,
    Body,
    /// A wake-up, or room, to go on with the body.
    WakeUpForBody,
    RoomForBody,
    Room,
    WakeUp,
    Time(Time),
    Deadline,
}

type Sc<'a, 'b> = &'a mut Scope<'b, Shared>;

/// Returns how much a step writes.
pub(super) fn written_by(step: u8) -> usize {
    match step {
        b'w' => 100,
        b'W' => 30_000,
        b'k' => 2_000,
        _ => 0,
    }
}

/// Returns the reply of a program that has received this.
pub(super) fn received(body: &[u8], sum: &str) -> String {
    let hash = body.iter().fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(*byte));
    format!("{} {hash:x} {sum}", body.len())
}

impl Program {
    fn go_on(mut self, awaits: Awaits) -> Next<Self> {
        self.awaits = awaits;
        Next::go_on(self).keep_deadline()
    }

    fn hold(mut self, awaits: Awaits) -> Next<Self> {
        self.awaits = awaits;
        Next::hold(self).keep_deadline()
    }

    fn receive(mut self) -> Next<Self> {
        self.awaits = Awaits::Body;
        let mode = match self.receiving {
            b'1' => RecvMode::Buffered(1 << 20),
            b'2' | b'5' => RecvMode::Progressive(1_000),
            b'6' | b'7' => RecvMode::Progressive(1),
            #[cfg(feature = "body")]
            b'4' => RecvMode::Stored { ram_max: 1 << 20, max: 1 << 20 },
            _ => RecvMode::Blocks,
        };
        Next::recv(self, mode).keep_deadline()
    }

    /// Waits for a value, then goes on.
    fn value(
        self,
        scope: Sc<'_, '_>,
        then: impl FnOnce(Self, &mut Response<'_>, Sc<'_, '_>) -> Next<Self> + Send + 'static,
    ) -> Next<Self> {
        let (port, future) = scope.create_future();
        scope.ports.push(port);
        Next::wait(future, scope.now() + seconds(1_000), |came, response, scope| {
            came.expect("the test sets it");
            then(self, response, scope)
        })
    }

    /// Makes the next steps, up to one that waits.
    fn run(mut self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.awaits = Awaits::Nothing;
        let soon = scope.now() + MILLISECOND;
        while let Some(step) = self.steps.pop_front() {
            match step {
                b'z' => return Next::after(soon, |response, scope| self.run(response, scope)),
                b'v' => return self.value(scope, Program::run),
                b'u' => {
                    scope.notifier().wakeup();
                    return self.go_on(Awaits::WakeUp);
                }
                b't' => {
                    self.awaits = Awaits::Time(soon);
                    return Next::wake_at(self, soon);
                }
                b'x' => {
                    self.awaits = Awaits::Deadline;
                    return Next::go_on(self).deadline(soon);
                }
                b'f' if response.room() == 0 => return self.go_on(Awaits::Room),
                b'1'..=b'9' => {
                    self.receiving = step;
                    return self.receive();
                }
                b'F' => return Next::fail(Status::SERVICE_UNAVAILABLE),
                b'G' => return Next::fail(Status::BAD_GATEWAY),
                b'p' => panic!("as asked"),
                b'.' => return Next::finished(),
                _ => self.write(step, response).expect("it may be written"),
            }
        }
        Next::finished()
    }

    fn write(&self, step: u8, response: &mut Response<'_>) -> Result<(), MessageError> {
        match step {
            b'i' => response.interim(Status::EARLY_HINTS, &[("X-Hint", b"1")]),
            b'a' => response.add_always("X-Always", "1"),
            b's' => {
                response.status(Status::OK)?;
                response.add_chunked()?;
                response.done_headers()
            }
            b'n' => {
                response.status(Status::OK)?;
                let length: usize = self.steps.iter().map(|step| written_by(*step)).sum();
                response.add_length(length as u64)?;
                response.done_headers()
            }
            b'e' => {
                response.status(Status::NO_CONTENT)?;
                response.done_headers()
            }
            b'w' | b'W' => response.write_body(vec![step; written_by(step)]),
            b'k' => response.write_block(vec![step; written_by(step)]),
            b'd' => response.done(),
            b'D' => response.done_with_trailers(&[("X-Trailer", b"1")]),
            b'r' => {
                let text = received(&self.body, &self.sum);
                response.send(Status::OK, "text/plain", text.as_bytes())
            }
            _ => Ok(()),
        }
    }

    fn piece(mut self, piece: &[u8], response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        assert_eq!(self.awaits, Awaits::Body, "no piece is due");
        if self.receiving == b'9' {
            response.write_body(piece).expect("it may be written");
            return match response.room() {
                0 => self.hold(Awaits::RoomForBody),
                _ => self.go_on(Awaits::Body),
            };
        }
        self.body.extend_from_slice(piece);
        match self.receiving {
            b'5' => {
                scope.notifier().wakeup();
                self.hold(Awaits::WakeUpForBody)
            }
            b'6' => Next::after(scope.now() + MILLISECOND, |_, _| self.receive()),
            b'7' | b'8' => self.value(scope, |program, _, _| program.receive()),
            _ => self.go_on(Awaits::Body),
        }
    }

    /// Called in every call: there may be room, or the time may have come.
    fn look(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        match self.awaits {
            Awaits::Room if response.room() > 0 => self.run(response, scope),
            Awaits::Time(time) if time <= scope.now() => self.run(response, scope),
            Awaits::RoomForBody if response.room() > 0 => self.receive(),
            awaits => self.go_on(awaits),
        }
    }
}

impl Server for Program {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    const HEARS_END: bool = true;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        if head.method() == Method::Head {
            // By this the test knows that no body follows.
            response.add_always("X-Method", "HEAD").expect("a field");
        }
        let program = Program {
            steps: head.path()[1..].bytes().collect(),
            body: Vec::new(),
            sum: String::new(),
            awaits: Awaits::Nothing,
            receiving: 0,
            _alive: scope.alive.clone(),
        };
        program.run(response, scope)
    }

    fn request_received(
        mut self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.body = body.to_vec();
        self.run(response, scope)
    }

    #[cfg(feature = "body")]
    fn request_stored(
        mut self,
        body: rotor_body::Body,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        body.blocks().for_each(|block| self.body.extend_from_slice(block));
        self.run(response, scope)
    }

    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.piece(chunk, response, scope)
    }

    fn request_block(
        self,
        block: Block,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.piece(&block, response, scope)
    }

    fn request_end(
        mut self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.sum = String::from_utf8_lossy(trailers.get("X-Sum").unwrap_or_default()).into_owned();
        self.run(response, scope)
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.look(response, scope)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        match self.awaits {
            Awaits::WakeUp => self.run(response, scope),
            Awaits::WakeUpForBody => self.receive(),
            _ => self.look(response, scope),
        }
    }

    fn timeout(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        assert_eq!(self.awaits, Awaits::Deadline, "no deadline is due");
        self.run(response, scope)
    }

    fn draining(self, _: Time, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.look(response, scope)
    }

    fn peer_ended(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.look(response, scope)
    }
}
