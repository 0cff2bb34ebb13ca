//! `Routed`, `rotor_routes!` and `Next::map`: a wrapped handler gets the same calls as without the
//! wrapper.

use std::io::Write;

use rotor_core::{Description, Machine, Scope, Time};
use rotor_http::h2::frame::{FrameHeader, kind};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Route, Routed, Server,
    ServerConfig, WithUpgrade,
};
use rotor_http::{BodyError, Method, Status, Trailers, rotor_routes};
use rotor_stream::testing::Driver;
use rotor_stream::{Block, Intent, Matched, Protocol, Transport};

use crate::http2::client as http2;
use crate::probe::{get, request, seconds};
use crate::wire::transcript;

/// Records each call in the context, with its own number.
struct RecordingServer<const N: u8>;

type Context = Vec<String>;
type Sc<'a, 'b> = &'a mut Scope<'b, Context>;

impl<const N: u8> RecordingServer<N> {
    fn answer(what: &str, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push(format!("{N} {what}"));
        response.send(Status::OK, "text/plain", what.as_bytes()).expect("the first answer");
        Next::finished()
    }
}

impl<const N: u8> Server for RecordingServer<N> {
    type Context = Context;
    type Seed = u8;
    type Upgrade = NoUpgrade<Context>;

    fn supports(method: Method<'_>) -> bool {
        method != Method::Patch && (N == 1 || method != Method::Delete)
    }

    fn headers_received(
        seed: u8,
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        assert_eq!(seed, N, "each gets its own seed");
        scope.push(format!("{N} {}", head.path()));
        let next = match &head.path()[2..] {
            "whole" => Next::recv(RecordingServer, RecvMode::Buffered(100)),
            "pieces" => Next::recv(RecordingServer, RecvMode::Progressive(1)),
            "blocks" => Next::recv(RecordingServer, RecvMode::Blocks),
            "alarm" => return Next::go_on(RecordingServer).deadline(scope.now() + seconds(3)),
            _ => Next::go_on(RecordingServer),
        };
        next.keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        Self::answer(&format!("whole {}", body.len()), response, scope)
    }

    fn request_chunk(self, chunk: &[u8], _: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push(format!("{N} chunk {}", chunk.len()));
        Next::go_on(self).keep_deadline()
    }

    fn request_block(self, block: Block, _: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push(format!("{N} block {}", block.len()));
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        response
            .status(Status::OK)
            .and_then(|()| response.add_length(9))
            .expect("an answer begins");
        response
            .done_headers()
            .and_then(|()| response.write_body("12345678"))
            .expect("all but one octet");
        scope.push(format!("{N} end {}", trailers.iter().count()));
        Next::go_on(self).keep_deadline()
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push(format!("{N} flushed"));
        response.write_body("9").and_then(|()| response.done()).expect("the last octet");
        Next::finished()
    }

    fn timeout(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("timeout", response, scope)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("wakeup", response, scope)
    }

    fn draining(self, _: Time, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("draining", response, scope)
    }

    /// Only the second server sets it; the route has to set it for both.
    const HEARS_END: bool = N == 2;

    fn peer_ended(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("peer ended", response, scope)
    }

    fn bad_request(self, error: BodyError, scope: Sc<'_, '_>) {
        scope.push(format!("{N} bad {error:?}"));
    }

    fn describe(&self, to: &mut Description) {
        to.set_state(if N == 1 { "one" } else { "two" });
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        response.send(status, "text/plain", &[b'0' + N]).expect("the first answer");
    }
}

struct ByDigit;

impl Route for ByDigit {
    type First = RecordingServer<1>;
    /// The second server is in a wrapper, which has to pass on every call as well.
    type Second = WithUpgrade<RecordingServer<2>, NoUpgrade<Context>>;

    fn is_first(head: &Head<'_>) -> bool {
        head.path().starts_with("/1")
    }
}

fn is_for_one(head: &Head<'_>, _: &u8) -> bool {
    head.path().starts_with("/1")
}

rotor_routes! {
    /// The same servers, and one more.
    server ByName / ByNameSeed <Context> {
        one(RecordingServer<1>) if is_for_one,
        // A condition may use the seed of its part.
        two(WithUpgrade<RecordingServer<2>, NoUpgrade<Context>>)
            if |head, two| head.path().as_bytes()[1] == b'0' + two,
        three(RecordingServer<3>) if |head, _| head.path().starts_with("/3"),
    }
}

/// A server that consists of these servers.
trait Combined: Server<Context = Context> + 'static {
    fn seed() -> Self::Seed;
}

impl Combined for Routed<ByDigit> {
    fn seed() -> (u8, u8) {
        (1, 2)
    }
}

impl Combined for ByName {
    fn seed() -> ByNameSeed {
        ByNameSeed { one: 1, two: 2, three: 3 }
    }
}

type Both<S> = Driver<Connection<S>>;

fn both<S: Combined>() -> Both<S> {
    Driver::new(HttpSeed::new(S::seed(), ServerConfig::new()), Context::new())
}

