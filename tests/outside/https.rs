//! The HTTPS server with third-party TLS clients.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rcgen::{CertificateParams, KeyPair};
use rotor_bench::server::Server;
use rotor_test_kit::Directory;

use crate::support::{PATIENCE, example, program, run, text};

/// The example with a certificate for `localhost`.
struct Https {
    server: Server,
    directory: Directory,
}

impl Https {
    fn start() -> Https {
        let key = KeyPair::generate().expect("there is randomness");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
        let certificate = params.self_signed(&key).expect("it signs");
        let directory = Directory::create();
        fs::write(directory.join("chain.pem"), certificate.pem()).expect("there is room");
        fs::write(directory.join("key.pem"), key.serialize_pem()).expect("there is room");
        let mut command = example("https_server");
        command.arg(directory.join("chain.pem")).arg(directory.join("key.pem"));
        let server = Server::start(command, PATIENCE).expect("it starts");
        Https { server, directory }
    }

    fn chain(&self) -> PathBuf {
        self.directory.join("chain.pem")
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/", self.server.address().port())
    }
}

#[test]
fn curl_trusts_the_certificate_and_gets_the_page_by_tls_1_2_and_1_3() {
    let Some(curl) = program("curl") else { return };
    let https = Https::start();
    for (version, http) in [
        (&["--tlsv1.2", "--tls-max", "1.2"][..], "--http1.1"),
        (&["--tlsv1.2", "--tls-max", "1.2"], "--http2"),
        (&["--tlsv1.3"], "--http1.1"),
        (&["--tlsv1.3"], "--http2"),
    ] {
        let mut command = Command::new(&curl);
        command.args(["-q", "--noproxy", "*", "-sS", "-v", "--ipv4", http]).args(version);
        let output =
            run(command.arg("--cacert").arg(https.chain()).args([https.url(), https.url()]));
        let text = text(&output);
        assert_eq!(output.stdout, b"Hello, World!Hello, World!", "{text}");
        assert!(text.contains("SSL certificate verify ok"), "{text}");
        let agreed = if http == "--http2" { "h2" } else { "http/1.1" };
        assert!(text.contains(&format!("server accepted {agreed}")), "{text}");
    }
}

#[test]
fn openssl_resumes_with_a_ticket_and_receives_close_notify() {
    let Some(openssl) = program("openssl") else { return };
    let https = Https::start();
    let address = https.server.address().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = https.directory.join(format!("session{version}"));
        for (option, expected) in [("-sess_out", "New, "), ("-sess_in", "Reused, ")] {
            let mut command = Command::new(&openssl);
            command.args(["s_client", "-connect", &address, "-servername", "localhost", version]);
            command.arg("-CAfile").arg(https.chain()).arg(option).arg(&session);
            command.args(["-verify_return_error", "-ign_eof", "-alpn", "http/1.1"]);
            let request = https.directory.join("request");
            fs::write(&request, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .expect("there is room");
            command.stdin(Stdio::from(fs::File::open(&request).expect("it is there")));
            let output = text(&run(&mut command));
            assert!(output.contains("Hello, World!"), "{output}");
            assert!(output.contains("Verify return code: 0 (ok)"), "{output}");
            assert!(output.contains(expected), "{version}: {output}");
        }
    }
}

#[test]
fn openssl_reconnects_repeatedly_and_no_connection_hangs() {
    let Some(openssl) = program("openssl") else { return };
    let https = Https::start();
    let address = https.server.address().to_string();
    for kind in ["-new", "-reuse"] {
        let mut command = Command::new(&openssl);
        // It ends after two seconds, provided that the connection in progress ends.
        command.args(["s_time", "-connect", &address, kind, "-time", "2", "-www", "/"]);
        let output = text(&run(&mut command));
        assert!(output.contains(" real seconds, "), "{output}");
    }
}
