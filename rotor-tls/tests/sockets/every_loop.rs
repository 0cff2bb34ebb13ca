//! TLS on every loop: a server and its clients as machines of one loop.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Compose2, Config, Response, Scope, with_causes};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig,
    Transport,
};
use rotor_tls::{TlsClient, TlsListener, TlsServer, TlsSession, TlsStream};

use crate::kit::{Issuer, Log, RawClient};
use crate::loops::{ListenerOn, OnLoop, Rig, StreamOn, local, not_yet, on_every_loop};

/// The length of the text in bytes: many records, and more than any loop takes in one operation.
const LEN: usize = 1 << 20;

/// Bytes whose values depend on their position.
fn text() -> Vec<u8> {
    (0..LEN).map(|byte| (byte % 251) as u8).collect()
}

/// A server sends back what it receives. A client sends a mebibyte and logs whether it comes back.
enum Mirror {
    Server,
    Client,
}

/// Whether it is a client.
type IsClient = bool;

impl Protocol for Mirror {
    type Context = Log;
    type Seed = IsClient;

    fn config(_: &IsClient) -> Arc<StreamConfig> {
        // Neither end stops reading because its peer does not take its output.
        StreamConfig::new().input_max(2 * LEN).output_high_water(2 * LEN).share()
    }

    fn create(
        is_client: IsClient,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        if !is_client {
            return Intent::of(Mirror::Server).bytes(1).no_deadline();
        }
        let session = transport.session::<TlsSession>().expect("it has shaken hands");
        scope.push(format!("{:?}", session.version()));
        transport.output.push_block(text()).expect("it is open");
        Intent::of(Mirror::Client).bytes(LEN).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        if let Mirror::Server = self {
            transport.output.write_all(&transport.input[..]).expect("it is open");
            transport.input.clear();
            return Intent::of(self).keep().no_deadline();
        }
        let is_same = transport.input[..] == text();
        scope.push(if is_same { "the same" } else { "something else" }.into());
        Intent::done()
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(with_causes(&exception).to_string());
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {}", with_causes(&error)));
    }

    fn not_connected(_: IsClient, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("not connected: {}", with_causes(&error)));
    }
}

/// What a client logs about a connection without faults, and then the server.
const TALK: [&str; 3] = ["Tls13", "the same", "the peer has ended the stream"];

type Client<L> = Stream<Mirror, TlsStream<StreamOn<L>>>;
type Server<L> = Accept<Client<L>, TlsListener<ListenerOn<L>>>;
type Both<L> = Compose2<Server<L>, Client<L>>;

/// A server that listens at its own address.
fn serve<L: OnLoop>(tls: &TlsServer) -> (Rig<Both<L>, L>, SocketAddr) {
    let mut rig = Rig::<Both<L>, L>::new(&Config::new(), Log::new());
    let mut address = None;
    rig.add(|scope| {
        Response::attempt(|| {
            let listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope)?;
            address = listener.local_address();
            let listener = tls.over(listener);
            Ok(Accept::listen(listener, false, AcceptConfig::new(), scope).wrap(Compose2::A))
        })
    });
    (rig, address.expect("it is bound"))
}

fn connect<L: OnLoop>(rig: &mut Rig<Both<L>, L>, tls: &TlsClient, to: SocketAddr) {
    let target = tls.to(to, "localhost").expect("it is a name");
    rig.add(|scope| Client::<L>::connect(&target, true, scope).wrap(Compose2::B));
}

on_every_loop!(bytes_sent_over_tls_return_complete_and_the_end_is_reported);
fn bytes_sent_over_tls_return_complete_and_the_end_is_reported<L: OnLoop>() {
    let issuer = Issuer::new();
    let (mut rig, address) = serve::<L>(&issuer.server());
    let client = issuer.client();
    // The second client may resume the session of the first; its machine sees no difference.
    for count in [1, 2] {
        for _ in 0..count {
            connect(&mut rig, &client, address);
        }
        // Only the listener is left.
        rig.until(|rig| rig.machines() == 1);
        let got = rig.context(std::mem::take);
        let times = |line: &str| got.iter().filter(|noted| *noted == line).count();
        assert_eq!(TALK.map(times), [count; 3], "{got:?}");
        assert_eq!(got.len(), 3 * count, "{got:?}");
    }
}

on_every_loop!(a_client_that_does_not_know_the_issuer_reports_it_and_ends);
fn a_client_that_does_not_know_the_issuer_reports_it_and_ends<L: OnLoop>() {
    let (mut rig, address) = serve::<L>(&Issuer::new().server());
    connect(&mut rig, &Issuer::new().client(), address);
    rig.until(|rig| rig.context(|log| !log.is_empty()) && rig.machines() == 1);
    let got = rig.context(std::mem::take);
    assert!(got.iter().any(|line| line.contains("UnknownIssuer")), "{got:?}");
}

on_every_loop!(a_client_without_tls_ends_only_its_own_connection);
fn a_client_without_tls_ends_only_its_own_connection<L: OnLoop>() {
    let issuer = Issuer::new();
    let (mut rig, address) = serve::<L>(&issuer.server());
    let mut end = rig.connect(address);
    rig.send(&mut end, b"GET / HTTP/1.1\r\n\r\n").expect("there is room");
    // An alert and the end, or a reset if the server has not read the whole request.
    let (_alert, _reset) = rig.hear(&mut end, None);
    drop(end);
    rig.until(|rig| rig.machines() == 1);
    rig.context(Log::clear);
    connect(&mut rig, &issuer.client(), address);
    rig.until(|rig| rig.machines() == 1);
    assert_eq!(rig.context(|log| log.clone()), TALK);
}

on_every_loop!(a_bad_record_gets_an_alert_before_the_pending_response);
fn a_bad_record_gets_an_alert_before_the_pending_response<L: OnLoop>() {
    let issuer = Issuer::new();
    let (mut rig, address) = serve::<L>(&issuer.server());
    let mut end = rig.connect(address);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    let mut chunk = [0; 4096];
    rig.until(|rig| {
        rig.send(&mut end, &client.take_records()).expect("there is room");
        if let Some(count) = not_yet(end.read(&mut chunk)).expect("it is open") {
            client.receive(&chunk[..count]);
        }
        !client.tls.is_handshaking()
    });
    client.write(b"sent back");
    let first = client.take_records();
    client.write(b"changed on its way");
    let mut second = client.take_records();
    *second.last_mut().expect("it is not empty") ^= 1;
    rig.send(&mut end, &[first, second].concat()).expect("there is room");
    let (records, _end) = rig.hear(&mut end, None);
    client.receive(&records);
    let alert = rustls::AlertDescription::BadRecordMac;
    assert_eq!(client.failure, Some(rustls::Error::AlertReceived(alert)));
    rig.until(|rig| rig.machines() == 1);
}
