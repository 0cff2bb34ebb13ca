//! The chapters of the book in `doc/`: their programs are compiled and run like examples here.
//!
//! `tests/book` checks that none is missing. The chapter on simulation is compiled by `rotor-sim`.

macro_rules! chapters {
    ($($name:ident: $file:literal,)+) => {
        $(
            #[doc = include_str!($file)]
            mod $name {}
        )+
    };
}

chapters! {
    machines: "../doc/guide/machines.md",
    event_loop: "../doc/guide/loop.md",
    deadlines: "../doc/guide/deadlines.md",
    waking: "../doc/guide/waking.md",
    blocking: "../doc/guide/blocking.md",
    composing: "../doc/guide/composing.md",
    datagrams: "../doc/guide/datagrams.md",
    streams: "../doc/guide/streams.md",
    connections: "../doc/guide/connections.md",
    hostile_peers: "../doc/guide/hostile-peers.md",
    embedding: "../doc/guide/embedding.md",
    from_mio: "../doc/guide/from-mio.md",
    from_async: "../doc/guide/from-async.md",
    from_rotor_2016: "../doc/guide/from-rotor-2016.md",
}

#[cfg(feature = "http")]
chapters! {
    first_page: "../doc/README.md",
    testing: "../doc/guide/testing.md",
    http_server: "../doc/guide/http-server.md",
    http_bodies: "../doc/guide/http-bodies.md",
    threads: "../doc/guide/threads.md",
    draining: "../doc/guide/draining.md",
}

// One of its clients is for HTTPS.
#[cfg(all(feature = "http", feature = "tls"))]
chapters! {
    http_client: "../doc/guide/http-client.md",
}

// Its client speaks HTTP/2 under TLS.
#[cfg(all(feature = "http2", feature = "tls"))]
chapters! {
    http2: "../doc/guide/http2.md",
}

#[cfg(feature = "websocket")]
chapters! {
    websocket: "../doc/guide/websocket.md",
}

#[cfg(feature = "dns")]
chapters! {
    names: "../doc/guide/names.md",
    everything: "../doc/guide/everything.md",
}

#[cfg(feature = "proxy-protocol")]
chapters! {
    scaling_out: "../doc/guide/scaling-out.md",
}

// One of its programs has both layers.
#[cfg(all(feature = "tls", feature = "proxy-protocol"))]
chapters! {
    tls: "../doc/guide/tls.md",
}
