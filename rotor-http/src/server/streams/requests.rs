//! The beginning of a request: its handler is called, and the request becomes a child unless it is
//! answered at once.

use rotor_core::{Panicked, Phase, Time};
use rotor_stream::{Buf, Output};

use super::child::Child;
use super::{ShutdownState, Streams, offers_protocols};
use crate::flow::Flow;
use crate::h1::framing::Body;
use crate::h1::head::RequestHead;
use crate::h1::request_semantics::RequestSemantics;
use crate::h1::response::{Ending, ReplyTo, ResponseState};
use crate::h2::request::{CheckedRequest, Refusal, StreamPurpose, refused_head};
use crate::h2::{ErrorCode, Intake, Nuisance, Priority, StreamState, Turn, Violation, WindowWatch};
use crate::semantics::error::RequestError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::version::Version;
use crate::server::counters::Counters;
use crate::server::exchange::{Exchange, ExchangeFlow};
use crate::server::handler::{Next, Server, Step};
use crate::server::head::Head;
use crate::server::io::Io;
use crate::server::log_line::LogLine;
use crate::server::outgoing::Outgoing;
use crate::server::persistent_fields::PersistentFields;
use crate::server::response::Response;
use crate::server::unwanted::AnnouncedBody;

/// The properties of a stream that begins.
struct NewStream {
    stream: u32,
    is_end: bool,
    length: Option<u64>,
    priority: Priority,
    purpose: StreamPurpose,
}

