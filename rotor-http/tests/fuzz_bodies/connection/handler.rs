//! `Site`: the handler of the fuzzed connection. Its behavior depends on the path alone, so that
//! `reference` can predict it.

use std::io::Write;

use rotor_core::Scope;
use rotor_http::server::{Head, Next, RecvMode, Response, Server};
use rotor_http::{MessageError, Status, Trailers};
use rotor_stream::{Exception, Intent, Matched, Protocol, Transport};

/// What a handler does with its request.
///
/// | path begins with | what it does |
/// |--|--|
/// | `/i` | answers without asking for the body |
/// | `/b` | the same, with a large body of unknown length, as there is room for it |
/// | `/p` | takes the body in pieces of at least three bytes and answers with it, length unknown |
/// | `/u` | takes the whole body, then switches to another protocol if the peer has asked for it |
/// | anything else | takes the whole body and answers with it |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Ignoring,
    Big,
    Progressive,
    Switching,
    Buffered,
}

impl Kind {
    pub(super) fn of(path: &str) -> Kind {
        match path.as_bytes() {
            [b'/', b'i', ..] => Kind::Ignoring,
            [b'/', b'b', ..] => Kind::Big,
            [b'/', b'p', ..] => Kind::Progressive,
            [b'/', b'u', ..] => Kind::Switching,
            _ => Kind::Buffered,
        }
    }
}

/// Bytes of a large answer.
pub(super) const BIG: usize = 3000;
const PIECE: usize = 700;

/// What the handlers of a connection have recorded.
#[derive(Debug, Default)]
pub(in super::super) struct TestContext {
    /// Method and target of each request.
    pub(in super::super) heads: Vec<String>,
    /// The maximum of unsent bytes when a request began.
    pub(super) unsent_max: usize,
    /// The length of the longest body that was received whole.
    pub(super) buffered_max: usize,
    /// How often the writer has refused a call. Must stay 0, since all calls are valid.
    pub(in super::super) misuses: u32,
}

pub(in super::super) struct Site {
    kind: Kind,
    /// The answer, as far as it is known.
    text: Vec<u8>,
    /// Bytes of a large answer that are not written yet.
    left: usize,
    wants_upgrade: bool,
}

type Sc<'a, 'b> = &'a mut Scope<'b, TestContext>;

impl Site {
    fn answer(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(Status::OK)?;
        match self.kind {
            Kind::Progressive => response.add_chunked()?,
            _ => response.add_length(self.text.len() as u64)?,
        }
        response.done_headers()?;
        response.write_body(&self.text)?;
        response.done()
    }

    fn switch(response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(Status::SWITCHING_PROTOCOLS)?;
        response.add_header("Upgrade", "relay")?;
        response.done_headers()?;
        response.done()
    }

    /// Writes as much of the large answer as there is room for, but at least a piece.
    fn pump(&mut self, response: &mut Response<'_>) -> Result<(), MessageError> {
        loop {
            let count = self.left.min(PIECE);
            response.write_body(&[b'b'; PIECE][..count])?;
            self.left -= count;
            if self.left == 0 {
                return response.done();
            }
            if response.room() == 0 {
                return Ok(());
            }
        }
    }

    fn continue_pumping(mut self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        record_result(self.pump(response), scope);
        if self.left == 0 { Next::finished() } else { Next::go_on(self).no_deadline() }
    }
}

fn record_result(written: Result<(), MessageError>, seen: &mut TestContext) {
    seen.misuses += u32::from(written.is_err());
}

impl Server for Site {
    type Context = TestContext;
    type Seed = ();
    type Upgrade = Relay;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.heads.push(format!("{} {}", head.method(), head.target()));
        scope.unsent_max = scope.unsent_max.max(response.unsent());
        let text = format!("{} {} ", head.method(), head.path()).into_bytes();
        let kind = Kind::of(head.path());
        let site = Site { kind, text, left: BIG, wants_upgrade: head.wants_upgrade() };
        match kind {
            Kind::Ignoring => {
                record_result(response.send(Status::OK, "text/plain", &site.text), scope);
                Next::finished()
            }
            Kind::Big => {
                let begun = response.status(Status::OK).and_then(|()| response.add_chunked());
                record_result(begun.and_then(|()| response.done_headers()), scope);
                site.continue_pumping(response, scope)
            }
            Kind::Progressive => Next::recv(site, RecvMode::Progressive(3)).keep_deadline(),
            Kind::Switching | Kind::Buffered => {
                Next::recv(site, RecvMode::Buffered(usize::MAX)).keep_deadline()
            }
        }
    }

    fn request_received(
        mut self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.buffered_max = scope.buffered_max.max(body.len());
        if self.kind == Kind::Switching && self.wants_upgrade {
            record_result(Site::switch(response), scope);
            return Next::upgrade(());
        }
        self.text.extend_from_slice(body);
        record_result(self.answer(response), scope);
        Next::finished()
    }

    fn request_chunk(mut self, chunk: &[u8], _: &mut Response<'_>, _: Sc<'_, '_>) -> Next<Self> {
        self.text.extend_from_slice(chunk);
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        record_result(self.answer(response), scope);
        Next::finished()
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        match self.kind {
            Kind::Big => self.continue_pumping(response, scope),
            _ => Next::go_on(self).keep_deadline(),
        }
    }
}

/// The other protocol: echoes every byte.
pub(in super::super) struct Relay;

impl Protocol for Relay {
    type Context = TestContext;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        Intent::of(Relay).bytes(1).no_deadline()
    }

    fn bytes_read(self, _: Matched, transport: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        // The output is open while the protocol is called.
        let _written = transport.output.write_all(transport.input);
        transport.input.clear();
        Intent::of(self).keep().keep_deadline()
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        Intent::done()
    }
}
