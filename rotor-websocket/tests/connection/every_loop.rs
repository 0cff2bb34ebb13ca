//! A WebSocket server on real sockets, on every loop.

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Config, Response};
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor_websocket::{Room, RoomConfig, WebSocketConfig};

use crate::kit::{
    BINARY, CLOSE, PING, Seen, Site, TEXT, close_payload, frame, request, server_frame,
    shown_frames,
};
use crate::loops::{ListenerOn, OnLoop, Rig, local, on_every_loop};

struct Served<L: OnLoop> {
    rig: Rig<HttpAccept<Site, ListenerOn<L>>, L>,
    address: std::net::SocketAddr,
}

impl<L: OnLoop> Served<L> {
    fn new() -> Served<L> {
        let room = Some(Room::new(RoomConfig::new()));
        let seen = Seen { room, ..Seen::default() };
        let mut rig = Rig::<HttpAccept<Site, ListenerOn<L>>, L>::new(&Config::new(), seen);
        let mut address = None;
        rig.add(|scope| {
            Response::attempt(|| {
                let listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope)?;
                address = listener.local_address();
                let seed = HttpSeed::new(WebSocketConfig::new().share(), ServerConfig::new());
                Ok(server::listen(listener, seed, scope))
            })
        });
        Served { rig, address: address.expect("it listens") }
    }

    /// A client that has completed the handshake.
    fn open(&mut self, path: &str) -> L::End {
        let mut end = self.rig.connect(self.address);
        self.rig.send(&mut end, request(path, "").as_bytes()).expect("there is room");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let next = self.rig.receive(&mut end, Some(1)).expect("an answer");
            assert_eq!(next.len(), 1, "{}", head.escape_ascii());
            head.extend(next);
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", head.escape_ascii());
        end
    }

    fn send(&mut self, end: &mut L::End, bytes: &[u8]) {
        self.rig.send(end, bytes).expect("there is room");
    }

    /// Asserts that the next bytes are this frame.
    fn assert_receives(&mut self, end: &mut L::End, expected: &[u8]) {
        let got = self.rig.receive(end, Some(expected.len())).expect("it is open");
        assert!(got == expected, "{:?}", got[..got.len().min(100)].escape_ascii().to_string());
    }
}

on_every_loop!(messages_are_echoed_and_a_close_is_answered);
fn messages_are_echoed_and_a_close_is_answered<L: OnLoop>() {
    let mut served = Served::<L>::new();
    let mut end = served.open("/");
    served.send(&mut end, &frame(TEXT, "hello"));
    served.assert_receives(&mut end, &server_frame(TEXT, "hello"));
    for len in [0, 125, 126, 65_535, 65_536, 300_000] {
        let payload: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        served.send(&mut end, &frame(BINARY, &payload));
        served.assert_receives(&mut end, &server_frame(BINARY, &payload));
    }
    // Byte by byte: a message in two fragments, with a ping between them.
    let pieces = [frame(0x01, "one "), frame(PING, "?"), frame(0x80, "message")].concat();
    for byte in pieces {
        served.send(&mut end, &[byte]);
        served.rig.turn();
    }
    served.assert_receives(&mut end, &server_frame(0x8a, "?"));
    served.assert_receives(&mut end, &server_frame(TEXT, "one message"));
    served.send(&mut end, &frame(CLOSE, close_payload(1000, "done")));
    let rest = served.rig.receive(&mut end, None).expect("an end");
    assert_eq!(shown_frames(&rest), ["close 1000"]);
    drop(end);
    served.rig.until(|rig| rig.machines() == 1);
}

on_every_loop!(all_members_get_all_messages_in_one_order);
fn all_members_get_all_messages_in_one_order<L: OnLoop>() {
    let mut served = Served::<L>::new();
    let mut ends: Vec<_> = (0..10).map(|_| served.open("/join")).collect();
    for number in 0..50 {
        let said = format!("say {number}");
        served.send(&mut ends[number % 10], &frame(TEXT, said));
        // This fixes the order of the messages.
        for end in &mut ends {
            served.assert_receives(end, &server_frame(TEXT, number.to_string()));
        }
    }
}

on_every_loop!(a_peer_with_invalid_frames_is_closed_and_others_continue);
fn a_peer_with_invalid_frames_is_closed_and_others_continue<L: OnLoop>() {
    let mut served = Served::<L>::new();
    let mut other = served.open("/");
    for bad in
        [server_frame(TEXT, "not masked"), frame(0xf1, "reserved"), frame(0x80, "nothing to go on")]
    {
        let mut end = served.open("/");
        served.send(&mut end, &bad);
        let rest = served.rig.receive(&mut end, None).expect("an end");
        assert_eq!(shown_frames(&rest), ["close 1002"]);
        served.send(&mut other, &frame(TEXT, "still here"));
        served.assert_receives(&mut other, &server_frame(TEXT, "still here"));
    }
}
