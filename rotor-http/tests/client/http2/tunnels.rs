//! Other protocols on a stream (RFC 8441).

use rotor_core::{Cursor, Verdict};
use rotor_http::Limits;
use rotor_http::client::ClientConfig;
use rotor_http::h2::frame_writer::settings_ack;

use super::server::{Server, block, data, frame, go_away, headers, http2, page, reset, settings};
use crate::probe::{Probe, seconds};

const OK: &[(&str, &str)] = &[(":status", "200")];

fn upgrade_request(protocol: &'static str) -> Probe {
    Probe { upgrade: Some(protocol), ..Probe::get("/up") }
}

/// A server that allows extended CONNECT, and a client with these requests.
fn server_with_extended_connect(plans: impl IntoIterator<Item = Probe>) -> Server {
    Server::of(ClientConfig::new().http2(http2()), &[(8, 1)], plans)
}

/// A server whose stream 1 has switched to the protocol.
fn established_tunnel() -> Server {
    let mut server = server_with_extended_connect([upgrade_request("shout")]);
    server.send(&headers(1, OK, false));
    assert_eq!(server.outcome(0), "switched");
    server
}

fn events(server: &Server) -> Vec<&str> {
    let all = server.driver.context().events.iter();
    all.map(String::as_str).skip_while(|event| *event != "shouts").collect()
}

/// The connection still works.
fn assert_connection_works(server: &mut Server) {
    server.add_request(Probe::get("/after"));
    let stream = *server.requests.keys().last().expect("it was asked");
    server.send(&page(stream, "well"));
    let last = server.outcomes.len() - 1;
    assert_eq!(server.outcome(last), "200 well");
    assert!(server.goaways.is_empty());
}

#[test]
fn an_upgrade_is_an_extended_connect_where_the_server_offers_it() {
    let mut server = Server::silent(ClientConfig::new().http2(http2()), [upgrade_request("shout")]);
    assert!(server.request_lines().is_empty(), "it waits for the settings");
    server.offers_protocols = true;
    server.send(&[settings(&[(8, 1)]), settings_ack().to_vec()].concat());
    assert_eq!(server.request_lines(), ["CONNECT http h /up"]);
    let request = &server.requests[&1];
    assert_eq!(request.fields, [(":protocol".into(), "shout".into())]);
    assert!(!request.is_whole, "our side stays open");
    server.add_request(Probe::get("/"));
    server.send(&headers(1, OK, false));
    assert_eq!(server.outcome(0), "switched");
    server.send(&page(3, "three"));
    assert_eq!(server.outcome(1), "200 three");
    server.send(&[data(1, b"ab", false), data(1, b"c", false)].concat());
    assert_eq!(server.requests[&1].body, b"ABC");
    assert_connection_works(&mut server);
}

#[test]
fn an_upgrade_without_an_offer_or_single_protocol_is_a_plain_get() {
    for (pairs, protocol) in [(&[][..], "shout"), (&[(8, 0)], "shout"), (&[(8, 1)], "shout, roar")]
    {
        let mut server =
            Server::of(ClientConfig::new().http2(http2()), pairs, [upgrade_request(protocol)]);
        assert_eq!(server.request_lines(), ["GET http h /up"]);
        assert!(server.requests[&1].is_whole);
        server.send(&page(1, "a page"));
        assert_eq!(server.outcome(0), "200 a page");
    }
}

#[test]
fn each_response_to_an_upgrade_request_ends_its_stream_cleanly() {
    for status in ["101", "200", "404", "501"] {
        let mut server = server_with_extended_connect([upgrade_request("shout")]);
        let fields = [(":status", status)];
        match status {
            // 101 is not a status of HTTP/2.
            "101" => {
                server.send(&headers(1, &fields, false));
                assert_eq!(server.outcome(0), "Peer: Head(UnexpectedSwitch)");
                assert_eq!(server.requests[&1].reset, Some(1));
            }
            "200" => {
                server.send(&headers(1, &fields, true));
                assert_eq!(server.outcome(0), "switched");
                assert_eq!(events(&server), ["shouts", "shouted"]);
                assert!(server.requests[&1].is_whole);
            }
            _ => {
                server.send(&headers(1, &fields, false));
                server.send(&data(1, b"no", true));
                assert_eq!(server.outcome(0), format!("{status} no"));
                assert!(server.requests[&1].is_whole && server.requests[&1].reset.is_none());
            }
        }
        assert_connection_works(&mut server);
    }
}

#[test]
fn a_content_length_on_a_tunnel_is_ignored() {
    let mut server = server_with_extended_connect([upgrade_request("shout")]);
    server.send(&headers(1, &[(":status", "200"), ("content-length", "3")], false));
    server.send(&data(1, b"abcdef", false));
    assert_eq!(server.requests[&1].body, b"ABCDEF");
}

