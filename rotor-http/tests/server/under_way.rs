//! `is_under_way` in a handler and in code around it: it is false while the response can still be
//! replaced.

use rotor_core::{Deadline, Time};
use rotor_http::Status;
use rotor_http::Trailers;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::http2::client::{config, data, headers, preface_and_settings};
use crate::probe::post;

/// Begins its response with the head of the request, and records in each call whether it is under
/// way.
struct ProgressRecorder;

type Sc<'a, 'b> = &'a mut Scope<'b, Vec<bool>>;

impl Server for ProgressRecorder {
    type Context = Vec<bool>;
    type Seed = ();
    type Upgrade = NoUpgrade<Vec<bool>>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        response.status(Status::OK).expect("the first");
        response.add_length(2).and_then(|()| response.done_headers()).expect("it has a length");
        scope.push(response.is_under_way());
        Next::recv(ProgressRecorder, RecvMode::Progressive(1)).keep_deadline()
    }

    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        response.write_body(chunk).expect("it is as long as it says");
        scope.push(response.with_fields(&[], |response| response.is_under_way()));
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        response.done().expect("it is whole");
        scope.push(response.is_under_way());
        Next::finished()
    }
}

fn driver(config: ServerConfig) -> Driver<Connection<ProgressRecorder>> {
    Driver::new(HttpSeed::new((), config), Vec::new())
}

#[test]
fn a_response_is_under_way_once_a_part_of_it_was_sent() {
    let request = post("/", "hi");
    let (head, body) = request.split_at(request.len() - 2);
    for (pieces, has_room, expected) in [
        (&[&request[..]][..], true, [false, false, false]),
        (&[head, body], true, [false, true, true]),
        (&[head, body], false, [false, false, false]),
    ] {
        let mut driver = driver(ServerConfig::new());
        if !has_room {
            driver.limit_room(0);
        }
        pieces.iter().for_each(|piece| driver.send(piece));
        assert_eq!(driver.context()[..], expected, "{} {has_room}", pieces.len());
    }
}

#[test]
fn a_response_on_a_stream_is_under_way_once_its_head_was_sent() {
    let head = headers(1, "POST", "/", &[("content-length", "2")], false);
    let body = data(1, b"hi", true);
    let whole = [&head[..], &body].concat();
    for (pieces, expected) in
        [(&[&head[..], &body][..], [false, true, true]), (&[&whole], [false, false, false])]
    {
        let mut driver = driver(config());
        driver.send(&preface_and_settings(&[]));
        pieces.iter().for_each(|piece| driver.send(piece));
        assert_eq!(driver.context()[..], expected, "{}", pieces.len());
    }
}

#[test]
fn next_reports_whether_the_handler_goes_on() {
    for (next, expected) in [
        (Next::<ProgressRecorder>::finished(), false),
        (Next::fail(Status::BAD_GATEWAY), false),
        (Next::go_on(ProgressRecorder).keep_deadline(), true),
        (Next::hold(ProgressRecorder).no_deadline(), true),
        (Next::recv(ProgressRecorder, RecvMode::Blocks).with(Deadline::Never), true),
        (Next::wake_at(ProgressRecorder, Time::ZERO), true),
        (Next::after(Time::ZERO, |_, _| Next::finished()), true),
    ] {
        assert_eq!(next.goes_on(), expected, "{next:?}");
    }
}