impl<S: Server> Streams<S> {
    /// Handles the fields of a new stream, which are in the list.
    pub(super) fn process_request(
        &mut self,
        stream: u32,
        is_end: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Result<(), Violation> {
        self.last_stream = stream;
        self.idle_since = io.scope.now();
        let config = io.config.http2_ref();
        if self.shutdown == ShutdownState::Final {
            // The peer was told. A request that it had sent before it knew is refused, but is not a
            // violation.
            self.reset_stream(stream, ErrorCode::RefusedStream, io);
            return self.count_nuisance(Nuisance::ControlFrame, io);
        }
        let is_full = self.children.len() >= config.streams_max as usize;
        // RFC 9113 §5.1.2: closed streams, whose handlers still have work, do not count.
        let are_open = || self.children.iter().all(|child| child.state != StreamState::Closed);
        // §6.5.2: before the peer has received our settings, it knows no maximum.
        let knows_maximum = self.settings.has_stopped();
        if is_full && knows_maximum && are_open() {
            return Err(Violation::Stream(stream, ErrorCode::RefusedStream));
        }
        if is_full || self.held_output >= config.responses_bytes_max {
            // Handlers may go on, or write more than there is room for, so no more of them are
            // called. This is not only the peer's fault: the peer may repeat the request, and the
            // refusal does not count as a violation. It costs less than a request that is served,
            // and the number of those is not limited either.
            Counters::add(&io.config.counters_ref().streams_refused);
            self.reset_stream(stream, ErrorCode::RefusedStream, io);
            return Ok(());
        }
        let requested = self.take_pending_priority(stream);
        let request = match CheckedRequest::check(
            &mut self.space.list,
            io.config.limits_ref(),
            offers_protocols::<S>(io.config),
        ) {
            Ok(request) => request,
            Err(Refusal::Malformed(why)) => {
                log::debug!("machine {} refuses a request: {why}", io.scope.token());
                Counters::add(&io.config.counters_ref().refused);
                return Err(Violation::Stream(stream, ErrorCode::ProtocolError));
            }
            Err(Refusal::Error(error)) => {
                let (priority, purpose) = (Priority::DEFAULT, StreamPurpose::Response);
                let new_stream = NewStream { stream, is_end, length: None, priority, purpose };
                self.refuse_with_page(error, new_stream, io);
                return Ok(());
            }
        };
        if is_end && request.length.is_some_and(|length| length > 0) {
            Counters::add(&io.config.counters_ref().refused);
            return Err(Violation::Stream(stream, ErrorCode::ProtocolError));
        }
        self.announce_end_if_last(io);
        let purpose = request.purpose;
        let priority = self.priority_of(requested.or(request.priority), purpose);
        self.call_handler(
            request,
            NewStream { stream, is_end, length: None, priority, purpose },
            io,
        );
        Ok(())
    }

    fn announce_end_if_last(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        self.request_count += 1;
        if self.request_count == io.config.limits_ref().requests_max {
            Counters::add(&io.config.counters_ref().used_up);
            self.announce_end(io);
        }
        // The announcement of a drain is not an event for connections, so the loop's phase is read.
        // This is done at the first request, not before: a connection that is new in this phase
        // gets at least one response.
        if io.scope.phase() != Phase::Serving {
            self.announce_end(io);
        }
        if self.age.has_passed(io.scope.now()) && self.is_open() {
            Counters::add(&io.config.counters_ref().aged);
            self.announce_end(io);
        }
    }

    /// Calls the handler with the head of its request.
    fn call_handler(
        &mut self,
        request: CheckedRequest,
        mut new_stream: NewStream,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        new_stream.length = request.length;
        let room = self.room(usize::MAX, io.config);
        let Io { transport, scope, config } = io;
        let (list, connection) = (&self.space.list, transport.connection());
        let (Some(target), Some(authority)) = (request.target(list), request.authority(list))
        else {
            return;
        };
        let body = match (new_stream.is_end, new_stream.length) {
            // What is sent in a tunnel is not a body.
            _ if new_stream.purpose != StreamPurpose::Response => Body::Empty,
            (true, _) => Body::Empty,
            (false, Some(length)) if length > 0 => Body::Length(length),
            // Frames mark its end.
            (false, _) => Body::UntilClose,
        };
        let head = RequestHead::framed(request.method(list), target, list.fields());
        let wants_upgrade = new_stream.purpose == StreamPurpose::Protocol;
        let semantics = RequestSemantics::framed(
            &head,
            authority,
            body,
            request.expects_continue,
            wants_upgrade,
        );
        config.renew_date(scope);
        let reply = semantics.reply_to();
        let mut state = ResponseState::new(reply);
        let mut persistent = PersistentFields::NONE;
        let mut response =
            Response::new(&mut state, &mut self.scratch, config, &mut persistent, false);
        response.limit_room(room);
        let seed = &self.seed;
        let mut part = scope.part(new_stream.stream);
        let mut is_supported = false;
        let next = part.guard(|scope| {
            // Within the guard, because `supports` is the user's code, too. RFC 9110 §9.1: a method
            // that is not implemented gets 501, whatever its target is.
            is_supported = S::supports(head.method());
            is_supported.then(|| {
                Counters::add(&config.counters_ref().requests);
                let head = Head::new(&head, &semantics, connection, None);
                S::headers_received(seed.clone(), &head, &mut response, scope)
            })
        });
        if matches!(next, Ok(Some(Next { step: Step::Finished, .. })))
            && state.ending() == Ending::KeepAlive
            && new_stream.is_end
            && new_stream.purpose == StreamPurpose::Response
            && !config.is_logged()
            && self.send_immediately(new_stream.stream, &state, new_stream.priority, io)
        {
            io.config.counters_ref().traffic.record_immediate_end(state.final_status());
            return;
        }
        if !is_supported {
            io.config.counters_ref().traffic.record_unseen();
        }
        let log = io.config.is_logged().then(|| {
            LogLine::from_head(
                Some(&head_for_log(&self.space.list, &request)),
                io.config.logged_fields(),
                io.transport.connection(),
            )
        });
        let output = std::mem::take(&mut self.scratch);
        let outgoing =
            Outgoing::from_head(state, persistent, reply, 0, &output, io.scope.now(), log);
        let announced = AnnouncedBody { body, expects_continue: expects_continue(&request, body) };
        let is_draining = self.is_draining;
        self.add_child(new_stream, announced, outgoing, output, io, |exchange, io| {
            start_exchange(exchange, next, is_draining, io)
        });
    }

    /// Responds to a request that no handler sees.
    #[cold]
    fn refuse_with_page(
        &mut self,
        error: RequestError,
        new_stream: NewStream,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let counters = io.config.counters_ref();
        Counters::add(&counters.refused);
        counters.traffic.record_unseen();
        let status = error.status();
        if matches!(status, Status::REQUEST_HEADER_FIELDS_TOO_LARGE | Status::URI_TOO_LONG) {
            Counters::add(&counters.heads_too_large);
        }
        let head = refused_head(&self.space.list);
        // Also if there is no target that can be read.
        let is_head = self.space.list.fields().get(":method") == Some(b"HEAD");
        let reply =
            ReplyTo { version: Version::Http2, is_head, keep_alive: true, ..ReplyTo::unreadable() };
        let log = io.config.is_logged().then(|| {
            LogLine::from_head(head.as_ref(), io.config.logged_fields(), io.transport.connection())
        });
        let output = Output::new();
        let mut outgoing = Outgoing::new(reply, &output, io.scope.now(), log);
        outgoing.refusal = Some(error);
        let announced = AnnouncedBody { body: Body::Empty, expects_continue: false };
        // Not counted as a violation: it costs no more than a handler's page, and the peer may be a
        // proxy for many clients, of which one sent this.
        self.add_child(new_stream, announced, outgoing, output, io, |_, _| Flow::Fail(status));
    }

    /// Makes a child of a request that is not over yet.
    fn add_child(
        &mut self,
        new_stream: NewStream,
        announced: AnnouncedBody,
        outgoing: Outgoing,
        output: Output,
        io: &mut Io<'_, '_, '_, S::Context>,
        first: impl FnOnce(&mut Exchange<S>, &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S>,
    ) {
        let mut exchange = Exchange::new(outgoing, announced, io.config);
        exchange.count_end_on_drop(io.config);
        let config = io.config.http2_ref();
        self.children.push(Box::new(Child {
            id: new_stream.stream,
            state: StreamState::for_request(new_stream.is_end),
            exchange: Some(exchange),
            tunnel: None,
            purpose: new_stream.purpose,
            code: ErrorCode::InternalError,
            ending: Ending::Unstarted,
            trailers_len: 0,
            input: Buf::new(),
            output,
            has_sent_head: false,
            priority: new_stream.priority,
            is_scheduled: false,
            turn: Turn::default(),
            intake: Intake::new(config.stream_window, new_stream.length),
            outbound: self.frames.stream_window(),
            held_output: 0,
            collected: 0,
            is_held_back: false,
            exemption: None,
            flush_left: None,
            until: Time::NEVER,
            send_watch: WindowWatch::NONE,
        }));
        self.step(self.children.len() - 1, io, first);
    }
}

/// Applies what `headers_received` has returned.
fn start_exchange<S: Server>(
    exchange: &mut Exchange<S>,
    next: Result<Option<Next<S>>, Panicked>,
    is_draining: bool,
    io: &mut Io<'_, '_, '_, S::Context>,
) -> ExchangeFlow<S> {
    match next {
        Ok(Some(next)) => {
            let flow = exchange.apply(Ok(next), io);
            flow.on_again(|| exchange.notify_earlier_drain(is_draining, io))
        }
        Err(panicked) => exchange.apply(Err(panicked), io),
        Ok(None) => {
            Counters::add(&io.config.counters_ref().refused);
            Flow::Fail(Status::NOT_IMPLEMENTED)
        }
    }
}

/// Returns the head once more, for the log.
fn head_for_log<'a>(
    list: &'a crate::h2::hpack::FieldList,
    request: &CheckedRequest,
) -> RequestHead<'a> {
    let method = request.method(list);
    let asterisk = crate::semantics::target::Target::parse(Method::Options, "*");
    let target = request.target(list).or(asterisk).expect("an asterisk is a target of OPTIONS");
    RequestHead::framed(method, target, list.fields())
}

fn expects_continue(request: &CheckedRequest, body: Body) -> bool {
    request.expects_continue && body != Body::Empty
}