#[test]
fn the_end_of_a_protocol_is_the_end_of_its_stream() {
    // First the end of the client's protocol, then that of the server.
    let mut server = established_tunnel();
    server.send(&data(1, b".", false));
    assert!(server.requests[&1].is_whole && server.requests[&1].reset.is_none());
    server.send(&data(1, b"dropped", true));
    assert_eq!((&server.requests[&1].body[..], server.requests[&1].reset), (&b"."[..], None));
    assert_connection_works(&mut server);
    // First the end of the server.
    let mut server = established_tunnel();
    server.send(&data(1, b"a", true));
    assert!(server.requests[&1].is_whole);
    assert_eq!(events(&server), ["shouts", "shouted"]);
    assert_connection_works(&mut server);
    // A server that continues forever.
    let mut server = established_tunnel();
    server.send(&data(1, b".", false));
    for _ in 0..60 {
        server.send(&data(1, b"x", false));
        server.driver.advance(seconds(1));
        server.read();
        if server.requests[&1].reset.is_some() {
            break;
        }
    }
    assert_eq!(server.requests[&1].reset, Some(8));
    assert_connection_works(&mut server);
    // A panic.
    let mut server = established_tunnel();
    server.send(&data(1, b"!", false));
    assert_eq!(server.requests[&1].reset, Some(2));
    assert_connection_works(&mut server);
    // A reset.
    let mut server = established_tunnel();
    server.send(&reset(1, 8));
    assert_eq!(events(&server), ["shouts", "shout: the connection broke"]);
    assert_connection_works(&mut server);
    // A trailer section.
    let mut server = established_tunnel();
    server.send(&frame(1, 5, 1, &block(&[("x", "y")])));
    assert_eq!(server.requests[&1].reset, Some(1));
    assert_connection_works(&mut server);
}

#[test]
fn a_reset_after_end_stream_discards_pending_output() {
    let mut server = Server::of(
        ClientConfig::new().http2(http2()),
        &[(8, 1), (4, 1)],
        [upgrade_request("shout")],
    );
    server.send(&headers(1, OK, false));
    server.send(&data(1, b"abc", true));
    server.send(&reset(1, 8));
    server.grant_window(1, 100);
    assert_eq!((&server.requests[&1].body[..], server.requests[&1].is_whole), (&b"A"[..], false));
    assert_connection_works(&mut server);
}

#[test]
fn the_protocol_is_notified_of_the_end_of_the_connection() {
    let mut server = established_tunnel();
    server.driver.reset();
    server.driver.settle();
    assert_eq!(events(&server), ["shouts", "shout: the connection broke"]);
    let mut server = established_tunnel();
    server.send(&frame(0, 0, 2, b"x"));
    assert_eq!(server.end(), Some(1));
    assert_eq!(events(&server), ["shouts", "shout: the connection broke"]);
    let mut server = established_tunnel();
    server.driver.end();
    server.read();
    assert_eq!(events(&server), ["shouts", "shouted"], "cut short");
    // A server that accepts no more requests continues the streams that are open.
    let mut server = established_tunnel();
    server.send(&go_away(1, 0));
    server.send(&data(1, b"still", false));
    assert_eq!(server.requests[&1].body, b"STILL");
    server.send(&data(1, b".", true));
    assert_eq!(server.end(), Some(0));
    let mut server = established_tunnel();
    server.driver.drain(seconds(30));
    server.read();
    assert_eq!((&server.requests[&1].body[..], server.requests[&1].is_whole), (&b"BYE"[..], true));
}

#[test]
fn a_protocol_that_holds_gets_what_had_arrived_before_the_loss_of_its_stream() {
    type Loss = fn(&mut Server);
    let losses: [(&str, Loss, bool); 9] = [
        ("RST_STREAM", |server| server.send(&reset(1, 8)), true),
        ("refused", |server| server.send(&reset(1, 7)), true),
        ("HTTP/1.1 required", |server| server.send(&reset(1, 13)), true),
        ("trailers", |server| server.send(&frame(1, 5, 1, &block(&[("x", "y")]))), true),
        ("GOAWAY", |server| server.send(&go_away(0, 0)), false),
        ("reset", |server| server.driver.reset(), false),
        (
            "failed write",
            |server| {
                server.driver.fail_writes(std::io::ErrorKind::BrokenPipe);
                server.send(&frame(6, 0, 0, b"12345678"));
            },
            false,
        ),
        ("end", |server| server.driver.end(), false),
        ("violation", |server| server.send(&data(2, b"x", false)), false),
    ];
    for (name, lose, goes_on) in losses {
        let mut server = established_tunnel();
        server.send(&data(1, b"~", false));
        server.send(&data(1, b"=held", false));
        lose(&mut server);
        assert_eq!(events(&server), ["shouts"], "{name}");
        server.driver.advance(seconds(3));
        let last = if name == "end" { "shouted" } else { "shout: the connection broke" };
        assert_eq!(events(&server), ["shouts", "heard =HELD", last], "{name}");
        server.driver.settle();
        if goes_on {
            // Frames that were on their way do no harm.
            let in_flight = if name == "trailers" { data(1, b"x", false) } else { Vec::new() };
            server.send(&in_flight);
            assert_connection_works(&mut server);
        } else {
            server.driver.end();
            assert!(server.driver.is_dropped(), "{name}");
        }
        assert_eq!(server.driver.failures(), [""; 0], "{name}");
    }
}

