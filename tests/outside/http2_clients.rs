//! Our HTTP/2 clients with the third-party servers nginx and nghttpd; directly, and through
//! `reverse_proxy` with either version on each side.

use std::path::Path;
use std::process::{Command, Stdio};

use rotor_bench::server::Server;

use crate::certificates::Certificates;
use crate::clients::{Site, check, check_by};
use crate::daemon::Daemon;
use crate::nginx::start_nginx;
use crate::support::{PATIENCE, example, program, run, text};

/// nghttpd without TLS.
fn nghttpd(program: &Path, site: &Site) -> Daemon {
    Daemon::start(|_, port| {
        let mut command = Command::new(program);
        command.args(["--no-tls", "-a", "127.0.0.1", "-d"]).arg(site.path()).arg(port.to_string());
        command.stdout(Stdio::null());
        command
    })
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
    let Some(program) = program("nghttpd") else { return };
    let site = Site::new();
    let server = nghttpd(&program, &site);
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
