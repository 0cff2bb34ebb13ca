//! How much memory connections hold, and how long they may take.

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::{Issuer, Lines, Log, REPORT_UNSENT, RawClient, Test, add_server, connected};
use rotor_core::Scope;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_stream::{
    BytesHeld, Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport,
};
use rotor_tls::{TlsServer, TlsStream};

/// `Lines`, with a limit on the bytes that all its streams hold together.
struct Bounded;

impl Protocol for Bounded {
    type Context = Log;
    type Seed = Arc<BytesHeld>;

    fn config(held: &Arc<BytesHeld>) -> Arc<StreamConfig> {
        StreamConfig::new().held(Some(held.clone())).share()
    }

    fn create(
        _: Arc<BytesHeld>,
        t: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let _ = Lines::create(None, t, scope);
        Intent::of(Bounded).delimiter(b"\n", 1 << 20).no_deadline()
    }

    fn bytes_read(
        self,
        matched: Matched,
        t: &mut Transport<'_>,
        _: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        matched.consume(t.input);
        Intent::of(self).keep().no_deadline()
    }

    fn exception(
        self,
        error: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(error.to_string());
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(error.to_string());
    }

    fn not_connected(_: Arc<BytesHeld>, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("not connected: {error}"));
    }
}

type BoundedLoop = BoundedOn<false>;
type BoundedOn<const D: bool> = TestLoop<Stream<Bounded, TlsStream<Scripted<D>>>>;

fn serve_bounded<const D: bool>(
    test: &mut BoundedOn<D>,
    tls: &TlsServer,
    held: &Arc<BytesHeld>,
) -> Peer {
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(tls.wrap(socket), held.clone(), scope));
    peer
}

#[test]
fn bytes_of_handshakes_and_partial_records_count_in_the_total() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let held = BytesHeld::new(100_000);
    let mut test = BoundedLoop::new(Log::new());
    // Part of a hello.
    let peer = serve_bounded(&mut test, &server, &held);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    let hello = client.take_records();
    peer.send(&hello[..100]);
    test.settle();
    assert!((100..1024).contains(&held.bytes()), "about what has come: {}", held.bytes());
    peer.send(&hello[100..]);
    test.settle();
    client.receive(&peer.take_received());
    peer.send(&client.take_records());
    test.settle();
    assert_eq!(held.bytes(), 0, "a connection that waits holds nothing");

    // Part of a record, which waits for the rest.
    client.write(&[b'x'; 16_000]);
    let record = client.take_records();
    peer.send(&record[..15_000]);
    test.settle();
    assert!((15_000..40_000).contains(&held.bytes()), "{}", held.bytes());
    peer.send(&record[15_000..]);
    test.settle();
    // Held for the incomplete line.
    assert!((16_000..40_000).contains(&held.bytes()), "{}", held.bytes());
    drop(client);
    peer.reset();
    test.settle();
    assert_eq!(held.bytes(), 0);
}

/// Also on a socket where a short read spares the read that would find nothing.
#[test]
fn a_few_bytes_of_a_record_do_not_hold_a_block() {
    let issuer = Issuer::new();
    let held = BytesHeld::new(1_000_000);
    let mut test = BoundedOn::<true>::new(Log::new());
    let peer = serve_bounded(&mut test, &issuer.server(), &held);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    client.talk(&mut test, &peer);
    for lines in [1, 30_000] {
        client.tls.set_buffer_limit(None);
        client.write(&b"a\n".repeat(lines));
        let whole = client.take_records();
        client.write(b"b\n");
        let next = client.take_records();
        peer.send(&[&whole, &next[..3]].concat());
        test.settle();
        assert!((3..1024).contains(&held.bytes()), "{lines} lines: {}", held.bytes());
        peer.send(&next[3..]);
        test.settle();
        assert_eq!(held.bytes(), 0);
    }
}

#[test]
fn a_handshake_beyond_the_memory_limit_ends() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let held = BytesHeld::new(300);
    let mut test = BoundedLoop::new(Log::new());
    let peers = [(); 2].map(|()| {
        let peer = serve_bounded(&mut test, &server, &held);
        let hello = RawClient::new(issuer.raw_config(), "localhost").take_records();
        peer.send(&hello[..190]);
        test.settle();
        peer
    });
    assert_eq!(peers.map(|peer| peer.is_dropped()), [false, true]);
    assert_eq!(
        *test.context(),
        ["not connected: all streams together have reached their limit of memory"]
    );
    assert_eq!(server.counters().late(), 1);
}

