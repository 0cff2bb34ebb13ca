//! Our HTTP/2 clients with the third-party servers nginx and nghttpd; directly, and through
//! `reverse_proxy` with either version on each side.
#![expect(clippy::disallowed_methods, reason = "a test that waits for the port of another program")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rotor_bench::server::Server;

use crate::certificates::Certificates;
use crate::clients::{Site, check, check_by};
use crate::daemon::Daemon;
use crate::nginx::start_nginx;
use crate::support::{PATIENCE, example, program, run, text};

/// nghttpd without TLS; killed on drop.
struct Nghttpd {
    process: Child,
    port: u16,
}

impl Nghttpd {
    fn serve(program: &Path, site: &Site) -> Nghttpd {
        // nghttpd exits if another process has taken the port meanwhile.
        (0..5).find_map(|_| Nghttpd::serve_once(program, site)).expect("a port is free")
    }

    fn serve_once(program: &Path, site: &Site) -> Option<Nghttpd> {
        // nghttpd does not print the port it was given, so it gets a port that was free a moment
        // ago.
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let process = Command::new(program)
            .args(["--no-tls", "-a", "127.0.0.1", "-d"])
            .arg(site.path())
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nghttpd starts");
        let mut server = Nghttpd { process, port };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "nghttpd does not listen");
            if server.process.try_wait().expect("it is our child").is_some() {
                return None;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Some(server)
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An nginx that speaks HTTP/2, with the options of `listen` and `settings`.
fn nginx(program: &Path, site: &Site, listen: &str, settings: &str) -> Daemon {
    let root = site.path().display();
    start_nginx(
        program,
        &format!(
            "types {{ text/html html; }}
             {settings}
             server {{ listen 127.0.0.1:PORT {listen} http2; root {root}; }}"
        ),
    )
}

fn says_http2(url: &str) {
    let output = run(example("http_get").arg(url));
    assert!(text(&output).contains("HTTP/2 200"), "{}", text(&output));
}

#[test]
fn nghttpd_serves_our_clients() {
    let Some(nghttpd) = program("nghttpd") else { return };
    let site = Site::new();
    let server = Nghttpd::serve(&nghttpd, &site);
    let url = format!("h2c://127.0.0.1:{}/", server.port);
    says_http2(&url);
    check(&url, &site);
}

#[test]
fn nginx_serves_our_clients_when_it_sends_goaway_after_two_requests() {
    let Some(program) = program("nginx") else { return };
    let site = Site::new();
    for requests in [2, 1000] {
        let server = nginx(&program, &site, "", &format!("keepalive_requests {requests};"));
        let url = format!("h2c://127.0.0.1:{}/", server.port);
        says_http2(&url);
        check(&url, &site);
    }
}

#[test]
fn nginx_serves_our_clients_over_tls_by_the_negotiated_protocol() {
    let Some(program) = program("nginx") else { return };
    let site = Site::new();
    let ours = Certificates::for_names(&["localhost", "127.0.0.1"]);
    let settings = format!(
        "ssl_certificate {}; ssl_certificate_key {};",
        ours.path("site.crt").display(),
        ours.path("site.key").display()
    );
    let server = nginx(&program, &site, "ssl", &settings);
    let url = format!("https://localhost:{}/", server.port);
    let output = run(ours.trusted_by(example("http_get")).arg(&url));
    assert!(text(&output).contains("HTTP/2 200"), "{}", text(&output));
    check_by(&url, &site, |name| ours.trusted_by(example(name)));
}

#[test]
fn the_proxy_forwards_from_either_version_to_either() {
    let Some(program) = program("nginx") else { return };
    let site = Site::new();
    let http2 = nginx(&program, &site, "", "");
    let root = site.path().display();
    let http1 = start_nginx(
        &program,
        &format!("types {{ text/html html; }} server {{ listen 127.0.0.1:PORT; root {root}; }}"),
    );
    for upstream in
        [format!("h2c://127.0.0.1:{}/", http2.port), format!("http://127.0.0.1:{}/", http1.port)]
    {
        let mut proxy = example("reverse_proxy");
        proxy.arg(&upstream);
        let proxy = Server::start(proxy, PATIENCE).unwrap_or_else(|e| panic!("the proxy: {e}"));
        for scheme in ["http", "h2c"] {
            check(&format!("{scheme}://{}/", proxy.address()), &site);
        }
    }
}