/// Makes a test of each form of combination of the functions.
macro_rules! in_both_forms {
    ($($name:ident;)+) => {
        mod by_route {
            $(
                #[test]
                fn $name() {
                    super::$name::<super::Routed<super::ByDigit>>();
                }
            )+
        }
        mod by_macro {
            $(
                #[test]
                fn $name() {
                    super::$name::<super::ByName>();
                }
            )+
        }
    };
}

in_both_forms! {
    a_handler_of_either_server_gets_every_call;
    a_handler_of_either_server_describes_itself;
    a_half_close_after_a_request_is_reported_once;
    a_method_supported_only_by_the_other_server_is_refused;
    an_unsupported_method_of_a_route_keeps_the_http2_connection;
}

fn check<S: Combined>(
    number: u8,
    path: &str,
    act: impl FnOnce(&mut Both<S>),
    events: &[&str],
    answers: &str,
) {
    let mut driver = both::<S>();
    let start = format!("POST /{number}{path}");
    driver.send(&request(&start, "Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n"));
    act(&mut driver);
    let mut expected = vec![format!("{number} /{number}{path}")];
    expected.extend(events.iter().map(|event| format!("{number} {event}")));
    assert_eq!(*driver.context(), expected, "{start}");
    assert_eq!(transcript(&driver.take_received()), answers, "{start}");
    assert_eq!(driver.failures(), [""; 0], "{start}");
}

fn a_handler_of_either_server_gets_every_call<S: Combined>() {
    for number in [1, 2] {
        let end = b"0\r\nX: y\r\n\r\n";
        check::<S>(number, "whole", |driver| driver.send(end), &["whole 2"], "200 whole 2");
        check::<S>(
            number,
            "pieces",
            |driver| driver.send(end),
            &["chunk 2", "end 1", "flushed"],
            "200 123456789",
        );
        check::<S>(
            number,
            "blocks",
            |driver| driver.send(end),
            &["block 2", "end 1", "flushed"],
            "200 123456789",
        );
        check::<S>(
            number,
            "alarm",
            |driver| driver.advance(seconds(3)),
            &["timeout"],
            "200 timeout",
        );
        check::<S>(number, "wait", |driver| driver.wakeup(), &["wakeup"], "200 wakeup");
        check::<S>(
            number,
            "wait",
            |driver| driver.drain(seconds(9)),
            &["draining"],
            "200 draining close",
        );
        check::<S>(number, "whole", |driver| driver.end(), &["bad Truncated"], "400 close");
    }
}

fn a_handler_of_either_server_describes_itself<S: Combined>() {
    for (path, expected) in [("/1wait", "one"), ("/2wait", "two")] {
        let mut driver = both::<S>();
        driver.send(&get(path));
        let (_, machine) = driver.test().instance().machines().iter().next().expect("one");
        let mut description = Description::new();
        machine.describe(&mut description);
        assert_eq!(description.state(), expected);
    }
}

fn a_half_close_after_a_request_is_reported_once<S: Combined>() {
    for number in [1, 2] {
        let mut driver = both::<S>();
        driver.send(&get(&format!("/{number}wait")));
        driver.end();
        assert_eq!(transcript(&driver.take_received()), "200 peer ended", "{number}");
        assert_eq!(driver.context()[1..], [format!("{number} peer ended")]);
        assert_eq!((driver.is_ended(), driver.failures()), (true, vec![]), "{number}");
    }
    // If another request is buffered, the half-close is not looked for; that request is answered in
    // its turn.
    let mut driver = both::<S>();
    driver.send(&[get("/1wait"), get("/2wait")].concat());
    driver.end();
    assert_eq!(transcript(&driver.take_received()), "");
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 wakeup | 200 peer ended");
}

fn a_method_supported_only_by_the_other_server_is_refused<S: Combined>() {
    for (start, expected) in
        [("DELETE /1wait", ""), ("DELETE /2wait", "501 close"), ("PATCH /1wait", "501 close")]
    {
        let mut driver = both::<S>();
        driver.send(&[request(start, "", ""), get("/2wait")].concat());
        assert_eq!(transcript(&driver.take_received()), expected, "{start}");
        assert_eq!(driver.context().len(), usize::from(expected.is_empty()), "{start}");
    }
}

/// On HTTP/2, an unsupported method on one stream must not end the other streams.
fn an_unsupported_method_of_a_route_keeps_the_http2_connection<S: Combined>() {
    let seed = HttpSeed::new(S::seed(), http2::config());
    let mut driver: Both<S> = Driver::new(seed, Context::new());
    let refused = http2::headers(1, "DELETE", "/2wait", &[], true);
    driver.send(&[http2::preface_and_settings(&[]), refused].concat());
    let received = driver.take_received();
    let (mut rest, mut kinds) = (&received[..], Vec::new());
    while let Some(header) = FrameHeader::read(rest) {
        kinds.push(header.kind);
        rest = &rest[9 + header.len..];
    }
    assert!(kinds.contains(&kind::HEADERS) && !kinds.contains(&kind::GOAWAY), "{kinds:?}");
}

