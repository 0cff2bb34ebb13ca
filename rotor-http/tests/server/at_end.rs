//! Values that are returned at the end of one request, or of the protocol that a connection
//! switches to.

use rotor_core::{ReturnOnDrop, Scope};
use rotor_http::Status;
use rotor_http::server::{Connection, Head, HttpSeed, Next, Response, Server, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_stream::{Exception, Intent, Matched, Protocol, Transport};

/// The last words of the handlers that have ended, in order.
type Ends = Vec<&'static str>;

/// A handler of one request. It does what its path says.
struct Site(#[expect(dead_code, reason = "it is dropped")] ReturnOnDrop<&'static str, Ends>);

/// The protocol that a connection switches to. Its `ReturnOnDrop` comes in the seed, like that of a
/// member of a room.
struct Guest(ReturnOnDrop<&'static str, Ends>);

impl Server for Site {
    type Context = Ends;
    type Seed = ();
    type Upgrade = Guest;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Ends>,
    ) -> Next<Self> {
        let request = scope.at_end("request", Ends::push);
        match head.path() {
            "/panic" => panic!("as it was asked to"),
            "/up" => {
                response
                    .status(Status::SWITCHING_PROTOCOLS)
                    .and_then(|()| response.add_header("Upgrade", "guest"))
                    .and_then(|()| response.done_headers())
                    .and_then(|()| response.done())
                    .expect("a switch");
                Next::upgrade(scope.at_end("guest", Ends::push))
            }
            "/wait" => Next::go_on(Site(request)).no_deadline(),
            _ => response.reply(Status::OK, "text/plain", b"here").into(),
        }
    }
}

impl Protocol for Guest {
    type Context = Ends;
    type Seed = ReturnOnDrop<&'static str, Ends>;

    fn create(seed: Self::Seed, _: &mut Transport<'_>, _: &mut Scope<'_, Ends>) -> Intent<Self> {
        Intent::of(Guest(seed)).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Ends>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn exception(
        mut self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Ends>,
    ) -> Intent<Self> {
        *self.0 = "guest, who hung up";
        Intent::done()
    }
}

fn driver() -> Driver<Connection<Site>> {
    Driver::new(HttpSeed::new((), ServerConfig::new()), Ends::new())
}

fn request(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

#[test]
fn each_request_ends_separately_on_a_persistent_connection() {
    let mut driver = driver();
    driver.send(&request("/", ""));
    driver.send(&request("/", ""));
    assert_eq!(driver.context(), &["request"; 2]);
    assert!(driver.is_alive());
}

#[test]
fn requests_end_when_their_handler_panics_or_their_peer_disconnects() {
    let mut panics = driver();
    panics.send(&request("/panic", ""));
    assert_eq!(panics.context(), &["request"]);
    let mut gone = driver();
    gone.send(&request("/wait", ""));
    assert_eq!(gone.context(), &[""; 0]);
    gone.reset();
    assert_eq!(gone.context(), &["request"]);
}

#[test]
fn an_upgrade_ends_the_request_and_the_new_protocol_lives_on() {
    let mut driver = driver();
    driver.send(&request("/up", "Upgrade: guest\r\nConnection: upgrade\r\n"));
    assert_eq!(driver.context(), &["request"]);
    driver.end();
    assert_eq!(driver.context(), &["request", "guest, who hung up"]);
}