/// What had arrived before a drain reaches the protocol first, even if it takes several turns.
#[test]
fn a_drain_is_reported_after_the_input_that_arrived_before_it() {
    let mut server = established_tunnel();
    let input: Vec<u8> = (0..5_000).flat_map(|_| data(1, b"x", false)).collect();
    server.driver.peer().send(&input);
    server.driver.drain(seconds(30));
    server.read();
    let body = [&[b'X'; 5_000][..], b"BYE"].concat();
    assert!(server.requests[&1].body == body, "{} bytes", server.requests[&1].body.len());
}

#[test]
fn a_drain_is_reported_to_protocols_while_a_frame_is_incomplete() {
    // Frames are handled in batches of 64.
    for frames in (0..40).map(|batches| batches * 64) {
        let mut server = established_tunnel();
        let whole = data(1, b"x", false).repeat(frames);
        server.driver.peer().send(&[whole, data(1, b"abc", false)[..10].to_vec()].concat());
        server.driver.drain(seconds(30));
        server.read();
        assert!(server.requests[&1].body.ends_with(b"BYE"), "{frames}");
    }
}

/// An operator may end a single connection, which the loop does not know.
#[test]
fn a_drain_of_only_the_connection_is_reported_to_its_protocols() {
    let drain = |server: &mut Server| {
        let instance = server.driver.test().instance();
        let _ = instance.machines().scan(Cursor::START, |_, _| Verdict::Drain);
        server.driver.settle();
        server.read();
    };
    let mut server = established_tunnel();
    drain(&mut server);
    assert_eq!((&server.requests[&1].body[..], server.requests[&1].is_whole), (&b"BYE"[..], true));
    let mut server = server_with_extended_connect([upgrade_request("shout")]);
    drain(&mut server);
    server.send(&headers(1, OK, false));
    assert_eq!((&server.requests[&1].body[..], server.requests[&1].is_whole), (&b"BYE"[..], true));
}

#[test]
fn a_protocol_without_limits_on_a_stream_stops_reading_at_high_water() {
    let config = ClientConfig::new().limits(Limits::new().output_high_water(1_000)).http2(http2());
    let mut server = Server::of(config, &[(8, 1), (4, 0)], [upgrade_request("roar")]);
    server.send(&headers(1, OK, false));
    assert_eq!(server.outcome(0), "switched");
    let mut sent = 0;
    while server.send_body(1, 1_000, false) {
        sent += 1_000;
        assert!(sent < 1 << 20, "nothing holds it back");
    }
    assert!(sent >= 65_000, "{sent}");
    server.grant_window(1, 1 << 22);
    server.grant_window(0, 1 << 22);
    assert_eq!(server.requests[&1].body.len(), sent);
    assert!(server.send_body(1, 1_000, false), "it goes on");
}

#[test]
fn a_tunnel_obeys_the_windows_of_both_directions() {
    let mut server = Server::of(
        ClientConfig::new().http2(http2()),
        &[(8, 1), (4, 3)],
        [upgrade_request("shout")],
    );
    server.send(&headers(1, OK, false));
    let mut sent = 0;
    while server.send_body(1, 1_000, false) {
        sent += 1_000;
        assert!(sent < 1 << 20, "nothing holds it back");
    }
    assert_eq!(server.requests[&1].body.len(), 3);
    assert!(sent >= 65_000);
    server.grant_window(1, 1 << 22);
    server.grant_window(0, 1 << 22);
    assert_eq!(server.requests[&1].body.len(), sent);
    assert!(server.send_body(1, 1_000, false));
    // A server that grants no window times out.
    let mut server = Server::of(
        ClientConfig::new().http2(http2()),
        &[(8, 1), (4, 1)],
        [upgrade_request("shout")],
    );
    server.send(&headers(1, OK, false));
    server.send(&data(1, b"ab", false));
    for _ in 0..40 {
        server.driver.advance(seconds(1));
        server.send(&super::server::frame(6, 1, 0, &[0; 8]));
    }
    assert_eq!(server.requests[&1].reset, Some(8));
    assert!(events(&server)[1].starts_with("shout: "), "{:?}", events(&server));
}