/// Another protocol: it echoes each byte.
struct Mirror;

impl Protocol for Mirror {
    type Context = Context;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        Intent::of(Mirror).bytes(1).no_deadline()
    }

    fn bytes_read(self, _: Matched, transport: &mut Transport<'_>, _: Sc<'_, '_>) -> Intent<Self> {
        transport.output.write_all(&transport.input[..]).expect("the output is open");
        transport.input.clear();
        Intent::of(self).keep().keep_deadline()
    }
}

/// Upgrades every request.
struct UpgradingServer;

impl Server for UpgradingServer {
    type Context = Context;
    type Seed = ();
    type Upgrade = Mirror;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: Sc<'_, '_>,
    ) -> Next<Self> {
        let switched = response
            .status(Status::SWITCHING_PROTOCOLS)
            .and_then(|()| response.add_header("Upgrade", "mirror"))
            .and_then(|()| response.done_headers())
            .and_then(|()| response.done());
        switched.expect("it is asked for");
        Next::upgrade(())
    }
}

struct PagesOrUpgrade;

impl Route for PagesOrUpgrade {
    type First = WithUpgrade<RecordingServer<1>, Mirror>;
    type Second = UpgradingServer;

    fn is_first(head: &Head<'_>) -> bool {
        head.path() != "/door"
    }
}

#[test]
fn servers_with_and_without_an_upgrade_can_be_combined() {
    let seed = HttpSeed::<Routed<PagesOrUpgrade>>::new((1, ()), ServerConfig::new());
    let mut driver = Driver::<Connection<Routed<PagesOrUpgrade>>>::new(seed, Context::new());
    driver.send(&get("/1wait"));
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 wakeup");
    let offer = "Connection: upgrade\r\nUpgrade: mirror\r\n";
    driver.send(&request("GET /door", offer, "hello"));
    let answer = driver.take_received();
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", answer.escape_ascii());
    assert!(answer.ends_with(b"\r\n\r\nhello"), "{}", answer.escape_ascii());
    assert_eq!(driver.failures(), [""; 0]);
    // The error page is that of the inner server.
    let seed = HttpSeed::<Routed<PagesOrUpgrade>>::new((1, ()), ServerConfig::new());
    let mut driver = Driver::<Connection<Routed<PagesOrUpgrade>>>::new(seed, Context::new());
    driver.send(b"nonsense\r\n\r\n");
    assert!(driver.take_received().ends_with(b"\r\n\r\n1"), "as `RecordingServer<1>` has it");
}

#[test]
fn a_request_goes_to_the_first_part_whose_condition_it_meets_or_gets_404() {
    let mut driver = both::<ByName>();
    driver.send(&get("/3wait"));
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 wakeup");
    assert_eq!(driver.context()[..], ["3 /3wait", "3 wakeup"]);
    driver.send(&get("/4wait"));
    // The first server writes the page, and the connection goes on.
    let received = driver.take_received();
    assert_eq!(transcript(&received), "404");
    assert!(received.ends_with(b"\r\n\r\n1"), "{}", received.escape_ascii());
    driver.send(&get("/1wait"));
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 wakeup");
}

/// A server that any context can have.
struct AnyContext<C>(std::marker::PhantomData<fn(C)>);

impl<C> Server for AnyContext<C> {
    type Context = C;
    type Seed = &'static str;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        text: &'static str,
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        response.reply(Status::OK, "text/plain", text.as_bytes()).into()
    }
}

rotor_routes! {
    server OfAnyContext / OfAnyContextSeed <C> where [C: 'static] {
        left(AnyContext<C>) if |head, _| head.path() == "/left",
        right(AnyContext<C>),
    }
}

rotor_routes! {
    server WithAnother<S: Combined> / WithAnotherSeed <Context>
    where [S: Server<Upgrade = NoUpgrade<Context>>] {
        own(AnyContext<Context>) if |head, _| head.path() == "/own",
        other(S),
    }
}

#[test]
fn a_combined_server_may_be_generic() {
    let seed = OfAnyContextSeed { left: "l", right: "r" };
    let seed = HttpSeed::<OfAnyContext<u8>>::new(seed, ServerConfig::new());
    let mut driver = Driver::<Connection<OfAnyContext<u8>>>::new(seed, 7);
    driver.send(&[get("/left"), get("/")].concat());
    assert_eq!(transcript(&driver.take_received()), "200 l | 200 r");
    let seed = WithAnotherSeed { own: "o", other: ByName::seed() };
    let seed = HttpSeed::<WithAnother<ByName>>::new(seed, ServerConfig::new());
    let mut driver = Driver::<Connection<WithAnother<ByName>>>::new(seed, Context::new());
    driver.send(&get("/own"));
    driver.send(&get("/1wait"));
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 o | 200 wakeup");
}
