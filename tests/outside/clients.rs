//! Our clients with third-party servers: Python's `http.server` and nginx.
#![expect(clippy::disallowed_methods, reason = "a thread that reads what a program says")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rotor_test_kit::{Directory, Process};

use crate::certificates::Certificates;
use crate::nginx::start_nginx;
use crate::support::{example, program, run, text};

/// A temporary directory of files to serve. Dropping it removes the files.
pub(crate) struct Site(Directory);

impl Site {
    pub(crate) fn new() -> Site {
        let site = Site(Directory::create());
        let links: String = (0..40).map(|page| format!("<a href=\"{page}.html\">x</a>")).collect();
        fs::write(site.0.join("index.html"), &links).expect("a file");
        for page in 0..40 {
            fs::write(site.0.join(format!("{page}.html")), &links).expect("a file");
        }
        let octets: Vec<u8> = (0..3_000_000u32)
            .map(|octet| (octet.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        fs::write(site.0.join("big.bin"), octets).expect("a file");
        fs::write(site.0.join("empty.bin"), "").expect("a file");
        site
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Python's `http.server`, which serves the files of a directory, and its URL.
fn python(program: &Path, site: &Site, version: &str) -> (Process, String) {
    let child = Command::new(program)
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--protocol", version])
        .arg("--directory")
        .arg(site.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut server = Process::from(child.expect("Python starts"));
    let stdout = server.stdout.take().expect("it was asked to be a pipe above");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
    let url = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let (url, _) = url.unwrap_or_else(|| panic!("no address in {line:?}"));
    (server, url.to_owned())
}

/// Requests files of all sizes, a missing file, and all pages of the site.
pub(crate) fn check(url: &str, site: &Site) {
    check_by(url, site, example);
}

/// The same, with clients that `example` starts.
pub(crate) fn check_by(url: &str, site: &Site, example: impl Fn(&str) -> Command) {
    for name in ["big.bin", "empty.bin", "index.html"] {
        let output = run(example("http_get").arg(format!("{url}{name}")));
        let expected = fs::read(site.0.join(name)).expect("it was written");
        assert!(output.stdout == expected, "{url}{name}: {} octets", output.stdout.len());
    }
    let gone = example("http_get").arg(format!("{url}gone")).output().expect("it starts");
    assert!(
        !gone.status.success() && text(&gone).contains("the server answered 404"),
        "{}",
        text(&gone)
    );
    for at_once in ["1", "8"] {
        let output = run(example("crawler").args([url, at_once]));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("\n41 pages, 0 not found or broken"), "{url}: {stdout}");
    }
}

#[test]
fn python_serves_our_clients_in_both_versions() {
    let Some(program) = program("python3") else { return };
    let site = Site::new();
    for version in ["HTTP/1.0", "HTTP/1.1"] {
        let (_server, url) = python(&program, &site, version);
        check(&url, &site);
    }
}

#[test]
fn nginx_serves_our_clients_when_it_closes_after_two_requests() {
    let Some(nginx) = program("nginx") else { return };
    let site = Site::new();
    for requests in [2, 1000] {
        let server = start_nginx(
            &nginx,
            &format!(
                "types {{ text/html html; }}
                 keepalive_requests {requests};
                 server {{ listen 127.0.0.1:PORT; root {}; }}",
                site.0.display()
            ),
        );
        check(&format!("http://127.0.0.1:{}/", server.port), &site);
    }
}

#[test]
fn nginx_serves_our_clients_over_tls_1_2_and_1_3() {
    let Some(nginx) = program("nginx") else { return };
    let site = Site::new();
    let ours = Certificates::for_names(&["localhost", "127.0.0.1"]);
    for (version, requests) in [("TLSv1.2", 2), ("TLSv1.3", 2), ("TLSv1.2 TLSv1.3", 1000)] {
        let server = start_nginx(
            &nginx,
            &format!(
                "types {{ text/html html; }}
                 keepalive_requests {requests};
                 ssl_certificate {};
                 ssl_certificate_key {};
                 ssl_protocols {version};
                 server {{ listen 127.0.0.1:PORT ssl; root {}; }}",
                ours.path("site.crt").display(),
                ours.path("site.key").display(),
                site.0.display()
            ),
        );
        let url = format!("https://localhost:{}/", server.port);
        check_by(&url, &site, |name| ours.trusted_by(example(name)));
        // A client that trusts only other issuers gets nothing.
        let others = Certificates::for_names(&["localhost"]);
        let output = others.trusted_by(example("http_get")).arg(&url).output().expect("it starts");
        let said = text(&output);
        assert!(!output.status.success() && said.contains("UnknownIssuer"), "{said}");
        // nginx itself tells a plain HTTP client about its mistake.
        let clear = format!("http://127.0.0.1:{}/", server.port);
        let output = example("http_get").arg(clear).output().expect("it starts");
        assert!(text(&output).contains("400 Bad Request"), "{}", text(&output));
    }
}

#[test]
fn nginx_reports_a_missing_client_certificate() {
    let Some(nginx) = program("nginx") else { return };
    let ours = Certificates::for_names(&["localhost"]);
    let server = start_nginx(
        &nginx,
        &format!(
            "ssl_certificate {0}; ssl_certificate_key {1};
             ssl_client_certificate {2}; ssl_verify_client on;
             server {{ listen 127.0.0.1:PORT ssl; }}",
            ours.path("site.crt").display(),
            ours.path("site.key").display(),
            ours.path("issuer.crt").display()
        ),
    );
    let url = format!("https://localhost:{}/", server.port);
    let output = ours.trusted_by(example("http_get")).arg(url).output().expect("it starts");
    assert!(text(&output).contains("400 Bad Request"), "{}", text(&output));
}

/// `openssl s_server`, which serves the files of a directory. Each file has its own connection, and
/// its end is the end of the body.
fn openssl(program: &Path, site: &Site, shown: &Certificates, version: &str) -> (Process, u16) {
    let child = Command::new(program)
        .args(["s_server", "-accept", "127.0.0.1:0", "-WWW", version])
        .arg("-cert")
        .arg(shown.path("site.crt"))
        .arg("-key")
        .arg(shown.path("site.key"))
        .current_dir(site.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut server = Process::from(child.expect("openssl starts"));
    let stdout = server.stdout.take().expect("it was asked to be a pipe above");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let port = lines.find_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok());
    // Its other output is drained, so that it never blocks on a full pipe.
    thread::spawn(move || lines.for_each(drop));
    (server, port.expect("it says where it listens"))
}

#[test]
fn openssl_serves_our_client_and_close_notify_ends_the_body() {
    let Some(program) = program("openssl") else { return };
    let site = Site::new();
    let ours = Certificates::for_names(&["localhost"]);
    for version in ["-tls1_2", "-tls1_3"] {
        let (_server, port) = openssl(&program, &site, &ours, version);
        for name in ["big.bin", "index.html"] {
            let url = format!("https://localhost:{port}/{name}");
            let output = run(ours.trusted_by(example("http_get")).arg(&url));
            let expected = fs::read(site.0.join(name)).expect("it was written");
            assert!(output.stdout == expected, "{url}: {} octets", output.stdout.len());
        }
    }
}