/// A server with a long line to send back, and a peer that has taken none of it yet.
fn peer_with_long_response(test: &mut Test) -> (Peer, RawClient) {
    let issuer = Issuer::new();
    let (peer, mut client) = connected(test, &issuer.server(), issuer.raw_config());
    peer.limit_room(0);
    client.write(&[&[b'x'; 50_000][..], b"\n"].concat());
    peer.send(&client.take_records());
    test.settle();
    (peer, client)
}

#[test]
fn a_slow_peer_that_takes_encrypted_bytes_does_not_time_out() {
    let mut test = Test::new(Log::new());
    let (peer, mut client) = peer_with_long_response(&mut test);
    // All of it is encrypted in one step, and taken over a minute.
    for _ in 0..30 {
        peer.make_room(2000);
        test.advance(Duration::from_secs(2));
        client.receive(&peer.take_received());
    }
    assert_eq!(client.plain.len(), 50_001, "{:?}", test.context());

    let mut test = Test::new(Log::new());
    let (peer, _) = peer_with_long_response(&mut test);
    test.advance(Duration::from_secs(31));
    assert_eq!(*test.context(), ["fatal: the peer does not read what is sent to it"]);
    assert!(peer.is_dropped());
}

#[test]
fn the_unsent_length_counts_encrypted_bytes() {
    let mut test = Test::new(Log::new());
    let (peer, mut client) = peer_with_long_response(&mut test);
    let mut waits = |room| {
        peer.make_room(room);
        test.settle();
        client.write(REPORT_UNSENT);
        peer.send(&client.take_records());
        test.settle();
        test.context_mut().pop().and_then(|noted| noted.parse::<usize>().ok()).expect("a count")
    };
    let all = waits(0);
    assert!((50_001..51_000).contains(&all), "the answer in records: {all}");
    assert_eq!((waits(2_000), waits(1), waits(60_000)), (all - 2_000, all - 2_001, 0));
}

#[test]
fn a_handshake_times_out_even_with_an_active_peer() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    let hello = RawClient::new(issuer.raw_config(), "localhost").take_records();
    for byte in hello.chunks(1).take(9) {
        peer.send(byte);
        test.advance(Duration::from_secs(1));
        assert!(!peer.is_dropped());
    }
    test.advance(Duration::from_secs(2));
    assert!(peer.is_ended());
    assert_eq!(*test.context(), ["the handshake took too long"]);
    assert_eq!((server.counters().late(), server.counters().handshakes_now()), (1, 0));
}

#[test]
fn a_new_stream_takes_little_memory() {
    assert!(size_of::<TlsStream<()>>() <= 64, "{}", size_of::<TlsStream<()>>());
}

/// How many bytes each turn takes, of records with `record_bytes` bytes of data each.
fn bytes_taken_per_turn(record_bytes: usize) -> Vec<usize> {
    let issuer = Issuer::new();
    let mut test = Test::new(Log::new());
    let (peer, mut client) = connected(&mut test, &issuer.server(), issuer.raw_config());
    for _ in 0..(1 << 20) / (record_bytes + 22) {
        client.write(&vec![b'x'; record_bytes]);
    }
    peer.send(&client.take_records());
    let (mut unread, mut taken) = (peer.unread_len(), Vec::new());
    while unread > 0 {
        test.turn();
        taken.push(unread - peer.unread_len());
        unread = peer.unread_len();
    }
    taken
}

/// HTTP's small frames make such records. A record counts with all its bytes, not only with its
/// data.
#[test]
fn small_records_get_the_same_share_of_a_turn_as_long_ones() {
    let (small, long) = (bytes_taken_per_turn(1), bytes_taken_per_turn(16_000));
    // The share of a turn, which the last read may exceed.
    assert!(small.iter().all(|taken| *taken <= 256 * 1024), "{small:?}");
    assert!(long.len() <= 17, "a share has four records: {long:?}");
}
