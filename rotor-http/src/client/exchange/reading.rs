//! Reading the answer: its head, its body, and its end when that is the end of the connection.

use std::ops::Range;

use rotor_stream::{Block, Exception, Fatal, NoRoom, Transport};

use super::{Exchange, Flow, Given, Io};
use crate::client::request::Request;
use crate::client::{Client, ClientError, Head};
use crate::h1::{FieldStorage, Method, ResponseSemantics, Status, Trailers};
use crate::recv_mode::RecvMode;

impl<K: Client> Exchange<K> {
    /// Looks for the head of an answer.
    pub(super) fn read_head(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let Io { transport, scope, settings } = io;
        let Transport { input, output, .. } = &mut **transport;
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_response(input, &mut storage, &settings.limits) {
            Ok(Some(head)) => head,
            Ok(None) => return Flow::Wait,
            Err(error) => return self.fail(error.into(), io),
        };
        let offers_upgrade = self.request.offers_upgrade() && self.request.is_done();
        let terms = match ResponseSemantics::from_head(
            &head,
            self.request.framing_method(),
            offers_upgrade,
        ) {
            Ok(terms) => terms,
            Err(error) => return self.fail(error.into(), io),
        };
        let (len, status) = (head.input_len(), head.status());
        if terms.is_interim {
            self.interim += 1;
            if self.interim > settings.limits.interim_answers_max {
                return self.fail(ClientError::TooManyInterim, io);
            }
            let wants_body = status == Status::CONTINUE && self.continue_until.take().is_some();
            let Some(handler) = self.handler.take() else { return Flow::Wait };
            let head = Head::new(head, terms);
            let mut request =
                Request::new(&mut self.request, output, settings.limits.output_high_water);
            let next = scope.guard(|scope| match wants_body {
                true => handler.body_wanted(&mut request, scope),
                false => handler.interim_received(&head, &mut request, scope),
            });
            input.consume(len);
            return self.apply(next, io);
        }
        let is_late_close =
            status == Status::REQUEST_TIMEOUT && !terms.keep_alive && self.interim == 0;
        if is_late_close && self.may_repeat() {
            // RFC 9110 §15.5.9: the server tired of an idle connection just when it was used again.
            return self.again(settings.count());
        }
        self.keep_alive = terms.keep_alive;
        self.is_switched = status == Status::SWITCHING_PROTOCOLS
            || (self.request.framing_method() == Method::Connect && status.is_success());
        self.continue_until = None;
        self.receiving.head_came(terms.body);
        let Some(handler) = self.handler.take() else { return Flow::Wait };
        let head = Head::new(head, terms);
        let mut request =
            Request::new(&mut self.request, output, settings.limits.output_high_water);
        let next = scope.guard(|scope| handler.headers_received(&head, &mut request, scope));
        input.consume(len);
        self.apply(next, io)
    }

    /// Looks at what has come of the body, and hands it over.
    pub(super) fn read_body(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let found = match self.receiving.look(io.transport.input) {
            Ok(Some(found)) => found,
            Ok(None) => return Flow::Wait,
            Err(error) => return self.fail(error.into(), io),
        };
        let range = found.skip..found.skip + found.data;
        let collects = match found.mode {
            _ if found.end.is_some() => false,
            RecvMode::Buffered(_) => true,
            RecvMode::Progressive(min) => self.receiving.collected.len() + found.data < min,
            RecvMode::Blocks => false,
        };
        let flow = match found.mode {
            RecvMode::Blocks => self.give_block(range, io),
            mode => {
                let Ok(given) = self.collect(range, collects, io) else {
                    return self.fail(ClientError::BodiesFull, io);
                };
                match mode {
                    _ if collects => return Flow::On,
                    RecvMode::Buffered(_) => return self.give_all(given, io),
                    _ => self.give_chunk(given, io),
                }
            }
        };
        match (flow, found.end) {
            (Flow::On, Some(trailers)) => self.give_end(&trailers, io),
            (flow, _) => flow,
        }
    }

    /// Adds a part of the body to what was collected, unless it can be handed over from where it
    /// is.
    fn collect(
        &mut self,
        range: Range<usize>,
        collects: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Result<Given, NoRoom> {
        let input = &mut *io.transport.input;
        if !collects && !range.is_empty() && self.receiving.collected.is_empty() {
            return Ok(Given::Input(range));
        }
        self.receiving.collect(&input[range.clone()], io.settings.bodies())?;
        input.consume(range.end);
        Ok(if self.receiving.collected.is_empty() { Given::Nothing } else { Given::Collected })
    }

    fn give_all(&mut self, body: Given, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let flow = self.give(body, io, K::response_received);
        self.receiving.collected.give_back();
        flow
    }

    fn give_chunk(&mut self, chunk: Given, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        if matches!(chunk, Given::Nothing) {
            return Flow::On;
        }
        let flow = self.give(chunk, io, K::response_chunk);
        self.receiving.collected.clear();
        flow
    }

    /// Hands over a part of the body with the memory in which it came.
    fn give_block(&mut self, range: Range<usize>, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let input = &mut *io.transport.input;
        input.consume(range.start);
        if range.is_empty() {
            return Flow::On;
        }
        let block = Block::take_from(input, range.len());
        self.call(io, |handler, request, scope| handler.response_block(block, request, scope))
    }

    fn give_end(&mut self, trailers: &Trailers, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        self.call(io, |handler, request, scope| handler.response_end(trailers, request, scope))
    }

    /// The server sends no more.
    pub(in super::super) fn input_ended(
        &mut self,
        exception: Exception,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Flow<K> {
        if let Exception::Read(error) = exception {
            return self.fail(ClientError::Lost(Fatal::Reset(error)), io);
        }
        if self.receiving.is_before_head() {
            if self.may_repeat() && io.transport.input.is_empty() {
                return self.again(io.settings.count());
            }
            return self.fail(ClientError::Closed, io);
        }
        self.keep_alive = false;
        match self.receiving.finish() {
            Err(error) => self.fail(error.into(), io),
            Ok(None) => Flow::Wait,
            Ok(Some(RecvMode::Buffered(_))) => self.give_all(Given::Collected, io),
            Ok(Some(RecvMode::Progressive(_) | RecvMode::Blocks)) => {
                let rest = if self.receiving.collected.is_empty() {
                    Given::Nothing
                } else {
                    Given::Collected
                };
                match self.give_chunk(rest, io) {
                    Flow::On => self.give_end(&Trailers::default(), io),
                    other => other,
                }
            }
        }
    }
}
