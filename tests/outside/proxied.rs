//! haproxy and curl send a PROXY protocol header to a server that reports its peer's address.

#![expect(clippy::disallowed_methods, reason = "a server on a thread, and a wait for another one")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rotor::http::Status;
use rotor::http::server::{
    Head, HttpAccept, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn, listen,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::proxy_protocol::{ProxyCounters, ProxyListener, ProxyProtocol, ProxyProtocolConfig};
use rotor::{Config, Loop, LoopHandle};

use crate::daemon::Daemon;
use crate::support::{PATIENCE, curl, program, text};

fn who_am_i(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    let peer = head.peer_address().map(|peer| peer.ip().to_string()).unwrap_or_default();
    response.reply(Status::OK, "text/plain", peer.as_bytes())
}

type WhoAmI = ServerFn<fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply, ()>;

/// A server that trusts PROXY headers from this machine; stopped on drop.
struct Served {
    address: SocketAddr,
    behind: ProxyProtocol,
    handle: LoopHandle,
}

impl Served {
    fn start() -> Served {
        let trusted = "127.0.0.0/8".parse().expect("a network");
        let behind = ProxyProtocol::new(ProxyProtocolConfig::new([trusted]));
        let (tell, told) = mpsc::channel();
        let wrap = behind.clone();
        thread::spawn(move || {
            type Machine = HttpAccept<WhoAmI, ProxyListener<TcpListener>>;
            let mut creator = Loop::<Machine>::new(&Config::new()).expect("a loop");
            let mut address = None;
            let made = creator.add_machine_with(|scope| {
                rotor::Response::attempt(|| {
                    let any = wrap.at(SocketAddr::from(([127, 0, 0, 1], 0)));
                    let listener = ProxyListener::bind(&any, &ListenOptions::new(), scope)?;
                    address = listener.local_address();
                    let seed = HttpSeed::<WhoAmI>::new(who_am_i, ServerConfig::new());
                    Ok(listen(listener, seed, scope))
                })
            });
            made.expect("it listens");
            let address = address.expect("it is bound");
            tell.send((address, creator.handle())).expect("it is awaited");
            creator.instantiate(()).run().expect("it runs");
        });
        let (address, handle) = told.recv().expect("it is told");
        Served { address, behind, handle }
    }

    fn counters(&self) -> &ProxyCounters {
        self.behind.counters()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

#[test]
fn the_proxy_header_of_curl_names_the_peer() {
    let Some(curl_program) = program("curl") else { return };
    let served = Served::start();
    let url = format!("http://{}/", served.address);
    let answer = curl(&curl_program, &["--haproxy-protocol", &url]);
    assert_eq!(text(&answer), "127.0.0.1");
    let plain = Command::new(&curl_program)
        .args(["-q", "--silent", "--max-time", "100", "--noproxy", "*", &url])
        .output()
        .expect("curl starts");
    assert!(!plain.status.success(), "without a header");
    let counters = served.counters();
    assert_eq!((counters.proxied(), counters.no_header()), (1, 1), "{counters:?}");
}

/// haproxy as a TCP proxy for a server, with the option that has it send a header.
fn haproxy(program: &Path, server: SocketAddr, send: &str) -> Daemon {
    Daemon::start(|directory, port| {
        let file = directory.join("haproxy.cfg");
        let configuration = format!(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
             frontend f\n  bind 127.0.0.1:{port}\n  unique-id-format %[rand]\n  default_backend b\n\
             backend b\n  server s {server} {send} check check-send-proxy inter 100ms\n",
        );
        fs::write(&file, configuration).expect("a temporary file");
        let mut command = Command::new(program);
        command.args(["-db", "-q", "-f"]).arg(&file);
        command
    })
}

#[test]
fn proxy_headers_of_haproxy_name_the_peer_and_health_checks_do_not() {
    let (Some(haproxy_program), Some(curl_program)) = (program("haproxy"), program("curl")) else {
        return;
    };
    for send in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"] {
        let served = Served::start();
        let haproxy = haproxy(&haproxy_program, served.address, send);
        let end = Instant::now() + PATIENCE;
        // In version 1 a health check is not marked as a local connection.
        while served.counters().local() == 0 && send != "send-proxy" {
            assert!(Instant::now() < end, "{send}: {:?}", served.counters());
            thread::park_timeout(Duration::from_millis(10));
        }
        // The client's own address differs from the address of haproxy's connection.
        let url = format!("http://127.0.0.1:{}/", haproxy.port);
        let answer = curl(&curl_program, &["--interface", "127.0.0.7", &url]);
        assert_eq!(text(&answer), "127.0.0.7", "{send}");
        let counters = served.counters();
        assert_eq!((counters.broken(), counters.checksums(), counters.no_header()), (0, 0, 0));
    }
}
